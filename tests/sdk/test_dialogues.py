"""The conversations of the corpus, with an extension in each language."""

import json

from tests.corpus.frames import rows_of

PYTHON = """
    @ext.tool
    def echo(text: str) -> str:
        '''Returns its text.'''
        if text == "fail":
            raise ValueError("it failed")
        return text

    @ext.command("echo")
    def shout(args):
        '''Displays its arguments.'''
        return Display(args)

    @ext.guard("tool_call")
    def guard(event):
        return Decision.block("not here") if event.tool_name == "forbidden" else None
    """

TYPESCRIPT = """
    ext.tool("echo", { description: "Returns its text.", args: { text: arg.string() } }, ({ text }) => {
      if (text === "fail") throw new Error("it failed");
      return text;
    });
    ext.command("echo", "Displays its arguments.", (args) => new Display(args));
    ext.guard("tool_call", (event) => (event.tool_name === "forbidden" ? Decision.block("not here") : undefined));
    """


def test_an_extension_keeps_to_every_dialogue(launch_program):
    for dialogue in rows_of("dialogues.jsonl"):
        driver = launch_program(python=PYTHON, typescript=TYPESCRIPT)
        for step in dialogue.steps:
            if "host" in step:
                driver.send_line(json.dumps(step["host"], ensure_ascii=False).encode())
            else:
                expected = step["extension"]
                frame = driver.expect(str(expected["type"]))
                assert {key: frame.get(key) for key in expected} == expected, dialogue.id
