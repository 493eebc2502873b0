"""Which changes of the configuration a signal may not bring.

Any program of the user can send SIGHUP, also a command of the model, which may have written to `config.toml` before.
So a change of a key that decides what runs unasked, where prompts go or what may be spent is taken over by a signal
only when it permits less. Otherwise it waits for `daemon.reload`, which only a person's client may ask for, or for the
next start.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import cast

from zotd.config import LoadedConfig, RuleEntry, changed_back
from zotd.core.permissions import narrowest

GUARDED = ("api_key_command", "approval.", "budget.", "guard.", "nested", "providers.", "retention.", "rules")
"""Keys, and beginnings of keys, of which only narrower values come with a signal."""


def narrowed(found: LoadedConfig, old: Mapping[str, object]) -> tuple[LoadedConfig, list[str]]:
    """What a signal brings of a configuration that was found, and the names of the keys that wait.

    `old`: the values that hold now, by name.
    """
    names = sorted({*old, *found.values})
    waiting = [name for name in names if name.startswith(GUARDED) and not _narrows(name, old, found.values)]
    if not waiting:
        return found, []
    back = {name: old.get(name) for name in waiting if name in old}
    kept = changed_back(found, back, dropped=[name for name in waiting if name not in old])
    names_waiting = ", ".join(waiting)
    sentence = f"config.toml has other values of {names_waiting}; to apply them, run: zotctl reload"
    return replace(kept, warnings=[*found.warnings, sentence]), waiting


def _narrows(name: str, old: Mapping[str, object], new: Mapping[str, object]) -> bool:
    """Whether the new value permits at most what the old one does."""
    before, after = old.get(name), new.get(name)
    if before == after and (name in old) == (name in new):
        return True
    if name == "rules":
        return _adds_no_allow(cast("Iterable[RuleEntry]", before), cast("Iterable[RuleEntry]", after))
    if name == "approval.mode":
        return narrowest(str(before), str(after)) == after
    return name == "nested" and after == "off"


def _adds_no_allow(before: Iterable[RuleEntry], after: Iterable[RuleEntry]) -> bool:
    """Whether all that asks or denies is still there, and every rule that allows was there before."""
    old, new = list(before), list(after)
    is_kept = all(rule in new for rule in old if rule.action != "allow")
    return is_kept and all(rule in old for rule in new if rule.action == "allow")
