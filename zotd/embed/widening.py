"""Decides which configuration changes a signal may apply.

Any process of the user can send SIGHUP, including a command of the model that has written to `config.toml` before.
Settings that control what runs without approval, where prompts are sent or what may be spent are therefore applied by a
signal only if they become stricter. Other changes wait for `daemon.reload`, which needs the rights of a person, or for
the next start.
"""

from collections.abc import Iterable, Mapping
from typing import cast

from msgspec.structs import replace

from zotd.config import LoadedConfig, RuleEntry, changed_back
from zotd.core.permissions import narrowest

GUARDED = (
    *("api_key_command", "approval.", "budget.", "guard.", "models", "nested", "providers.", "retention.", "rules"),
    *("sandbox.", "users"),
)
"""Settings, or prefixes of settings, of which a signal applies only stricter values."""


NETWORKS = ("open", "hosts", "off")
"""Values of `sandbox.network`; each permits less than the ones before it."""


def narrowed(found: LoadedConfig, old: Mapping[str, object]) -> tuple[LoadedConfig, list[str]]:
    """Return the configuration that a signal applies, and the names of the settings that wait for `daemon.reload`.

    `old` has the current values by name.
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
    """Whether the new value permits at most as much as the old one."""
    before, after = old.get(name), new.get(name)
    # An absent setting is not the same as one whose value is None.
    if before == after and (name in old) == (name in new):
        return True
    if name == "rules":
        return _adds_no_allow(cast("Iterable[RuleEntry]", before), cast("Iterable[RuleEntry]", after))
    if name == "approval.mode":
        return narrowest(str(before), str(after)) == after
    if name == "sandbox.network":
        return NETWORKS.index(str(after)) > NETWORKS.index(str(before))
    return (name == "nested" and after == "off") or (name == "sandbox.default_hosts" and after is False)


def _adds_no_allow(before: Iterable[RuleEntry], after: Iterable[RuleEntry]) -> bool:
    """Whether no rule that asks or denies was removed, and no rule that allows was added."""
    old, new = list(before), list(after)
    is_kept = all(rule in new for rule in old if rule.action != "allow")
    return is_kept and all(rule in old for rule in new if rule.action == "allow")
