"""The rules of all sessions, and what a workspace adds to them (`docs/durability.md`, Approvals).

    config.toml ──> RuleStore ──policy(ground, …)──> permissions.Policy
                       ^            ^
              always ──┘            └── survey: where rules about paths lead, what a trusted workspace forbids

A rule that a user adds applies to all sessions at once. What `survey` finds holds for the run that begins with it.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from zotd import config
from zotd.config import ConfigError, SettingSource
from zotd.core import permissions
from zotd.core.permissions import FILES, NETWORK, Action, PermissionQuery, PermissionRule, Policy
from zotd.permissions.preview import LOOK_S
from zotd.store import rules as stored
from zotd.store.rules import NotSavedError
from zotd.tools.shared import ToolError, locate, open_regular
from zotd.wire.errors import Code, CommandError

FILE = ".zot/config.toml"
"""A workspace's own configuration; of it, `rules` and `approval.mode` count."""

FILE_BYTES = 256 * 1024
"""Its longest form; the longest that was seen has two."""

_WILD = re.compile(r"[*?\[]")


class WorkspaceRules(Struct, frozen=True):
    """What holds where a session works, besides the rules of all."""

    twins: Sequence[PermissionRule] = ()
    """Rules about paths that lead through symbolic links, once more with where they lead: else the real path would be
    a way around a rule."""
    narrowing: Sequence[PermissionRule] = ()
    """What the workspace asks about and denies."""
    mode: str | None = None
    """The workspace's own mode, below which no session of it goes."""
    note: str | None = None
    """What is wrong with its configuration: a sentence for people."""


NO_RULES = WorkspaceRules()


class RuleStore:
    """The rules of the configuration; one object for all sessions."""

    def __init__(self, rules: Iterable[config.RuleEntry] = (), *, path: Path | None = None) -> None:
        """`path`: the configuration's file, for rules that are added; None: none can be."""
        self.rules: tuple[PermissionRule, ...] = ()
        """Replaced as a whole when one is added."""
        self.narrowing: Sequence[PermissionRule] = ()
        """Those of them that ask or deny."""
        self.replace(rules)
        self._path = path

    def replace(self, rules: Iterable[config.RuleEntry]) -> None:
        """Other rules from now on; where those about paths lead is looked up again when a run begins."""
        self._use(tuple(map(_rule, rules)))

    async def check(self, rule: PermissionRule) -> None:
        """Raise CommandError if `add` could not save the rule; checked before a decision is taken."""
        await self._in_thread(rule, save=False)

    async def add(self, rule: PermissionRule) -> None:
        """Save the rule, and have it hold for all sessions.

        Raises CommandError when it cannot be saved; it holds for none of them then.
        """
        await self._in_thread(rule, save=True)
        if rule not in self.rules:
            self._use((*self.rules, rule))

    async def survey(self, cwd: str, *, home: str | None, is_trusted: bool) -> WorkspaceRules:
        """Return the rules for sessions in `cwd`; the workspace's own only if it is trusted.

        `home`: what `~` stands for. Where something cannot be read, every call is asked about, and `note` says so.
        """
        if not is_trusted and not self.narrowing:
            return NO_RULES
        try:
            async with asyncio.timeout(LOOK_S):
                return await asyncio.to_thread(self._survey, self.narrowing, cwd, home, is_trusted=is_trusted)
        except TimeoutError:
            return _closed(f"{cwd} did not answer within {LOOK_S:g} s")

    def policy(
        self,
        ground: WorkspaceRules,
        *,
        mode: str,
        granted: Iterable[PermissionRule],
        limit: Callable[[PermissionQuery], str] | None = None,
    ) -> Policy:
        """What holds for a session in this mode, now; `limit`: what holds for its run (`Policy.limit`)."""
        return Policy(
            mode=permissions.narrowest(mode, ground.mode),
            rules=(*self.rules, *ground.twins) if ground.twins else self.rules,
            narrowing=ground.narrowing,
            granted=tuple(granted),
            limit=limit,
        )

    def _use(self, rules: tuple[PermissionRule, ...]) -> None:
        self.rules = rules
        self.narrowing = [rule for rule in rules if rule.action is not Action.ALLOW]

    def _survey(
        self, rules: Sequence[PermissionRule], cwd: str, home: str | None, *, is_trusted: bool
    ) -> WorkspaceRules:
        path = Path(cwd, FILE)
        # Where the workspace's `.zot` is the home of all, its configuration is the user's own, and no floor.
        is_ours = self._path is not None and os.path.realpath(path) == os.path.realpath(self._path)
        own = _own(path) if is_trusted and not is_ours else NO_RULES
        narrowing = [rule for rule in own.narrowing if rule.action is not Action.ALLOW]
        return WorkspaceRules(
            twins=_twins(rules, cwd, home),
            narrowing=(*narrowing, *_twins(narrowing, cwd, home)),
            mode=own.mode,
            note=own.note,
        )

    async def _in_thread(self, rule: PermissionRule, *, save: bool) -> None:
        if self._path is None:
            raise CommandError(Code.UNSUPPORTED, "there is no configuration file for the rule; use the scope session")
        try:
            await asyncio.to_thread(stored.append if save else stored.check, self._path, rule)
        except NotSavedError as error:
            raise CommandError(Code.CONFLICT, str(error)) from error


def _own(path: Path) -> WorkspaceRules:
    """What a workspace's configuration says."""
    try:
        with open_regular(path) as file:
            content = file.read(FILE_BYTES + 1)
        if len(content) > FILE_BYTES:
            return _closed(f"{path} has more than {FILE_BYTES >> 10} KiB")
        loaded = config.parse(content.decode(), path)
    except (FileNotFoundError, NotADirectoryError):
        return NO_RULES
    except (ConfigError, ToolError, ValueError) as error:
        return _closed(str(error))
    except OSError as error:
        return _closed(f"{path} cannot be read: {error.strerror}")
    has_mode = loaded.sources["approval.mode"] is SettingSource.FILE
    return WorkspaceRules(
        narrowing=tuple(map(_rule, loaded.config.rules)), mode=loaded.config.approval.mode if has_mode else None
    )


def _closed(problem: str) -> WorkspaceRules:
    """The rules of the workspace cannot be read, so a person decides about every call."""
    note = f"{problem}; until that is fixed, every tool call needs an approval"
    return WorkspaceRules(narrowing=(PermissionRule("*", Action.ASK),), note=note)


def _twins(rules: Iterable[PermissionRule], cwd: str, home: str | None) -> tuple[PermissionRule, ...]:
    """The rules about paths whose fixed beginning is not where it leads, with where that is."""
    found: list[PermissionRule] = []
    for rule in rules:
        if rule.tool in {NETWORK, FILES}:
            continue
        wild = _WILD.search(rule.match)
        fixed = rule.match[: wild.start()] if wild else rule.match
        folder, slash, rest = fixed.rpartition("/") if wild else (fixed, "", "")
        if (folder or slash) and "\0" not in folder:
            place = os.fspath(locate(folder or "/", cwd=cwd, home=home))
            real = os.path.realpath(place)
            if real != place:
                match = f"{permissions.literally(real)}{slash}{rest}{rule.match[len(fixed) :]}"
                found.append(PermissionRule(rule.tool, rule.action, match))
    return tuple(found)


def _rule(found: config.RuleEntry) -> PermissionRule:
    return PermissionRule(found.tool, Action(found.action), found.match)
