// The position up to which a client has read a session: each event is applied exactly once (docs/protocol.md, "Sessions").

/** Events are missing; attaching again with the cursor gets them. */
export class GapError extends Error {}

/**
 * Whether an event is new to a reader that has applied everything up to the `seq` `last`; throws `GapError`.
 *
 * Live events have no `seq` and are always new; that of `replay_complete` is the end of the replay.
 */
export function isFresh(event, last) {
  if (event.seq === undefined) return true;
  const isMark = event.type === "replay_complete";
  if (event.seq > (isMark ? last : last + 1)) throw new GapError(`events from ${last + 1} on are missing`);
  return isMark || event.seq === last + 1;
}
