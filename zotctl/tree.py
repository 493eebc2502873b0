"""`zotctl tree`: draws the branches of a session, its jobs and its subagents, and lists its messages with their numbers."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client import choosing, colour
from zotd.client.blocking import Json
from zotd.client.families import in_families, indented
from zotd.client.fields import amount, child, children, number, parent_id, session_id, spoken, text
from zotd.client.humanize import counted, money
from zotd.client.jobs import places, state_words
from zotd.sanitize import one_line
from zotd.wire.base import convert
from zotd.wire.jobs import RUNNING, JobInfo

EPILOG = """\
examples:
  zotctl tree --session tests
  zotctl tree --last --messages 10

  s_01JX…  "mend the door"
  └─ 1-40  "mend the door"  32 messages  2026-11-22 06:33
     ├─ at 12: 41-60  "with a hammer"  9 messages  2026-11-22 06:41  <- current
     └─ at 30: s_01JY…  "mend the door (fork)"
  1 job
  j1  running 12m  localhost:5173  npm run dev
  subagents, $0.31 in all
  └ s_01JZ…  "find the hinges"  reviewer  running  $0.12  1 job

A branch begins at the message to which the session was rewound, or at which it was forked. zotctl rewind and zotctl
fork --at take these message numbers.
"""

SUBAGENTS = "subagents, {} in all"

WAITS = "waits for a decision: zotctl approvals"

COMMAND_CHARS = 60
"""Longest excerpt of a command of a job."""

WORDS_CHARS = 100
"""Most characters of a message in the list."""


@dataclass
class TreeNode:
    """A branch of the session, or a session forked from it."""

    at: int
    label: str
    first: int = 0
    last: int = 0
    goes_on: bool = False
    nodes: list["TreeNode"] = field(default_factory=list)


def add(commands: Subparsers) -> None:
    """Register `tree`."""
    parser = commands.add_parser(
        "tree", help="show how a session branches (rewinds, forks), its jobs and its subagents", epilog=EPILOG
    )
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    link.add_session_flags(parser)
    parser.add_argument(
        "--messages", type=int, default=0, metavar="N", help="also list the newest N messages with their numbers"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection, output.progress("reading the session"):
        session = text(link.chosen(connection, args), "id")
        tree = connection.call("session.tree", session=session)
        members = children(connection.call("session.family", session=session), "sessions")
        jobs = children(connection.call("session.jobs", session=session), "jobs")
        said = connection.call("session.history", session=session, limit=args.messages) if args.messages > 0 else {}
    if args.json:
        output.print_json({"v": 1, **tree, "family": members, "jobs": jobs, **said})
        return 0
    head = f'{text(tree, "session")}  "{text(tree, "name")}"'
    print(output.painted(one_line(head), colour.BOLD))
    origin = child(tree, "origin")
    if origin:
        print(one_line(f'forked from {text(origin, "session")}  "{text(origin, "name")}", at {number(origin, "at")}'))
    for line in drawn(rooted(tree).nodes):
        print(one_line(line))
    for line in [*job_lines([convert(job, JobInfo) for job in jobs]), *family_lines(members)]:
        print(one_line(line))
    for message in children(said, "messages"):
        words = " ".join(spoken(message).split())[:WORDS_CHARS]
        print(one_line(f"{number(message, 'seq'):6}  {text(message, 'role')}: {words}"))
    return 0


def job_lines(jobs: Sequence[JobInfo]) -> list[str]:
    """Return a line for each job that runs, with the addresses on which it listens, and one for all of them; none if there are none."""
    running = [job for job in jobs if job.state == RUNNING]
    lines = [counted(len(running), "job")] if running else []
    for job in running:
        about = [job.id, state_words(job), places(job.ports), job.command[:COMMAND_CHARS]]
        lines.append("  ".join(part for part in about if part))
    return lines


def family_lines(members: Sequence[Json]) -> list[str]:
    """Return a line for each subagent, with its state, cost and number of jobs, and one for all of them; none if there are none."""
    if len(members) < 2:
        return []
    lines = [SUBAGENTS.format(money(amount(child(members[0], "family_usage"), "cost_usd")))]
    for one, depth in in_families(members, session_id, parent_id):
        if depth:
            kind = text(child(one, "parent"), "agent")
            state = WAITS if text(one, "state") == "waiting" else choosing.state(one)
            about = [
                f'"{text(one, "name")}"',
                *([kind] if kind else []),
                state,
                money(amount(child(one, "usage"), "cost_usd")),
                *([counted(jobs, "job")] if (jobs := number(one, "jobs")) else []),
            ]
            lines.append(f"{indented(text(one, 'id'), depth)}  {'  '.join(about)}")
    return lines


def rooted(tree: Json) -> TreeNode:
    """Return an unnamed root, with each branch and fork below the branch that it starts from."""
    branches = [_branch(branch) for branch in children(tree, "branches")]
    if branches:
        branches[-1].goes_on = True
    forks = [
        TreeNode(number(fork, "at"), f'{text(fork, "session")}  "{text(fork, "name")}"')
        for fork in children(tree, "forks")
    ]
    root = TreeNode(0, "")
    for node in [*branches, *forks]:
        below = next((branch for branch in branches if branch.first <= node.at <= branch.last), root)
        below.nodes.append(node)
    return root


def drawn(nodes: Sequence[TreeNode], indent: str = "") -> list[str]:
    """Return the drawing, a line for each node, ordered by starting message."""
    lines: list[str] = []
    ordered = sorted(nodes, key=lambda node: node.at)
    for place, node in enumerate(ordered, 1):
        is_last = place == len(ordered)
        lines.append(f"{indent}{'└─' if is_last else '├─'} {_line(node)}")
        lines += drawn(node.nodes, indent + ("   " if is_last else "│  "))
    return lines


def _branch(branch: Json) -> TreeNode:
    first, last, messages = (number(branch, name) for name in ("first", "last", "messages"))
    count = counted(messages, "message")
    time = output.moment(text(branch, "time"))
    label = f'{first}-{last}  "{text(branch, "text")}"  {count}  {time}'.rstrip()
    return TreeNode(number(branch, "at"), label, first, last)


def _line(node: TreeNode) -> str:
    begins = f"at {node.at}: " if node.at else ""
    return begins + node.label + ("  <- current" if node.goes_on else "")
