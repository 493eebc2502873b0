"""Names and arguments of tools, as hooks know them and as zot has them.

| zot | hooks |
|---|---|
| `bash {command, timeout}`, seconds | `Bash {command, timeout}`, milliseconds |
| `read {path, offset, limit}` | `Read {file_path, offset, limit}`; paths are absolute |
| `write {path, content}` | `Write {file_path, content}` |
| `edit {path, edits}` | `Edit {file_path, old_string, new_string}`, and `edits` if there are several |
| `grep {pattern, path, glob, ignoreCase}` | `Grep {pattern, path, glob, -i}` |
| `glob {pattern, path}` | `Glob {pattern, path}` |
| `skill {name}` | `Skill {skill}` |
| `fetch {url, raw}` | `WebFetch {url}` |
| `SERVER__TOOL` of an MCP server | `mcp__SERVER__TOOL` |

Every other tool has the same name and the same arguments for both.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from zotd.wire.hooks import CLAUDE_NAMES

Args = Mapping[str, object]

_FIELDS: Mapping[str, Mapping[str, str]] = {
    "bash": {"command": "command", "timeout": "timeout"},
    "read": {"path": "file_path", "offset": "offset", "limit": "limit"},
    "write": {"path": "file_path", "content": "content"},
    "edit": {"path": "file_path"},
    "grep": {"pattern": "pattern", "path": "path", "glob": "glob", "ignoreCase": "-i"},
    "glob": {"pattern": "pattern", "path": "path"},
    "task": {"prompt": "prompt", "description": "description", "agent": "subagent_type", "model": "model"},
    "skill": {"name": "skill"},
    "fetch": {"url": "url"},
}
"""Names of arguments, ours to those of hooks. An argument that is not named here is not told."""

_SEPARATOR = "\n"
"""Between the texts of several edits, so that a hook which searches them finds what it would find in each."""


@dataclass(frozen=True, slots=True)
class TranslatedCall:
    """A call of a tool, as zot makes it in the directory `cwd`."""

    tool: str
    args: Args
    cwd: str

    @property
    def name(self) -> str:
        """The tool's name for hooks."""
        if self.tool in CLAUDE_NAMES:
            return CLAUDE_NAMES[self.tool]
        return f"mcp__{self.tool}" if "__" in self.tool else self.tool

    @property
    def names(self) -> tuple[str, ...]:
        """The names that matchers may call it by."""
        return ("Edit", "MultiEdit") if self.tool == "edit" else (self.name,)

    @property
    def input(self) -> dict[str, object]:
        """The arguments for hooks."""
        if self.tool not in _FIELDS:
            return dict(self.args)
        found = {theirs: self.args[ours] for ours, theirs in _FIELDS[self.tool].items() if ours in self.args}
        if isinstance(path := found.get("file_path"), str):
            found["file_path"] = self._absolute(path)
        if self.tool == "bash" and isinstance(limit := found.get("timeout"), int | float):
            found["timeout"] = limit * 1000
        return found | (_edits(self.args) if self.tool == "edit" else {})

    def changed(self, updated: Args) -> dict[str, object]:
        """Return zot's arguments with those that a hook has changed; fields that it leaves out stay as they are."""
        before = self.input
        if self.tool not in _FIELDS:
            return {**self.args, **updated}
        news = {field: value for field, value in updated.items() if before.get(field) != value}
        found = {ours: news[theirs] for ours, theirs in _FIELDS[self.tool].items() if theirs in news}
        if self.tool == "bash" and isinstance(limit := found.get("timeout"), int | float):
            found["timeout"] = limit / 1000
        if self.tool == "edit":
            found |= _changed_edits(before, news)
        return {**self.args, **found}

    def _absolute(self, path: str) -> str:
        # Texts rather than paths: this runs for each call, and `~` and `..` have to stay what the tool makes of them.
        return os.path.normpath(os.path.join(self.cwd, os.path.expanduser(path)))  # noqa: PTH111, PTH118


def _edits(args: Args) -> dict[str, object]:
    given = args.get("edits")
    edits = [
        {"old_string": edit.get("oldText", ""), "new_string": edit.get("newText", "")}
        for edit in (given if isinstance(given, list) else [])
        if isinstance(edit, dict)
    ]
    joined: dict[str, object] = {
        field: _SEPARATOR.join(str(edit[field]) for edit in edits) for field in ("old_string", "new_string")
    }
    return joined if len(edits) == 1 else {**joined, "edits": edits}


def _changed_edits(before: Args, news: Args) -> dict[str, object]:
    edits = news.get("edits")
    if edits is None and ("old_string" in news or "new_string" in news) and "edits" not in before:
        edits = [{field: news.get(field, before[field]) for field in ("old_string", "new_string")}]
    if not isinstance(edits, list):
        return {}
    texts = [edit for edit in edits if isinstance(edit, dict)]
    return {"edits": [{"oldText": edit.get("old_string"), "newText": edit.get("new_string")} for edit in texts]}
