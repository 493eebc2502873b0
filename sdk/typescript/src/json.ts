/**
 * JSON without surprises: what `JSON.stringify` would drop or falsify is an error.
 *
 * @module
 */

/** A JSON object: a JSON Schema, arguments of a tool. */
export type JsonObject = Record<string, unknown>;

/** A lone surrogate in the output of `JSON.stringify`; an even number of backslashes before it escape each other. */
const LONE_SURROGATE = /(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g;

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The value as JSON. Lone surrogates (file names that are not UTF-8) become `?`, as JSON readers refuse them.
 *
 * @throws TypeError: the value contains itself, or something that JSON cannot represent.
 */
export function jsonText(value: unknown): string {
  const text: string | undefined = JSON.stringify(value, checked);
  if (text === undefined) throw new TypeError(`${named(value)} is not a JSON value`);
  return text.includes("\\ud") ? text.replace(LONE_SURROGATE, "$1?") : text;
}

function checked(_key: string, value: unknown): unknown {
  // JSON.stringify makes `{}` of a Map or a Set, and `null` of NaN.
  const isLost =
    value instanceof Map ||
    value instanceof Set ||
    typeof value === "bigint" ||
    typeof value === "function" ||
    typeof value === "symbol" ||
    (typeof value === "number" && !Number.isFinite(value));
  if (isLost) throw new TypeError(`${named(value)} is not a JSON value`);
  return value;
}

/** What a value is, for a message. */
export function named(value: unknown): string {
  if (typeof value === "number" && !Number.isFinite(value)) return String(value);
  if (typeof value === "object" && value !== null) return `a ${value.constructor?.name ?? "object"}`;
  return value === null || value === undefined ? String(value) : `a ${typeof value}`;
}
