"""`zotctl plan`: the plan of a session, step by step, and changes of it in an editor."""

import argparse

from zotctl import editor, link, output
from zotctl.commands import Subparsers
from zotd.client.blocking import Connection
from zotd.client.fields import text
from zotd.sanitize import harmless, one_line
from zotd.wire.api import PlanState
from zotd.wire.base import convert
from zotd.wire.plan import EXPLAINED, Plan, read_steps, step_lines

EPILOG = """\
examples:
  zotctl plan --last              print the steps: [ ] pending, [>] active, [x] done
  zotctl plan --last --json
  zotctl plan --session tests --edit    change them in $VISUAL or $EDITOR, a line for each step

The model is told of an edit with its next request. An edit of a plan that has changed meanwhile is refused. A plan that
waits for a decision is approved or rejected instead: `zotctl approve`, also with `--edit`, or `zotctl deny`.
"""


def add(commands: Subparsers) -> None:
    """Register `plan`."""
    parser = commands.add_parser("plan", help="show or change the plan of a session", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    link.add_session_flags(parser)
    parser.add_argument("--edit", action="store_true", help="change the steps in $VISUAL or $EDITOR")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    with link.connect("zotctl") as connection:
        session = text(link.chosen(connection, args), "id")
        found = connection.call("session.plan", session=session)
        if args.edit:
            found = _edit(connection, session, convert(found, PlanState).plan)
    if args.json:
        output.print_json({"v": 1, "session": session, **found})
    else:
        _show(convert(found, PlanState))
    return 0


def _show(state: PlanState) -> None:
    plan = state.plan
    if plan is None or not plan.steps:
        print("there is no plan")
        return
    by = f" by {plan.by}" if plan.by else ""
    why = f": {plan.comment}" if plan.comment else ""
    print(one_line(f"{plan.status}{by}{why}"))
    print(harmless("\n".join(step_lines(plan.steps))))


def _edit(connection: Connection, session: str, plan: Plan | None) -> dict[str, object]:
    """Have the user change the steps; the plan after that."""

    def take(lines: str) -> dict[str, object]:
        return connection.call(
            "session.plan_edit",
            session=session,
            revision=plan.revision if plan else 0,
            steps=[{"text": step.text, "state": step.state} for step in read_steps(lines)],
        )

    lines = EXPLAINED + "".join(f"{line}\n" for line in step_lines(plan.steps if plan else []))
    return editor.edit(lines, take, name="zot-plan-", suffix=".txt")
