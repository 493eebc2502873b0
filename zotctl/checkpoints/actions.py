"""What `zotctl checkpoints` does."""

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from zotctl import config, output
from zotd import paths
from zotd.checkpoints.checkpoint import Checkpoint, Occasion
from zotd.checkpoints.checkpoints import Checkpoints
from zotd.checkpoints.errors import CheckpointError
from zotd.checkpoints.judging import RecordingLimits
from zotd.checkpoints.left_out import Why
from zotd.checkpoints.outcome import Restored
from zotd.checkpoints.trees import PathDifference
from zotd.checkpoints.undo import recorded_runs
from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.client.humanize import counted, size
from zotd.sanitize import one_line

LISTED = 20
"""Most lines of each kind that `show` prints; `--json` has all."""


def print_list(cwd: str, *, as_json: bool) -> int:
    """Print the checkpoints, newest first."""
    with _sentences():
        here = _here(cwd)
        found = here.all()
    if as_json:
        output.print_json({"v": 1, "directory": here.workspace, "checkpoints": [_json(one) for one in found]})
        return 0
    head = ["CHECKPOINT", "TIME", "CHANGED", "RECORDED", "SESSION"]
    rows = [[str(one.number), output.moment(one.time), str(one.changed), _occasion(one), one.session] for one in found]
    output.print_table(head, rows)
    return 0


def show(cwd: str, number: int, *, as_json: bool) -> int:
    """Print which files differ from the checkpoint before, and what is not in the checkpoint."""
    with _sentences():
        here = _here(cwd)
        one = here.find(number)
        changes, omissions = here.changes(one), here.left_out(one).omissions
    if as_json:
        files = [{"path": path, "change": _word(difference)} for path, difference in sorted(changes.items())]
        missing = [{"path": item.path, "reason": item.why.value, "size_bytes": item.size} for item in omissions]
        output.print_json({"v": 1, "checkpoint": _json(one), "files": files, "left_out": missing})
        return 0
    about = f"checkpoint {one.number}, {output.moment(one.time)}, {_occasion(one)}"
    print(one_line(f"{about}, session {one.session}" if one.session else about))
    _print_some("differs from the checkpoint before:", [f"{_word(changes[path])} {path}" for path in sorted(changes)])
    _print_some(
        "not recorded:",
        [
            f"{item.path} ({item.why}{f', {size(item.size)}' if item.why is Why.LARGE else ''})"
            for item in sorted(omissions, key=lambda item: item.why is Why.IGNORED)
        ],
    )
    return 0


def diff(cwd: str, number: int, to: int | None, places: Sequence[str], *, of_run: bool) -> int:
    """Print a patch from the checkpoint to another one, or to the files as they are; `of_run`: that of its run."""
    with _sentences(), output.progress("comparing"):
        here = _here(cwd)
        under = [_below(here.workspace, place) for place in places]
        older, newer = here.find(number), None if to is None else here.find(to)
        if of_run:
            older, newer = _ends_of_run(here, older)
        patch = here.diff(older, newer, under)
    sys.stdout.flush()
    sys.stdout.buffer.write(patch)  # bytes of the files: a patch must stay one
    sys.stdout.buffer.flush()
    return 0


def restore(cwd: str, number: int, places: Sequence[str], *, force: bool, as_json: bool) -> int:
    """Restore files, and return the exit code: 1 if some were left alone."""
    with _sentences(), output.progress("restoring"):
        here = _here(cwd)
        under = [_below(here.workspace, place) for place in places]
        done = here.restore(here.find(number), under=under, force=force)
        here.tidy(_keep())
    if as_json:
        kept = [{"path": one.path, "reason": str(one.why), "detail": one.detail} for one in done.kept]
        output.print_json(
            {
                "v": 1,
                "restored": list(done.paths),
                "kept": kept,
                "before": done.before.number,
                "after": done.after.number,
            }
        )
    else:
        _print_restored(done)
    return 1 if done.kept else 0


def record(cwd: str, *, as_json: bool) -> int:
    """Record the files, unless they are as in the last checkpoint."""
    with _sentences(), output.progress("recording"):
        here = _here(cwd)
        known = here.all()[:1]
        made = here.record(Occasion(kind="manual"))
        here.tidy(_keep())
    is_new = made not in known
    if as_json:
        output.print_json({"v": 1, "checkpoint": _json(made), "is_new": is_new})
    elif is_new:
        print(one_line(f"checkpoint {made.number}, {counted(made.changed, 'file')} changed"))
    else:
        print(one_line(f"nothing has changed since checkpoint {made.number}"))
    return 0


def _ends_of_run(here: Checkpoints, one: Checkpoint) -> tuple[Checkpoint, Checkpoint | None]:
    """Return the checkpoints before and after the run that a checkpoint is part of; None: it is the last one."""
    found = next((run for run in recorded_runs(here.all()[::-1], one.session) if run.run == one.run and one.run), None)
    if found is None:
        raise ClientError(f"checkpoint {one.number} is not part of a run that changed files")
    return found.before, found.after


def numbers() -> list[tuple[str, str]]:
    """Return the numbers of the current directory's checkpoints, each with a description, for completion."""
    with _sentences():
        return [(str(one.number), f"{output.moment(one.time)}  {_occasion(one)}") for one in _here(".").all()]


def _here(cwd: str) -> Checkpoints:
    if not os.path.isdir(cwd):
        raise ClientError(f"{cwd} is not a directory")
    limits = RecordingLimits(file_bytes=_setting("checkpoints.max_file_mb") * 1_000_000)
    here = Checkpoints(cwd, paths.zot_home(os.environ), os.environ, limits=limits)
    here.finish()
    return here


def _keep() -> int:
    return _setting("checkpoints.keep")


def _setting(name: str) -> int:
    value = config.load().values[name]
    assert isinstance(value, int)
    return value


def _below(workspace: str, place: str) -> str:
    """Return a path of the user relative to the workspace. The last part may be a link, and is not followed."""
    folder, name = os.path.split(os.path.abspath(place))
    found = os.path.relpath(os.path.join(os.path.realpath(folder), name), workspace)
    if found == os.pardir or found.startswith(os.pardir + os.sep):
        raise ClientError(f"{place} is not in {workspace}")
    return "" if found == os.curdir else found


def _print_restored(done: Restored) -> None:
    for path in done.paths:
        print(one_line(f"restored {path}"))
    for one in done.kept:
        print(one_line(f"left alone: {one}"))
    if not done.paths:
        print("no file was changed")
        return
    print(one_line(f"to undo this: zotctl checkpoints restore {done.before.number} --force"))


def _print_some(title: str, lines: Sequence[str]) -> None:
    if lines:
        print(one_line(title))
    for line in lines[:LISTED]:
        print(one_line(f"  {line}"))
    if len(lines) > LISTED:
        print(one_line(f"  and {len(lines) - LISTED} more; --json has all"))


def _occasion(one: Checkpoint) -> str:
    match one.kind:
        case "step":
            return f"before {', '.join(one.tools) or 'a step'}"
        case "end":
            return "after a run"
        case "manual":
            return "by hand"
        case "present":
            return "before a restore"
        case "restored" if one.undoes or one.redoes:
            return "after undo" if one.undoes else "after redo"
        case "restored":
            return f"restored {one.target}"


def _json(one: Checkpoint) -> Json:
    return {
        "number": one.number,
        "time": one.time,
        "kind": one.kind,
        "session": one.session,
        "run": one.run,
        "changed": one.changed,
    }


def _word(difference: PathDifference) -> str:
    if difference.before is None:
        return "added"
    return "removed" if difference.after is None else "changed"


@contextmanager
def _sentences() -> Iterator[None]:
    """Turn errors of checkpoints into `ClientError`."""
    try:
        yield
    except CheckpointError as error:
        raise ClientError(str(error)) from error
