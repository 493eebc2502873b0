"""What `/help` prints in the plain chat: the chat's own commands, then those of the daemon, of extensions and of files."""

from collections.abc import Iterator, Mapping

from zotd.client.blocking import Connection, Json
from zotd.client.fields import children, strings, text

BUILT_IN = "built in"
"""Source of a command of the daemon."""


def command_lines(connection: Connection, session: str, own: Mapping[str, str]) -> Iterator[str]:
    """Yield one line for each command of a session. `own`: the chat's commands with their slash, and what they do."""
    rows = dict(own)
    for found in children(connection.call("complete", session=session, kind="command", text=""), "found"):
        name = f"/{text(found, 'text')}"
        if name not in own:
            rows[f"{name} {text(found, 'hint')}".rstrip()] = _meaning(found)
    # The chat's own commands hide those of extensions, which also have a name with the extension's in front.
    for extension in children(connection.call("ext.list", session=session), "extensions"):
        whose = text(extension, "name")
        for name in strings(extension, "commands"):
            if f"/{name}" in own:
                rows[f"/{whose}:{name}"] = f"from {whose}"
    for name, meaning in rows.items():
        yield f"{name:12} {meaning}"


def _meaning(found: Json) -> str:
    detail, source = text(found, "detail"), text(found, "source")
    if source == BUILT_IN:
        return detail
    return f"{detail} (from {source})" if detail else f"from {source}"
