"""A guard: decides about tool calls before they run, and keeps an audit file of them.

The manifest says `"on_failure": {"tool_call": "closed"}`: should this file have a bug, nothing runs unseen.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

from zotd.sdk import Decision, Event, Extension

RECURSIVE_AND_FORCED = re.compile(r"\brm\s+(?=.*(?:-\w*[rR]|--recursive))(?=.*(?:-\w*f|--force))")
"""A demonstration, not a sandbox: a shell has a hundred other ways to delete a directory."""

ext = Extension("guard", "1.0.0")


@ext.guard("tool_call")
def check(event: Event) -> Decision | None:
    """Refuse what deletes whole directories; write down everything."""
    command = str(event.tool_args.get("command", ""))
    refused = event.tool_name == "bash" and RECURSIVE_AND_FORCED.search(command)
    audit(event, "refused" if refused else "allowed")
    if not refused:
        return None
    ext.notify("warn", f"refused: {command}")
    return Decision.block("rm -rf is not allowed here; delete single files, or ask the user to do it")


def audit(event: Event, verdict: str) -> None:
    """Add a line to the audit file."""
    now = datetime.now().astimezone().isoformat(timespec="seconds")
    line = {"time": now, "verdict": verdict, "tool": event.tool_name, "args": event.tool_args}
    with Path(ext.hello.data_dir, "audit.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(line, ensure_ascii=False) + "\n")


ext.run()
