"""`zotctl jobs`: commands that run in the background of sessions; `zotctl jobs stop` ends one."""

import argparse
from collections.abc import Mapping, Sequence

import msgspec

from zotctl import link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Connection, Json
from zotd.client.choosing import sessions
from zotd.client.errors import ClientError
from zotd.client.fields import number, text
from zotd.client.jobs import places, state_words
from zotd.sanitize import one_line
from zotd.wire.api import JobList
from zotd.wire.base import convert
from zotd.wire.jobs import RUNNING, JobInfo

EPILOG = """\
examples:
  zotctl jobs                       list the jobs that run, of all sessions
  zotctl jobs --last                list those of one session, also jobs that have ended
  zotctl jobs stop j1 --last        end one with all that it has started
  zotctl jobs --json

A job is a command that the model has begun in the background. It ends with its session, unless its state is "running (kept)".
"""

COMMAND_CHARS = 60
"""Longest excerpt of a command in the table."""

HEAD = ("SESSION", "JOB", "STATE", "LISTENS ON", "COMMAND")


def add(commands: Subparsers) -> None:
    """Register `jobs`."""
    parser = commands.add_parser("jobs", help="list or stop commands in the background of sessions", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("change", nargs="*", help="stop JOB (default: list the jobs)")
    link.add_session_flags(parser, required=False)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        if args.change:
            return _stop(connection, args)
        found = _jobs(connection, args)
    if args.json:
        rows = [{"session": session, **msgspec.to_builtins(job)} for session, jobs in found.items() for job in jobs]
        output.print_json({"v": 1, "jobs": rows})
    else:
        _show(found)
    return 0


def _jobs(connection: Connection, args: argparse.Namespace) -> Mapping[str, Sequence[JobInfo]]:
    """Return the jobs by session: of the chosen one, or those that run of all."""
    if args.session or args.last:
        session = text(link.chosen(connection, args), "id")
        return {session: _of(connection, session)}
    busy = [text(one, "id") for one in sessions(connection, subagents=True) if number(one, "jobs")]
    return {session: [job for job in _of(connection, session) if job.state == RUNNING] for session in busy}


def _of(connection: Connection, session: str) -> list[JobInfo]:
    return convert(connection.call("session.jobs", session=session), JobList).jobs


def _show(found: Mapping[str, Sequence[JobInfo]]) -> None:
    rows = [
        (session, job.id, state_words(job), places(job.ports), one_line(job.command)[:COMMAND_CHARS])
        for session, jobs in found.items()
        for job in jobs
    ]
    if rows:
        output.print_table(HEAD, rows)
    else:
        print("there are no jobs")


def _stop(connection: Connection, args: argparse.Namespace) -> int:
    match args.change:
        case ["stop", job]:
            session = _session_of(connection, args, job)
        case words:
            raise ClientError(f'unknown jobs command "{" ".join(words)}"; use stop JOB')
    ended: Json = connection.call("session.job_stop", session=session, job=job)
    if args.json:
        output.print_json({"v": 1, "session": session, **ended})
    else:
        info = convert(ended, JobInfo)
        print(one_line(f"{info.id}: {state_words(info)}"))
    return 0


def _session_of(connection: Connection, args: argparse.Namespace, job: str) -> str:
    """Return the session of a job: the chosen one, or the only one in which a job of that id runs."""
    if args.session or args.last:
        return text(link.chosen(connection, args), "id")
    having = [session for session, jobs in _jobs(connection, args).items() if job in {one.id for one in jobs}]
    if len(having) != 1:
        which = "no job" if not having else "more than one job"
        raise ClientError(f'{which} with the ID "{job}" runs; `zotctl jobs` lists them, -s chooses the session')
    return having[0]
