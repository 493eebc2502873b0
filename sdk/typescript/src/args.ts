/**
 * Arguments of a tool: a description of each gives its JSON Schema, its TypeScript type and its check.
 *
 * @module
 */

import { isObject, type JsonObject } from "./json.ts";

const SHOWN_CHARACTERS = 80;

/** The model has sent arguments that do not fit; the message explains to it why. */
export class ArgumentError extends Error {
  override name = "ArgumentError";
}

/** Describes one argument whose values are of type `T`. */
export interface Arg<T> {
  readonly schema: JsonObject;
  /** What it wants, for messages: "an integer". */
  readonly expected: string;
  readonly isOptional: boolean;
  /** The value as a `T`; `path` names it in messages. @throws ArgumentError: it does not fit. */
  convert(value: unknown, path: string): T;
}

/** Arguments by name. */
export type Args = Record<string, Arg<unknown>>;

/** The values of arguments: what a tool's function gets. */
export type Values<A extends Args> = { [K in keyof A]: A[K] extends Arg<infer T> ? T : never };

function simple<T>(type: string, expected: string, fits: (value: unknown) => value is T) {
  return (about?: string): Arg<T> => ({
    schema: described({ type }, about),
    expected,
    isOptional: false,
    convert(value, path) {
      if (!fits(value)) throw mismatch(path, expected, value);
      return value;
    },
  });
}

/**
 * Descriptions of arguments. The text is for the model.
 *
 * @example
 * ext.tool(
 *   "weather",
 *   {
 *     description: "Current weather of a city.",
 *     args: { city: arg.string("its name"), days: arg.optional(arg.integer("how many"), 1) },
 *   },
 *   ({ city, days }) => `${city}: ${"fog ".repeat(days)}`,
 * );
 */
export const arg = {
  /** Text. @example arg.string("name of a city") */
  string: simple("string", "a string", (value) => typeof value === "string"),

  /** A whole number. @example arg.integer("how many") */
  integer: simple("integer", "an integer", (value): value is number => Number.isInteger(value)),

  /** Any number. @example arg.number("in degrees") */
  number: simple("number", "a number", (value) => typeof value === "number"),

  /** True or false. @example arg.boolean("whether to look into directories") */
  boolean: simple("boolean", "true or false", (value) => typeof value === "boolean"),

  /** One of a few words. @example arg.oneOf(["celsius", "fahrenheit"], "the unit") */
  oneOf<const T extends string>(words: readonly T[], about?: string): Arg<T> {
    const expected = `one of ${words.map(shown).join(", ")}`;
    return {
      schema: described({ type: "string", enum: [...words] }, about),
      expected,
      isOptional: false,
      convert(value, path) {
        const word = words.find((one) => one === value);
        if (word === undefined) throw mismatch(path, expected, value);
        return word;
      },
    };
  },

  /** A list. @example arg.array(arg.string(), "names of files") */
  array<T>(items: Arg<T>, about?: string): Arg<T[]> {
    return {
      schema: described({ type: "array", items: items.schema }, about),
      expected: "an array",
      isOptional: false,
      convert(value, path) {
        if (!Array.isArray(value)) throw mismatch(path, "an array", value);
        return value.map((item: unknown, index) => items.convert(item, `${path}[${index}]`));
      },
    };
  },

  /** An object with these members. @example arg.object({ x: arg.number(), y: arg.number() }, "a point") */
  object<A extends Args>(members: A, about?: string): Arg<Values<A>> {
    return {
      schema: described(objectSchema(members), about),
      expected: "an object",
      isOptional: false,
      convert(value, path) {
        if (!isObject(value)) throw mismatch(path, "an object", value);
        return convertMembers(members, value, `${path}.`);
      },
    };
  },

  /** Any JSON value. @example arg.anything("what to keep") */
  anything(about?: string): Arg<unknown> {
    return { schema: described({}, about), expected: "a value", isOptional: false, convert: (value) => value };
  },

  optional,
};

function optional<T>(inner: Arg<T>): Arg<T | undefined>;
function optional<T>(inner: Arg<T>, fallback: NoInfer<T>): Arg<T>;
/** An argument that may be missing or null, with the value that it then has. @example arg.optional(arg.integer(), 10) */
function optional<T>(inner: Arg<T>, fallback?: T): Arg<T | undefined> {
  return {
    schema: fallback === undefined ? inner.schema : { ...inner.schema, default: fallback },
    expected: `${inner.expected} or null`,
    isOptional: true,
    // Models send null for "not given", whatever the schema says.
    convert: (value, path) => (value === undefined || value === null ? fallback : inner.convert(value, path)),
  };
}

/**
 * The JSON Schema of a tool with these arguments.
 *
 * @example
 * objectSchema({ city: arg.string() }); // { type: "object", properties: { city: { type: "string" } }, required: ["city"] }
 */
export function objectSchema(args: Args): JsonObject {
  const entries = Object.entries(args);
  const required = entries.filter(([, one]) => !one.isOptional).map(([name]) => name);
  const properties = Object.fromEntries(entries.map(([name, one]) => [name, one.schema]));
  return { type: "object", properties, ...(required.length > 0 ? { required } : {}) };
}

/** The values of a call. @throws ArgumentError: they do not fit, or one of them is not described. */
export function convertMembers<A extends Args>(args: A, given: JsonObject, path = ""): Values<A> {
  const unknown = Object.keys(given).find((name) => !Object.hasOwn(args, name));
  if (unknown !== undefined) {
    const names = Object.keys(args).join(", ") || "none";
    throw new ArgumentError(`there is no argument ${path}${unknown}; there are: ${names}`);
  }
  const values = Object.entries(args).map(([name, one]): [string, unknown] => {
    if (!Object.hasOwn(given, name) && !one.isOptional) {
      throw new ArgumentError(`argument ${path}${name} is missing: expected ${one.expected}`);
    }
    return [name, one.convert(given[name], path + name)];
  });
  return Object.fromEntries(values) as Values<A>;
}

function described(schema: JsonObject, about: string | undefined): JsonObject {
  return about === undefined ? schema : { ...schema, description: about };
}

function mismatch(path: string, expected: string, value: unknown): ArgumentError {
  return new ArgumentError(`argument ${path}: expected ${expected}, got ${shown(value)}`);
}

/** A value for a message, cut if it is long. */
export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > SHOWN_CHARACTERS ? text.slice(0, SHOWN_CHARACTERS - 1) + "…" : text;
}
