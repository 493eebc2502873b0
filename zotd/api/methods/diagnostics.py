"""The command about language servers."""

import asyncio
from collections.abc import Mapping

from zotd.api.dispatch import Invocation
from zotd.config.language_servers import DiagnosticsSection
from zotd.wire.diagnostics import DiagnosticsScope, KnownServer, LanguageServerReport
from zotd.wire.errors import Code, CommandError

LOOK_S = 5.0
"""Longest wait for the look at which programs are installed; local disks take a millisecond."""


async def listing(call: Invocation, params: DiagnosticsScope) -> LanguageServerReport:
    """List the language servers that run, and those that could."""
    cwd = params.cwd
    if cwd is not None and (not cwd.startswith("/") or "\0" in cwd):
        raise CommandError(Code.BAD_REQUEST, f'cwd must be an absolute path, not "{cwd}"')
    section = call.manager.config.value.diagnostics
    env = call.manager.environment(None, None).variables
    try:
        async with asyncio.timeout(LOOK_S):
            known = await asyncio.to_thread(_known, section, cwd, env)
            servers = await call.manager.planner.edit_checks.listing()
    except TimeoutError as error:
        raise CommandError(Code.TIMEOUT, f"the programs could not be looked for within {LOOK_S:g} s") from error
    shown = [one for one in servers if cwd is None or f"{one.root}/".startswith(f"{cwd.rstrip('/')}/")]
    return LanguageServerReport(section.enabled, shown, known)


def _known(section: DiagnosticsSection, cwd: str | None, env: Mapping[str, str]) -> list[KnownServer]:
    from zotd.diagnostics.servers import installed  # noqa: PLC0415  (few people ask)

    return [KnownServer(row.name, sorted(row.languages), program) for row, program in installed(section, cwd, env)]
