// Where a client has read to in a session: an event is taken once, and none is left out (docs/protocol.md, "Sessions").

/** Events are missing: attaching again with the cursor gets them. */
export class GapError extends Error {}

/**
 * Whether an event was not taken yet by a reader that has taken everything up to the `seq` `last`.
 *
 * Live events carry no `seq` and are always new; `replay_complete` carries the one at which the replay has ended.
 */
export function isFresh(event, last) {
  if (event.seq === undefined) return true;
  const isMark = event.type === "replay_complete";
  if (event.seq > (isMark ? last : last + 1)) throw new GapError(`events from ${last + 1} on are missing`);
  return isMark || event.seq === last + 1;
}
