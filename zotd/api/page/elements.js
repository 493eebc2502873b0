// The only place that creates elements: all content is inserted as text and sanitized.

import { harmless } from "./harmless.js";

/**
 * Creates an element. Strings among the children become text, never markup. Attributes whose value is a function become
 * listeners (their names begin with `on`), those that are false or undefined are omitted, and true means an empty value.
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

/** Replaces the children of `parent`. */
export function fill(parent, ...children) {
  const kept = children.filter((child) => child !== null && child !== "");
  parent.replaceChildren(...kept.map((child) => (typeof child === "string" ? harmless(child) : child)));
}

/** Sets the text of an element if it differs, so that a live region is not announced again. */
export function say(node, text) {
  const shown = harmless(text);
  if (node.textContent !== shown) node.textContent = shown;
}

/** The element of the page with this id. */
export function byId(id) {
  return document.getElementById(id);
}
