// The images that the next prompt will have: chosen, pasted, dropped, or taken with a phone's camera.

import { byId, element, fill } from "./elements.js";
import { ImageError, prepared } from "./shrink.js";

// Base64 characters of all images of a prompt: a frame has at most 16 MiB, with the text in it.
const MOST_CHARS = 12_000_000;

export class Attachments {
  #problem;
  #session = "";
  #bySession = new Map(); // lists of {name, image}; kept until the page is closed
  #list = byId("attachments");
  #picker = byId("images");

  /** `problem(sentence)` is called if an image cannot be attached. */
  constructor({ area, problem }) {
    this.#problem = problem;
    byId("attach").addEventListener("click", () => this.#picker.click());
    this.#picker.addEventListener("change", async () => {
      const files = [...this.#picker.files];
      this.#picker.value = ""; // or the same file could not be chosen again
      await this.#add(files);
    });
    area.addEventListener("paste", (event) => this.#taken(event, event.clipboardData));
    area.addEventListener("dragover", (event) => event.dataTransfer.types.includes("Files") && event.preventDefault());
    area.addEventListener("drop", (event) => this.#taken(event, event.dataTransfer));
  }

  /** Shows the images for another session. */
  open(session) {
    this.#session = session;
    this.#show();
  }

  /** The images of the next prompt, as {mime_type, data}. */
  get images() {
    return this.#attached.map(({ image }) => image);
  }

  /** Removes these images, because they were sent. */
  sent(images) {
    this.#keep(this.#attached.filter(({ image }) => !images.includes(image)));
  }

  get #attached() {
    return this.#bySession.get(this.#session) ?? [];
  }

  #taken(event, { files }) {
    const pictures = [...files].filter((file) => file.type.startsWith("image/"));
    if (pictures.length === 0) return; // text is pasted as usual
    event.preventDefault();
    this.#add(pictures);
  }

  async #add(files) {
    const session = this.#session;
    this.#problem("");
    for (const file of files) {
      try {
        const image = await prepared(file);
        if (session !== this.#session) return;
        const room = MOST_CHARS - this.images.reduce((sum, { data }) => sum + data.length, 0);
        if (image.data.length > room) throw new ImageError("A prompt cannot have more images: send these first.");
        this.#keep([...this.#attached, { name: file.name || "image", image }]);
      } catch (error) {
        if (!(error instanceof ImageError)) throw error;
        this.#problem(error.message);
      }
    }
  }

  #keep(attached) {
    this.#bySession.set(this.#session, attached);
    this.#show();
  }

  #show() {
    fill(this.#list, ...this.#attached.map((one) => this.#item(one)));
    this.#list.hidden = this.#attached.length === 0;
  }

  #item({ name, image }) {
    const remove = () => {
      this.sent([image]);
      byId("prompt").focus();
    };
    return element(
      "li",
      {},
      element("img", { src: `data:${image.mime_type};base64,${image.data}`, alt: name }),
      element("button", { type: "button", "aria-label": `Remove ${name}`, onclick: remove }, "Remove"),
    );
  }
}
