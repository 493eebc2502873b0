// Lines that begin with a slash, as in the terminal client. Pure.

/**
 * `{name, args}` of a command; null if the text is a prompt. Names of commands contain no slash, so `/usr/bin is full` is a
 * prompt, and `//name` is a prompt that begins with a slash.
 */
export function commandOf(text) {
  const found = /^\/([^\s/]+)(?:\s+([^]*))?$/.exec(text.trim());
  return found === null ? null : { name: found[1], args: found[2] ?? "" };
}

/** The prompt that a text means which is no command. */
export function promptOf(text) {
  return text.startsWith("//") ? text.slice(1) : text;
}
