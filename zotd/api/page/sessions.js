// The list of sessions, as one value. Pure: the time is an argument.

// As many sessions as a page of `session.list` gives.
export const PAGE = 100;

/** What a person wants to know of a session: one of these words. */
export function label(session) {
  if (["waiting", "held", "blocked"].includes(session.state)) return "needs you";
  if (session.state === "running") return "working";
  if (session.failed) return "failed";
  return session.state;
}

/** A page of `session.list`, added to what is known: a Map of sessions by id. */
export function listed(known, page) {
  return new Map([...known, ...page.map((session) => [session.id, session])]);
}

/** An event of the topic `sessions`; `now` in milliseconds. */
export function told(known, event, now) {
  const sessions = new Map(known);
  if (event.type === "session_removed") {
    sessions.delete(event.session);
    return sessions;
  }
  const { session: id, name, cwd, state, failed = false } = event;
  const before = sessions.get(id) ?? {};
  sessions.set(id, { ...before, id, name, cwd, state, failed, updated: new Date(now).toISOString() });
  return sessions;
}

const RANKS = { "needs you": 0, working: 1 };

/** Those that need somebody first, then those that work, then the rest; the latest first among equals. */
export function ordered(sessions) {
  const rank = (session) => RANKS[label(session)] ?? 2;
  return [...sessions.values()].sort((a, b) => rank(a) - rank(b) || (a.updated < b.updated ? 1 : -1));
}
