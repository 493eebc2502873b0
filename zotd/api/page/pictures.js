// Shows the images of messages. Events have only their sizes, so each is requested when it becomes visible.

import { element, fill, say } from "./elements.js";
import { TYPES } from "./shrink.js";
import { CallError } from "./wire.js";

// Number of images that are kept, so that those of an entry that is rendered again are not requested again.
const KEPT = 20;

export class Pictures {
  #call;
  #known = new Map(); // data URLs by place, the one used last at the end
  #seen = new IntersectionObserver((changes) => this.#moved(changes), { rootMargin: "200px" });
  #places = new WeakMap(); // {seq, index} by element that waits for its image

  /** `call(type, fields)` sends a command for the current session. */
  constructor(call) {
    this.#call = call;
  }

  /** Forgets all images, because another session is opened. */
  clear() {
    this.#known.clear();
    this.#seen.disconnect();
  }

  /** Elements for the `count` images of the message with this `seq`. */
  of(seq, count) {
    return Array.from({ length: count }, (_, index) => this.#one({ seq, index }, `Image ${index + 1} of ${count}`));
  }

  #one(place, label) {
    const box = element("button", { type: "button", class: "picture", "aria-expanded": "false" }, label);
    box.addEventListener("click", () => {
      const isLarge = box.classList.toggle("large");
      box.setAttribute("aria-expanded", String(isLarge));
    });
    const known = this.#known.get(keyOf(place));
    if (known) {
      fill(box, element("img", { src: known, alt: label }));
    } else {
      this.#places.set(box, { ...place, label });
      this.#seen.observe(box);
    }
    return box;
  }

  #moved(changes) {
    for (const { isIntersecting, target } of changes) {
      if (!isIntersecting) continue;
      this.#seen.unobserve(target);
      this.#load(target, this.#places.get(target));
    }
  }

  async #load(box, { seq, index, label }) {
    try {
      const { mime_type: type, data } = await this.#call("session.image", { seq, index });
      if (!TYPES.includes(type)) return;
      const url = `data:${type};base64,${data}`;
      this.#known.set(keyOf({ seq, index }), url);
      if (this.#known.size > KEPT) this.#known.delete(this.#known.keys().next().value);
      fill(box, element("img", { src: url, alt: label }));
    } catch (error) {
      // A lost connection: the image is requested again when it is shown next.
      if (error instanceof CallError) say(box, `${label}: ${error.message}`);
    }
  }
}

function keyOf({ seq, index }) {
  return `${seq}/${index}`;
}
