// The list of sessions as a value. Pure: the time is an argument.

// Page size of `session.list`.
export const PAGE = 100;

/** The state of a session in one of these words. */
export function label(session) {
  if (["waiting", "held", "blocked"].includes(session.state)) return "needs you";
  if (session.state === "running") return "working";
  if (session.failed) return "failed";
  return session.state;
}

/** Adds a page of `session.list` to the known sessions: a Map by id. */
export function listed(known, page) {
  return new Map([...known, ...page.map((session) => [session.id, session])]);
}

/** Applies an event of the topic `sessions`; `now` is in milliseconds. */
export function told(known, event, now) {
  const sessions = new Map(known);
  if (event.type === "session_removed") {
    sessions.delete(event.session);
    return sessions;
  }
  const { session: id, name, cwd, state, failed = false, parent } = event;
  const before = { ...sessions.get(id), ...(parent && { parent: { session: parent } }) };
  sessions.set(id, { ...before, id, name, cwd, state, failed, updated: new Date(now).toISOString() });
  return sessions;
}

const RANKS = { "needs you": 0, working: 1 };

/** Sorts sessions: those that need the user first, then running ones, then the rest; newest first within each. */
export function ordered(sessions) {
  const rank = (session) => RANKS[label(session)] ?? 2;
  return [...sessions.values()].sort((a, b) => rank(a) - rank(b) || (a.updated < b.updated ? 1 : -1));
}

/** Sessions in the order of the list, each with its depth: subagents follow their parents, and need one that is known. */
export function inFamilies(sessions) {
  const below = new Map();
  for (const session of sessions) {
    const parent = session.parent?.session ?? "";
    below.set(parent, [...(below.get(parent) ?? []), session]);
  }
  const found = [];
  const add = (parent, depth) => {
    for (const session of below.get(parent) ?? []) {
      found.push([session, depth]);
      add(session.id, depth + 1);
    }
  };
  add("", 0);
  return found;
}

/** How many sessions need the user; what a subagent asks counts for the session above it. */
export function waitingIn(known) {
  return [...known.values()].filter((session) => !session.parent && label(session) === "needs you").length;
}

// Directories that are offered for a new session.
const MOST_PLACES = 50;

/** The other agents that run sessions, by name. */
export function agentsOf(known) {
  const driven = [...known.values()].filter((session) => session.provider === "acp");
  return [...new Set(driven.map((session) => session.model))].sort();
}

/** The directories of the known sessions, the one used last first. */
export function placesOf(known) {
  const newest = [...known.values()].sort((a, b) => (a.updated < b.updated ? 1 : -1));
  return [...new Set(newest.map((session) => session.cwd).filter(Boolean))].slice(0, MOST_PLACES);
}
