// The steps of a plan as text that people edit: a line for each, `[ ]` pending, `[>]` active, `[x]` done. Pure.

const MARKS = { pending: " ", active: ">", done: "x" };

const STATES = Object.fromEntries(Object.entries(MARKS).map(([state, mark]) => [`[${mark}]`, state]));

/** The text of steps. */
export function linesOf(steps) {
  return steps.map(({ text, state = "pending" }) => `[${MARKS[state] ?? "?"}] ${text}`).join("\n");
}

/** The steps that a text stands for; a line without a mark is a pending step. */
export function stepsOf(written) {
  const lines = written.split("\n").map((line) => line.trim());
  return lines.filter((line) => line !== "").map((line) => {
    const state = STATES[line.slice(0, 3).toLowerCase()];
    return state === undefined ? { text: line, state: "pending" } : { text: line.slice(3).trim(), state };
  });
}

/** How far a plan is, in words. */
export function summaryOfPlan({ steps, status, by = "", comment = "" }) {
  const done = steps.filter((step) => step.state === "done").length;
  const whose = by && status !== "draft" ? ` by ${by}` : "";
  return `${done} of ${steps.length} done · ${status}${whose}${comment ? `: ${comment}` : ""}`;
}
