"""All `zotctl` commands except `ping` and `status`. Each module in `NOUNS` adds its own parsers."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import cache

from zotctl import (
    adapters,
    agent_options,
    agents,
    approvals,
    attach,
    audit,
    auth,
    backup,
    channel,
    checkpoints,
    completion,
    config,
    daemon,
    diagnostics,
    doctor,
    export,
    ext,
    fleet,
    fork,
    import_sessions,
    jobs,
    log,
    mcp,
    metrics,
    models,
    output,
    parser_tree,
    pipe,
    plan,
    prune,
    push,
    queue,
    reload,
    restart,
    sandbox,
    schedule,
    search,
    send,
    service,
    session_actions,
    sessions,
    share,
    token,
    top,
    tree,
    trust,
    usage,
    users,
    worktree,
)
from zotd.client import place
from zotd.client.errors import ClientError, code_of
from zotd.client.interrupts import InterruptedBySignal, OutputLostError
from zotd.client.options import add_place_flags
from zotd.sanitize import harmless
from zotd.wire.version import VERSION

EXAMPLES = """\
examples:
  zotctl status --json
  zotctl sessions --state running
  zotctl send --session tests "run them again" --wait
  zotctl queue --last
  zotctl continue --last --wait
  zotctl schedule add "0 9 * * 1-5" "check the CI" --session tests
  zotctl attach --plain --last
  zotctl approvals
  zotctl plan --last
  zotctl diagnostics
  zotctl search flaky test
  zotctl rename s_01JX… tests
  zotctl delete tests
  zotctl export --session s_01JX… --format markdown -o talk.md
  zotctl share tests -o talk.html
  zotctl usage --since 7d
  zotctl ext install https://git.example.org/ann/weather
  zotctl mcp add issues https://example.org/mcp
  zotctl trust grant .
  zotctl login anthropic
  zotctl models check
  zotctl backup ~/zot-backup.db
  zotctl prune --older-than 90d --dry-run
  zotctl sandbox try -- make test
  zotctl worktree add parser
  zotctl checkpoints restore 41 src/parser.py
  zotctl doctor
  zotctl restart --when-idle
  zotctl token create phone --role approve
  zotctl fleet status

Commands that read or change sessions start the daemon if none runs. Commands about the daemon do not: ping and status
(without --autostart), stop, doctor, reload, service, metrics, top and fleet top. Some commands, such as config, need no daemon.
"""

NOUNS = (
    *(
        daemon,
        restart,
        doctor,
        reload,
        service,
        metrics,
        top,
        sessions,
        send,
        queue,
        schedule,
        attach,
        approvals,
        plan,
        log,
    ),
    *(
        session_actions,
        search,
        tree,
        agents,
        diagnostics,
        adapters,
        agent_options,
        fork,
        export,
        share,
        import_sessions,
        jobs,
        usage,
        ext,
        mcp,
        trust,
        auth,
        models,
        token,
        users,
        fleet,
        push,
        audit,
        config,
    ),
    *(channel, sandbox, worktree, checkpoints, backup, prune, completion, pipe),
)
"""Modules with `add(commands)`, in the order of the help."""

AUTOSTART = "start the daemon if none runs"

THIN = {
    "ping": ("check whether the daemon answers", {"--autostart": AUTOSTART}),
    "status": ("show the state of the daemon", {"--json": "print the result as JSON", "--autostart": AUTOSTART}),
}
"""Commands that `zotctl.__main__` runs itself: their help and flags."""


HERE_ONLY = frozenset(
    {
        "backup",
        "verify",
        "restore",
        "config",
        "restart",
        "service",
        "doctor",
        "sandbox",
        "worktree",
        "checkpoints",
        "mcp",
        "adapters",
        "pipe",
    }
)
"""Commands that use local files and processes, and so refuse --host."""


def main(argv: Sequence[str]) -> int:
    """Run with `argv` and return the exit code: 0, 1 for an error, 2 for bad usage, 130 after Ctrl-C."""
    if argv[:1] == [completion.CANDIDATES] and len(argv) > 1:
        return completion.print_candidates(parser(), argv[1], list(argv[2:]))
    args = parser().parse_args(argv)
    if args.no_color:
        output.switch_colour_off()
    try:
        _check_place(args)
        return int(args.run(args))
    except ClientError as error:
        return _failed(error, as_json=getattr(args, "json", False))
    except (KeyboardInterrupt, InterruptedBySignal):
        return 130
    except OutputLostError:
        output.forget_stdout()
        return 1


def _failed(error: ClientError, *, as_json: bool) -> int:
    """Print the error to standard error; with `--json` also as an object with its code (`docs/troubleshooting.md`)."""
    sys.stderr.write(f"zotctl: {harmless(str(error))}\n")  # it may quote an extension
    if as_json:
        output.print_json({"v": 1, "error": str(error), "code": code_of(error)})
    return 1


def _check_place(args: argparse.Namespace) -> None:
    """Raise `ClientError` if a command for this machine is used with a remote daemon."""
    where = place.of(os.environ)
    if where.is_remote and args.noun in HERE_ONLY:
        raise ClientError(
            f"`zotctl {args.noun}` works on the local machine only; run it on the machine of {where.name}"
        )


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    made = argparse.ArgumentParser(
        prog="zotctl",
        description="Manage the zot daemon and its sessions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument("-v", "--version", action="version", version=f"zotctl {VERSION}")
    made.add_argument(
        "--no-color",
        action="store_true",
        help="print without colours; the default with NO_COLOR and outside a terminal",
    )
    add_place_flags(made)
    commands = made.add_subparsers(metavar="COMMAND", required=True, dest="noun")
    for name, (summary, flags) in THIN.items():
        parser_ = commands.add_parser(name, help=summary)  # for the help and for completion only
        for flag, about in flags.items():
            parser_.add_argument(flag, action="store_true", help=about)
    for noun in NOUNS:
        noun.add(commands)
    parser_tree.describe(made)
    return made
