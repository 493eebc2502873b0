// What can be completed before the cursor of the prompt box, as in the terminal client. Pure.

const COMMAND = /^\/[^\s/]*$/;
const FILE = /(?:^|\s)@(?:"([^"\n]*)|([^\s"]*))$/;

/**
 * `{kind, start, query}` of what is being typed before `cursor`, or null: a `command` at the beginning of the text, or a `file`
 * (also something that an extension offers to mention) at the beginning of a word. `start` is the index of the slash or the `@`.
 */
export function tokenAt(text, cursor) {
  const before = text.slice(0, cursor);
  if (COMMAND.test(before)) return { kind: "command", start: 0, query: before.slice(1) };
  const found = FILE.exec(before);
  if (found === null) return null;
  return { kind: "file", start: before.lastIndexOf("@", found.index + 1), query: found[1] ?? found[2] };
}

/** How a choice is written in the text. Without quotes, a space would end a mention. */
export function written(kind, name) {
  if (kind === "command") return `/${name}`;
  return name.includes(" ") ? `@"${name}"` : `@${name}`;
}

/** Whether two tokens are the same one, of which more or less is typed. */
export function isSame(one, other) {
  return one !== null && other !== null && one.kind === other.kind && one.start === other.start;
}

/** The choices that may still fit what is typed by now, in their order: those that have its characters in this order. */
export function fitting(choices, query) {
  const typed = [...query.toLowerCase()];
  return choices.filter(({ name }) => {
    let at = 0;
    const lower = name.toLowerCase();
    return typed.every((character) => {
      at = lower.indexOf(character, at) + 1;
      return at > 0;
    });
  });
}

/** The choices of an answer to `complete`. */
export function choicesOf({ items, found = [] }) {
  const details = new Map(found.map((one) => [one.text, one]));
  return items.map((name) => ({ name, detail: details.get(name)?.detail ?? "", source: details.get(name)?.source ?? "" }));
}
