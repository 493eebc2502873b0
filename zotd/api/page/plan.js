// The plan of the session: its steps with their states, and a form in which a person edits them.

import { element, fill, say } from "./elements.js";
import { linesOf, stepsOf, summaryOfPlan } from "./steps.js";
import { CallError } from "./wire.js";

export class Plan {
  #box;
  #call;
  #shown = null;
  #isEditing = false;
  #edited = null; // the plan that is being edited: an edit names its revision
  #summary = element("span", { class: "fact" });
  #steps = element("ol");
  #problem = element("p", { class: "problem", role: "alert" });
  #text = element("textarea", { id: "plan-text", rows: "6", dir: "auto", "aria-describedby": "plan-help" });
  #edit = element("button", { type: "button", onclick: () => this.#begin() }, "Edit");
  #form = element(
    "form",
    { onsubmit: (event) => this.#save(event) },
    element("label", { for: "plan-text" }, "Steps"),
    this.#text,
    element("p", { id: "plan-help", class: "fact" }, "A line for each step: [ ] pending, [>] active, [x] done."),
    this.#problem,
    element(
      "div",
      { class: "buttons" },
      element("button", { type: "submit", class: "primary" }, "Save"),
      element("button", { type: "button", onclick: () => this.#end() }, "Cancel"),
    ),
  );

  /** `call(type, fields)` sends a command for the current session. */
  constructor(box, call) {
    this.#box = box;
    this.#call = call;
    const title = element("summary", {}, element("strong", {}, "Plan"), " ", this.#summary);
    fill(box, element("details", { open: true }, title, this.#steps, this.#edit, this.#form));
  }

  /** Another session is opened. */
  close() {
    this.#end();
    this.#shown = null;
    this.#box.hidden = true;
  }

  /** `mayEdit`: the role of this client permits it. While a plan waits for a decision, the question shows its steps. */
  show({ plan, approvals }, { mayEdit, isLive }) {
    const isAsked = plan?.status === "proposed" && approvals.some((one) => one.tool_id === plan.call);
    this.#box.hidden = plan === null || isAsked || (plan.steps.length === 0 && !this.#isEditing);
    this.#edit.hidden = !mayEdit || this.#isEditing;
    this.#edit.disabled = !isLive;
    this.#form.hidden = !this.#isEditing;
    if (plan === this.#shown || plan === null) return;
    this.#shown = plan;
    say(this.#summary, summaryOfPlan(plan));
    fill(this.#steps, ...plan.steps.map(stepElement));
  }

  #begin() {
    this.#edited = this.#shown;
    this.#text.value = linesOf(this.#edited.steps);
    this.#isEditing = true;
    this.#form.hidden = false;
    this.#edit.hidden = true;
    this.#text.focus();
  }

  #end() {
    const hadFocus = this.#form.contains(document.activeElement);
    this.#isEditing = false;
    this.#form.hidden = true;
    this.#edit.hidden = false;
    say(this.#problem, "");
    if (hadFocus) this.#edit.focus();
  }

  async #save(event) {
    event.preventDefault();
    try {
      const { revision } = this.#edited;
      await this.#call("session.plan_edit", { revision, steps: stepsOf(this.#text.value) });
      this.#end();
    } catch (error) {
      say(this.#problem, error instanceof CallError ? error.message : "The connection was lost; try it again.");
    }
  }
}

function stepElement({ text, state = "pending" }) {
  return element("li", { class: state, dir: "auto" }, element("span", { class: "unseen" }, `${state}: `), text);
}
