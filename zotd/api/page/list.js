// Renders the list of sessions.

import { element, fill, say } from "./elements.js";
import { inFamilies, label, ordered } from "./sessions.js";

/** Renders the sessions into `list`; `current` is the id of the open one. */
export function showSessions(list, sessions, current) {
  const focused = document.activeElement?.getAttribute("href");
  const items = inFamilies(ordered(sessions));
  fill(list, ...items.map(([session, depth]) => itemOf(session, session.id === current, depth)));
  list.querySelector(`a[href="${CSS.escape(focused ?? "")}"]`)?.focus(); // the focused item was rendered again
}

/** The figures of a session on one line. */
export function showFacts(node, session, usage) {
  const cost = usage?.cost_usd >= 0.01 ? `$${usage.cost_usd.toFixed(2)}` : "";
  say(node, [session.fallback || session.model, session.mode, session.user, session.cwd, cost].filter(Boolean).join(" · "));
}

/** The name of a session, or what replaces it. */
export function nameOf(session) {
  return session.name || "New session";
}

// Levels of subagents that are told apart.
const MOST_DEPTH = 3;

function itemOf(session, isCurrent, depth) {
  const state = label(session);
  const current = isCurrent ? { "aria-current": "page" } : {};
  const mark = element("span", { class: `state ${state.replace(" ", "-")}` }, state);
  const name = element("span", { class: "name", dir: "auto" }, nameOf(session));
  const place = element("span", { class: "place" }, session.cwd);
  const below = depth ? { class: "below", "data-depth": String(Math.min(depth, MOST_DEPTH)) } : {};
  return element("li", below, element("a", { href: `#${session.id}`, ...current }, name, mark, place));
}
