"""Sentences about the daemons of a database and what waits for them."""

from zotd.client.blocking import Json
from zotd.client.fields import number, strings
from zotd.client.humanize import counted

ALONE = "no other daemon can use these sessions: they are in a file, not in PostgreSQL (docs/postgresql.md)"


def why(waiting: Json) -> str:
    """Return a sentence that says for what prompts of batches wait."""
    labels, daemons = ", ".join(strings(waiting, "labels")), number(waiting, "daemons")
    of_them = f"of {daemons} with the labels {labels}" if labels else f"of {daemons}"
    prompts = number(waiting, "prompts")
    wait = f"{counted(prompts, 'prompt')} wait{'s' if prompts == 1 else ''} for"
    if not daemons:
        return f"{wait} a daemon with the labels {labels}: none has them"
    return f"{wait} a free place in one {of_them}"
