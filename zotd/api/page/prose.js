// Renders Markdown.

import { element } from "./elements.js";
import { blocks } from "./markdown.js";

// The source of each block that is displayed.
const sources = new WeakMap();

/** Renders a text into `container`; if it has grown, only new and changed blocks are rendered. */
export function showProse(container, text) {
  const wanted = blocks(text);
  wanted.forEach((block, at) => {
    const old = container.children[at];
    if (old && sources.get(old) === block.source) return;
    const made = blockElement(block);
    sources.set(made, block.source);
    if (old) old.replaceWith(made);
    else container.append(made);
  });
  while (container.children.length > wanted.length) container.lastElementChild.remove();
}

function blockElement(block) {
  switch (block.kind) {
    case "heading": // below those of the page itself
      return element(`h${Math.min(block.level + 2, 6)}`, { dir: "auto" }, ...block.spans.flatMap(spanElements));
    case "code":
      return codeElement(block);
    case "rule":
      return element("hr");
    case "list":
      return element("ul", { class: "list" }, ...block.items.map(itemElement));
    case "quote":
      return element("blockquote", { dir: "auto" }, ...block.spans.flatMap(spanElements));
    default:
      return element("p", { dir: "auto" }, ...block.spans.flatMap(spanElements));
  }
}

function codeElement({ language, text }) {
  const label = language ? `Code, ${language}` : "Code";
  return element("pre", { class: "code", tabindex: "0", role: "group", "aria-label": label }, text);
}

function itemElement({ depth, mark, spans }) {
  const bullet = /\d/.test(mark) ? mark : "•";
  const text = element("span", { dir: "auto" }, ...spans.flatMap(spanElements));
  return element("li", { class: `depth-${depth}` }, element("span", { class: "bullet" }, bullet), text);
}

function spanElements(span) {
  switch (span.kind) {
    case "code":
      return [element("code", {}, span.text)];
    case "bold":
      return [element("strong", {}, span.text)];
    case "emphasis":
      return [element("em", {}, span.text)];
    case "link":
      return linkElements(span);
    default:
      return [span.text];
  }
}

/** Renders the text of a link followed by its address, so that users see where it leads. */
function linkElements({ text, address }) {
  const link = element("a", { href: address, rel: "noreferrer noopener", target: "_blank" }, address);
  return text && text !== address ? [`${text} (`, link, ")"] : [link];
}
