// Describes what a session is doing in a few words. Pure.

/** One line; empty if the session is idle. `mayDecide`: this client may approve calls. */
export function activity({ approvals, run, entries, held, queue, session }) {
  if (approvals.length > 0) return `Needs you: ${approvals[0].tool}`;
  if (run !== null) return run.retry || busy(entries);
  if (held) return queue.length > 0 ? "Held: press Continue to run the queued prompts." : "Held: the run was interrupted.";
  if (session?.state === "blocked") return "Blocked";
  return "";
}

function busy(entries) {
  const open = entries.findLast((entry) => entry.open || entry.state === "writing" || entry.state === "running");
  if (open?.kind === "thought") return "Thinking…";
  if (open?.kind === "reply") return "Answering…";
  if (open?.kind !== "tool") return "Working…";
  return open.state === "writing" ? `Calling ${open.name}…` : `Running ${open.name}…`;
}
