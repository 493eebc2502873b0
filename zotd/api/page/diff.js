// Parses unified diffs. Pure.

const HUNK = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

/** `{sign, text}` for each line, with `sign` `+`, `-`, a space, or `@` for headers; null if the text is no diff. */
export function diffRows(text) {
  const rows = [];
  let [gone, come, isDiff] = [0, 0, false];
  for (const line of text.split("\n")) {
    const hunk = gone <= 0 && come <= 0 ? HUNK.exec(line) : null;
    if (hunk) {
      [gone, come, isDiff] = [Number(hunk[1] ?? 1), Number(hunk[2] ?? 1), true];
      rows.push({ sign: "@", text: line });
      continue;
    }
    const sign = gone > 0 || come > 0 ? signOf(line) : "@";
    if (sign !== "+" && sign !== "@") gone -= 1;
    if (sign !== "-" && sign !== "@") come -= 1;
    rows.push({ sign, text: sign === "@" ? line : line.slice(1) });
  }
  return isDiff ? rows : null;
}

/** The changed lines, without file names, line numbers and leading empty lines. */
export function changesOf(rows) {
  const start = rows.findIndex(({ sign, text }) => sign !== "@" && (sign !== " " || text.trim()));
  const shown = start < 0 ? [] : rows.slice(start);
  return shown.map((row) => (row.sign === "@" ? { sign: "@", text: "…" } : row));
}

function signOf(line) {
  if (line === "") return " "; // an empty line whose leading space was trimmed
  return "+- ".includes(line[0]) ? line[0] : "@";
}
