// Pending approvals, one at a time.

import { verbatim } from "./cards.js";
import { element, fill, say } from "./elements.js";
import { linesOf, stepsOf } from "./steps.js";

// Time during which the buttons of a new question are disabled, so that a double click does not decide the next one.
const ARM_MS = 500;

/** Shows the oldest question in `box`; `decide(question, {decision, scope, reason})` is called with the user's choice. */
export class Questions {
  #box;
  #decide;
  #shown = null;
  #buttons = [];
  #count = element("span", { class: "fact" });
  #problem = element("p", { class: "problem", role: "alert" });

  constructor(box, decide) {
    this.#box = box;
    this.#decide = decide;
  }

  /** `mayDecide`: the role of this client permits decisions. */
  show(questions, mayDecide) {
    const question = questions[0] ?? null;
    if (question?.approval !== this.#shown) this.#open(question, mayDecide);
    if (question !== null) say(this.#count, questions.length > 1 ? `(1 of ${questions.length})` : "");
  }

  /** Enables the buttons again, because the decision failed. */
  failed(message) {
    if (this.#shown === null) return;
    say(this.#problem, message);
    this.#enable(true);
  }

  #open(question, mayDecide) {
    this.#shown = question?.approval ?? null;
    this.#box.hidden = question === null;
    this.#buttons = [];
    say(this.#problem, "");
    if (question === null) {
      fill(this.#box);
      return;
    }
    const isPlan = question.tool === "plan" && Array.isArray(question.args.steps);
    const [verb, what] = isPlan ? ["Approve the ", "plan"] : ["Allow ", question.tool];
    const title = element("h3", {}, verb, element("strong", {}, what), "? ", this.#count);
    const preview = verbatim(question.preview ?? JSON.stringify(question.args, null, 2), "What it would do");
    const note = element("p", { class: "fact" }, "This token cannot approve calls.");
    const answers = mayDecide ? (isPlan ? this.#planAnswers(question) : this.#answers(question)) : [note];
    fill(this.#box, title, preview, ...answers, this.#problem);
    this.#enable(false);
    setTimeout(() => {
      if (this.#shown === question.approval) this.#enable(true);
    }, ARM_MS);
  }

  #answers(question) {
    const reason = element("input", { id: "reason", type: "text", maxlength: "1000", autocomplete: "off" });
    const allow = (label, rest) => this.#button(label, question, () => ({ decision: "allow", ...rest }));
    const offers = lasting(question);
    const wider = offers.map((offer) => allow(offer.label, { scope: offer.scope, choice: offer.choice }));
    const deny = this.#button("Deny", question, () => ({ decision: "deny", ...reasonOf(reason) }));
    reason.addEventListener("keydown", (event) => event.key === "Enter" && deny.click());
    return [
      element("div", { class: "buttons" }, allow("Allow once", { scope: "once" }), ...wider),
      element("div", { class: "buttons" }, deny, element("label", { for: "reason" }, "because"), reason),
      offers.length > 0 ? rulesElement(offers) : null,
    ];
  }

  /** Of a plan: it can be approved with other steps. */
  #planAnswers(question) {
    const written = linesOf(question.args.steps);
    const steps = element("textarea", { id: "steps", rows: "6", dir: "auto" });
    steps.value = written;
    const changed = () => (steps.value === written ? {} : { args: { steps: stepsOf(steps.value) } });
    const approve = this.#button("Approve", question, () => ({ decision: "allow", scope: "once", ...changed() }));
    const reason = element("input", { id: "reason", type: "text", maxlength: "1000", autocomplete: "off" });
    const reject = this.#button("Reject", question, () => ({ decision: "deny", ...reasonOf(reason) }));
    reason.addEventListener("keydown", (event) => event.key === "Enter" && reject.click());
    return [
      element("details", {}, element("summary", {}, "Change the steps"), element("label", { for: "steps" }, "Steps"), steps),
      element("div", { class: "buttons" }, approve),
      element("div", { class: "buttons" }, reject, element("label", { for: "reason" }, "because"), reason),
    ];
  }

  #button(label, question, decision) {
    const decide = () => {
      this.#enable(false);
      this.#decide(question, decision());
    };
    const button = element("button", { type: "button", onclick: decide }, label);
    this.#buttons.push(button);
    return button;
  }

  #enable(isEnabled) {
    for (const button of this.#buttons) button.disabled = !isEnabled;
  }
}

/** The choices that allow more than this call, narrowest first, with the labels of their buttons. */
export function lasting({ rule, choices = [] }) {
  const known = choices.length > 0 || !rule ? choices : [{ id: "same", scopes: ["session", "always"], rules: rule }];
  return known.flatMap(({ id, text, scopes, rules }) =>
    scopes.map((scope) => ({ choice: id, scope, rules, label: labelOf(id === "same" ? "" : text, scope) })),
  );
}

function labelOf(text, scope) {
  const what = text === "" ? "" : ` ${text}`;
  return scope === "always" ? `Always allow${what}` : `Allow${what} for this session`;
}

function rulesElement(offers) {
  const title = element("summary", {}, "What the other buttons allow");
  const rules = [...new Set(offers.map((offer) => offer.rules))];
  return element("details", {}, title, element("pre", { class: "output" }, rules.join("\n")));
}

function reasonOf({ value }) {
  return value.trim() ? { reason: value.trim() } : {};
}
