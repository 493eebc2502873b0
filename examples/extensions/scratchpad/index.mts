// Notes that people take with /note, and that the model reads.

import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";

import { arg, Extension } from "./zot_sdk/index.ts";

const ext = new Extension("scratchpad", "1.0.0");

const file = () => join(ext.hello.data_dir || ".", "notes.txt");
const notes = () => (existsSync(file()) ? readFileSync(file(), "utf8").split("\n").filter(Boolean) : []);

ext.command("note", "write something down for later", (note) => {
  if (!note) throw new Error("nothing to note: /note TEXT");
  appendFileSync(file(), note + "\n");
  return `noted (${notes().length} so far)`;
});

ext.tool(
  "read_notes",
  {
    description: "Read the notes that the user has taken.",
    args: { containing: arg.optional(arg.string("only notes with this text"), "") },
    replay: "safe",
  },
  ({ containing }) => notes().filter((note) => note.includes(containing)).join("\n") || "no notes",
);

await ext.run();
