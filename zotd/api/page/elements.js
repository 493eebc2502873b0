// The one way in which this page makes elements: whatever it is given is text, and harmless.

import { harmless } from "./harmless.js";

/**
 * An element with attributes and children. Strings among them become text, never markup; functions, whose names begin
 * with `on`, become listeners; an attribute that is false or undefined is left out, one that is true is empty.
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== undefined && value !== false) made.setAttribute(key, harmless(String(value)));
  }
  fill(made, ...children);
  return made;
}

/** Put these into `parent` instead of what is in it. */
export function fill(parent, ...children) {
  const kept = children.filter((child) => child !== null && child !== "");
  parent.replaceChildren(...kept.map((child) => (typeof child === "string" ? harmless(child) : child)));
}

/** Set the text of an element, unless it is the same: what is read aloud when it changes is not read twice. */
export function say(node, text) {
  const shown = harmless(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}
