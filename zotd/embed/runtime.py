"""The former place of `Runtime`, for programs that import it from here."""

from zotd.embed.former_names import former


def __getattr__(name: str) -> object:
    return former(__name__, name, now_in="zotd.embed.session_runtime", instead="zot.Agent")
