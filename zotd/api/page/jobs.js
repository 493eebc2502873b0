// The jobs of the session that run: a line for each, with the ports on which it listens, and a button that ends it.

import { element, fill, say } from "./elements.js";
import { CallError } from "./wire.js";

export class Jobs {
  #box;
  #call;
  #shown = ""; // what is rendered: a button that has the focus keeps it while nothing changes
  #list = element("ul");
  #problem = element("p", { class: "problem", role: "alert" });

  /** `call(type, fields)` sends a command for the current session. */
  constructor(box, call) {
    this.#box = box;
    this.#call = call;
    fill(box, this.#list, this.#problem);
  }

  /** Another session is opened. */
  close() {
    say(this.#problem, "");
    this.#box.hidden = true;
  }

  /** `mayStop`: the role of this client permits it. */
  show({ jobs }, { mayStop, isLive }) {
    const running = jobs.filter((job) => job.state === "running");
    this.#box.hidden = running.length === 0;
    if (running.length === 0) say(this.#problem, "");
    const drawn = JSON.stringify([running, mayStop, isLive]);
    if (drawn === this.#shown) return;
    this.#shown = drawn;
    fill(this.#list, ...running.map((job) => this.#line(job, mayStop, isLive)));
  }

  #line(job, mayStop, isLive) {
    const attributes = { type: "button", "aria-label": `Stop ${job.id}`, disabled: !isLive };
    const stop = element("button", { ...attributes, onclick: (event) => this.#stop(event.target, job.id) }, "Stop");
    const ports = (job.ports ?? []).map((port) => ` port ${port}`).join(",");
    const facts = element("span", { class: "fact" }, ` running${job.kept ? " (kept)" : ""}${ports && `, listens on${ports}`}`);
    const command = element("code", { dir: "auto" }, job.command);
    return element("li", {}, element("span", {}, `${job.id} `, command, facts), mayStop ? stop : "");
  }

  async #stop(button, job) {
    button.disabled = true;
    say(this.#problem, "");
    try {
      await this.#call("session.job_stop", { job });
    } catch (error) {
      button.disabled = false;
      say(this.#problem, error instanceof CallError ? error.message : "The connection was lost; try it again.");
    }
  }
}
