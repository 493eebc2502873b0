"""Masks what others must not read, and counts it."""

import re
from collections.abc import Callable, Mapping, Sequence

from zotd.client.humanize import counted
from zotd.logs import masking
from zotd.sanitize import one_line

_NAMED = re.compile(r"(?i)(KEY|TOKEN|SECRET|PASSW|CREDENTIAL)")
"""Names of environment variables whose values are secrets."""


class Redaction:
    """Masks secrets as logs do, values of variables that are named like secrets, and more; shortens the home directory."""

    def __init__(self, env: Mapping[str, str], *, patterns: Sequence[re.Pattern[str]] = ()) -> None:
        """`env`: the user's environment. `patterns` are masked, too."""
        self.secrets = 0
        self.homes = 0
        self.matches = [0] * len(patterns)
        """By pattern."""
        self._patterns = patterns
        self._mask: Callable[[str], str] = masking.masked
        home = env.get("HOME", "").rstrip("/")
        # Not a part of a longer name: /home/ann is no part of /home/anna.
        self._home = re.compile(re.escape(home) + r"(?![\w.-])") if home else None
        for name, value in env.items():
            if _NAMED.search(name) and len(value) >= masking.SHORTEST_SECRET and not value.startswith("/"):
                masking.hide(value)

    def redacted(self, text: str) -> str:
        """Return the text without what others must not read."""
        for index, pattern in enumerate(self._patterns):
            text, found = pattern.subn(masking.MASK, text)
            self.matches[index] += found
        before = text.count(masking.MASK)
        text = self._mask(text)
        self.secrets += max(text.count(masking.MASK) - before, 0)
        if self._home is not None:
            text, found = self._home.subn("~", text)
            self.homes += found
        return text

    def told(self) -> str:
        """Return what was masked, as a clause for people."""
        parts = [f"masked {counted(self.secrets, 'secret')}"]
        parts += [
            f"{counted(found, 'text')} like {one_line(pattern.pattern)}"
            for pattern, found in zip(self._patterns, self.matches, strict=True)
        ]
        return ", ".join([*parts, f"shortened the home directory {counted(self.homes, 'time')}"])
