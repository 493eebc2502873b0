"""`zotctl schedule`: prompts that the daemon sends when they are due (`docs/timers.md`)."""

import argparse
import os
import sys
from datetime import datetime

from zotctl import link, moments, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Connection, Json
from zotd.client.errors import ClientError
from zotd.client.fields import children, text
from zotd.client.options import MODES
from zotd.sanitize import one_line
from zotd.wire.intervals import read_interval

EPILOG = """\
examples:
  zotctl schedule add "0 9 * * 1-5" "check the CI" --session tests
  zotctl schedule add --every 30m "look for new issues" --new --limit-usd 5
  zotctl schedule add --at 17:30 "sum up the day" --last
  zotctl schedule list
  zotctl schedule edit t_01JX --every 2h --limit-usd 10
  zotctl schedule pause t_01JX
  zotctl schedule run t_01JX

A prompt is sent once for each time that it is due, also when the daemon is killed meanwhile. Times that were missed are
made up for by one prompt, or by none with --missed skip. The beginning of an ID is enough.
"""

ADD_EPILOG = """\
examples:
  zotctl schedule add "0 9 * * 1-5" "check the CI" --session tests --tz Europe/Berlin
  zotctl schedule add --every 30m "look for new issues" --new --cwd ~/src/parser --limit-usd 5
  zotctl schedule add --at "2026-12-24 18:00" "wish me a merry Christmas" --last

CRON has five fields: minute, hour, day of month, month, day of week. Put it in quotes.
"""

EDIT_EPILOG = """\
examples:
  zotctl schedule edit t_01JX --cron "30 8 * * 1-5"
  zotctl schedule edit t_01JX --prompt "check the CI, and the nightly build" --limit-usd 10
  zotctl schedule edit t_01JX --no-limit --no-until

What is not given stays. With another time, the timer is next due from now on. A prompt that is being sent goes out as it was.
"""

OPTIONS = ("tz", "limit_usd", "times", "missed", "busy", "unattended")
"""Options that are sent as they are."""

PROMPT_CHARS = 40
"""Most characters of a prompt in the table."""


def add(commands: Subparsers) -> None:
    """Register `schedule` and its actions."""
    parser = commands.add_parser("schedule", help="send prompts at set times", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_add(actions)
    _add_edit(actions)
    listing = actions.add_parser(
        "list",
        help="list what is scheduled, also by /loop and by models",
        epilog="example: zotctl schedule list --json",
    )
    listing.add_argument("-s", "--session", metavar="ID|NAME", help="of this session only")
    listing.set_defaults(run=_list)
    for name, about, run in (
        ("pause", "send nothing until it is resumed", _change),
        ("resume", "go on from now", _change),
        ("remove", "forget it", _remove),
        ("run", "send its prompt now, beside its times", _run),
    ):
        action = actions.add_parser(name, help=about, epilog=f"example: zotctl schedule {name} t_01JX")
        action.add_argument("timer", metavar="TIMER", help="its ID, or the beginning of that")
        action.set_defaults(run=run, action=name)
        action.add_argument("--json", action="store_true", help="print the result as JSON")
    listing.add_argument("--json", action="store_true", help="print the result as JSON")


def _add_add(actions: Subparsers) -> None:
    parser = actions.add_parser("add", help="schedule a prompt", epilog=ADD_EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "words", nargs="+", metavar="[CRON] PROMPT", help="when, unless --every or --at says it, and what"
    )
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--every", type=_interval, metavar="INTERVAL", help="again and again after this time: 30m, 1h30m, 2d"
    )
    when.add_argument("--at", metavar="TIME", help=f"once: {moments.FORMS}".replace("%", "%%"))
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("-s", "--session", metavar="ID|NAME", help="send it to this session")
    where.add_argument("--last", action="store_true", help="send it to the most recently used session")
    where.add_argument("--new", action="store_true", help="begin a new session each time")
    parser.add_argument("--cwd", metavar="DIR", help="directory of new sessions (default: this one)")
    parser.add_argument("--provider", metavar="PROVIDER", help="vendor of new sessions")
    parser.add_argument("--model", help="model of new sessions")
    parser.add_argument("--mode", choices=MODES, help="approval mode of new sessions")
    parser.add_argument("--tz", metavar="ZONE", help="time zone of CRON (default: that of the daemon)")
    _add_limits(parser)
    _add_rules(parser, has_defaults=True)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_add)


def _add_edit(actions: Subparsers) -> None:
    parser = actions.add_parser("edit", help="change its prompt, its times or its limits", epilog=EDIT_EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("timer", metavar="TIMER", help="its ID, or the beginning of that")
    parser.add_argument("--prompt", metavar="TEXT", help="another prompt; - reads it from stdin")
    when = parser.add_mutually_exclusive_group()
    when.add_argument("--cron", metavar="CRON", help="another cron expression, in quotes")
    when.add_argument("--every", type=_interval, metavar="INTERVAL", help="another interval: 30m, 1h30m, 2d")
    when.add_argument("--at", metavar="TIME", help=f"another time: {moments.FORMS}".replace("%", "%%"))
    parser.add_argument("--tz", metavar="ZONE", help="another time zone of CRON")
    _add_limits(parser)
    for name, about in (("limit", "it may spend any amount"), ("until", "it has no end"), ("times", "of any number")):
        parser.add_argument(f"--no-{name}", action="store_true", help=about)
    _add_rules(parser, has_defaults=False)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_edit)


def _add_limits(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--limit-usd", type=float, metavar="USD", help="pause it when it has spent this much")
    parser.add_argument("--until", metavar="TIME", help="end it then")
    parser.add_argument("--times", type=int, metavar="N", help="end it after so many prompts")


def _add_rules(parser: argparse.ArgumentParser, *, has_defaults: bool) -> None:
    for name, choices, about in (
        ("--missed", ("once", "skip"), "what to do about times that were missed"),
        ("--busy", ("queue", "skip"), "what to do if the session is busy"),
        ("--unattended", ("deny", "park"), "what to do with calls that need approval when no client can decide"),
    ):
        default = f" (default: {choices[0]})" if has_defaults else ""
        parser.add_argument(name, choices=choices, help=f"{about}{default}")


def _interval(word: str) -> int:
    seconds = read_interval(word)
    if seconds is None:
        raise argparse.ArgumentTypeError(f'invalid interval "{word}"; use a form such as 30m, 1h30m or 2d')
    return seconds


def _add(args: argparse.Namespace) -> int:
    order = _order(args)
    with link.connect("zotctl", role="approve" if args.mode else None) as connection:
        if not args.new:
            order["session"] = text(link.chosen(connection, args), "id")
        found = connection.call("timer.add", order)
        status = connection.call("daemon.status")
    if args.json:
        output.print_json({"v": 1, "timer": found})
    else:
        print(one_line(f"{text(found, 'id')}: {text(found, 'rule')}, next at {output.moment(text(found, 'due'))} UTC"))
        if not text(status, "service"):
            sys.stderr.write(
                "zotctl: nothing starts the daemon after a restart of this machine; `zotctl service install` does\n"
            )
    return 0


def _order(args: argparse.Namespace) -> dict[str, object]:
    """Return the parameters of `timer.add` except for the session; raises ClientError if they do not fit together."""
    has_cron = args.every is None and args.at is None
    if len(args.words) != (2 if has_cron else 1):
        what = "a cron expression and a prompt, both in quotes" if has_cron else "a prompt in quotes and nothing else"
        raise ClientError(f"`zotctl schedule add` takes {what}; see `zotctl schedule add --help`")
    if not args.new and (args.cwd or args.provider or args.model or args.mode):
        raise ClientError("--cwd, --provider, --model and --mode are for new sessions: --new")
    now = datetime.now().astimezone()
    order = _given(args, "provider", "model", "mode", *OPTIONS)
    if has_cron:
        order["cron"] = args.words[0]
    elif args.every is not None:
        order["every_s"] = args.every
    else:
        order["at"] = moments.moment_of(args.at, now)
    if args.until is not None:
        order["until"] = moments.moment_of(args.until, now)
    if args.new:
        order["cwd"] = os.path.abspath(os.path.expanduser(args.cwd or "."))
    order["message"] = _prompt(str(args.words[-1]))
    return order


def _edit(args: argparse.Namespace) -> int:
    now = datetime.now().astimezone()
    order = {"timer": args.timer, **_given(args, "cron", *OPTIONS)}
    order |= {name: moments.moment_of(str(value), now) for name, value in _given(args, "at", "until").items()}
    if args.every is not None:
        order["every_s"] = args.every
    if args.prompt is not None:
        order["message"] = _prompt(args.prompt)
    cleared = {"limit_usd": args.no_limit, "until": args.no_until, "times": args.no_times}
    order["clear"] = [name for name, is_cleared in cleared.items() if is_cleared]
    with link.connect("zotctl") as connection:
        found = connection.call("timer.edit", order)
    _print_next(args, found)
    return 0


def _given(args: argparse.Namespace, *names: str) -> dict[str, object]:
    """Return the options of these names that were given."""
    return {name: value for name in names if (value := getattr(args, name)) is not None}


def _prompt(word: str) -> str:
    return sys.stdin.buffer.read().decode(errors="replace") if word == "-" else word


def _list(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        session = "" if args.session is None else text(link.chosen(connection, _named(args)), "id")
        found = children(connection.call("timer.list", session=session), "timers")
    if args.json:
        output.print_json({"v": 1, "timers": found})
        return 0
    rows = [[text(one, "id"), _state(one), text(one, "rule"), _place(one), _figures(one), _words(one)] for one in found]
    output.print_table(["ID", "NEXT (UTC)", "WHEN", "WHERE", "FIRED", "PROMPT"], rows)
    for one in found:
        if why := text(one, "reason") or text(one, "outcome"):
            print(one_line(f"{text(one, 'id')}: {why}"))
    return 0


def _named(args: argparse.Namespace) -> argparse.Namespace:
    return argparse.Namespace(session=args.session, last=False)


def _state(one: Json) -> str:
    return output.moment(text(one, "due")) if text(one, "state") == "active" else text(one, "state")


def _place(one: Json) -> str:
    return text(one, "session") or f"new in {text(one, 'cwd')}"


def _figures(one: Json) -> str:
    fired, spent, limit = one.get("fired", 0), one.get("spent_usd", 0.0), one.get("limit_usd")
    return f"{fired}, ${spent:.2f}" + (f" of ${limit:.2f}" if isinstance(limit, float | int) else "")


def _words(one: Json) -> str:
    return " ".join(text(one, "message").split())[:PROMPT_CHARS]


def _change(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call(f"timer.{args.action}", timer=args.timer)
    _print_next(args, found)
    return 0


def _print_next(args: argparse.Namespace, found: Json) -> None:
    if args.json:
        output.print_json({"v": 1, "timer": found})
    elif text(found, "state") == "paused":
        print(one_line(f"{text(found, 'id')}: paused"))
    else:
        print(one_line(f"{text(found, 'id')}: next at {output.moment(text(found, 'due'))} UTC"))


def _remove(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        key = _full_id(connection, args.timer)
        connection.call("timer.remove", timer=key)
    if args.json:
        output.print_json({"v": 1, "timer": key})
    else:
        print(one_line(f"{key}: removed"))
    return 0


def _full_id(connection: Connection, key: str) -> str:
    """Return the ID that begins so, for the answer; what is not unique is left to the daemon."""
    ids = [text(one, "id") for one in children(connection.call("timer.list"), "timers")]
    fitting = [one for one in ids if one.startswith(key)]
    return fitting[0] if len(fitting) == 1 else key


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        found = connection.call("timer.run", timer=args.timer)
    fired = found.get("fired") is True
    if args.json:
        output.print_json({"v": 1, **found})
    elif fired:
        print(one_line(f"{text(found, 'session')}: started"))
    else:
        print(one_line(f"{args.timer}: {text(found, 'outcome')}"))
    return 0 if fired else 1
