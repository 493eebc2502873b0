"""A command and a guard in one file, without a manifest: `zot -e examples/extensions/review.py`."""

import re

from zotd.sdk import Decision, Event, Extension, Prompt

ext = Extension("review", "1.0.0")

FORCED = re.compile(r"\s--force\b(?!-)")


@ext.command("review")
def review(args: str) -> Prompt:
    """Have the model review files, or what is not committed yet."""
    return Prompt(f"Review {args or 'the changes that are not committed'}. Name what is wrong, and nothing else.")


@ext.guard("tool_call")
def check(event: Event) -> "Decision | None":
    """Pushes without force: whoever has pushed in the meantime would lose their work."""
    command = str(event.tool_args.get("command"))
    if event.tool_name != "bash" or "git push" not in command or not FORCED.search(command):
        return None
    ext.notify("warn", "a forced push became one with --force-with-lease")
    return Decision.args({**event.tool_args, "command": FORCED.sub(" --force-with-lease", command)})


ext.run()
