"""Frames of an extension as a file: written by `zotctl ext record`, sent again by `ext replay` and `ext test`.

    {"type":"recording","v":1,"extension":"weather","time":"2026-01-31T13:45:00.000Z","ignore":[]}
    {"time":"…","from":"host","frame":{"type":"tool_call","id":"7","name":"weather","args":{"city":"Berlin"}}}
    {"time":"…","from":"extension","frame":{"type":"tool_result","id":"7",…}}

RecordedPaths of the machine are written as `{{cwd}}`, `{{extension_dir}}` and `{{data_dir}}`. Pure.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from zotd.wire import ext

Frame = dict[str, object]

VERSION = 1

HOST, EXTENSION = "host", "extension"
"""Who sent a frame."""

UNCOMPARED = frozenset({"shutdown_ack"})
"""Frames whose absence has no meaning."""

TIMES = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?")
IDS = re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE)

_ANSWERS = frozenset({"tool_result", "command_response", "event_intercept_response", "tool_progress", "channel_sent"})
"""Frames with the `id` of a question; the order of answers to different questions has no meaning."""

_PATHS = ("extension_dir", "data_dir", "cwd")
"""In this order, because an extension may be in the working directory."""


class RecordingError(Exception):
    """The file is no usable recording; the message is one sentence and continues its name."""


@dataclass(frozen=True, slots=True)
class RecordedFrame:
    """A line of a recording."""

    line: int
    """Number of the line in the file, from 1."""
    sender: str
    """`host` or `extension`."""
    frame: Frame

    @property
    def kind(self) -> str:
        """The frame's type."""
        return str(self.frame.get("type", ""))


@dataclass(frozen=True, slots=True)
class Recording:
    """The frames of a file, in order."""

    extension: str
    frames: Sequence[RecordedFrame]
    ignore: Sequence[str] = ()
    """Regular expressions for parts of texts that are not compared."""

    @property
    def has_start(self) -> bool:
        """Whether it begins with the start of a process."""
        return any(one.sender == EXTENSION and one.kind == "hello" for one in self.frames)

    def ack(self) -> Frame:
        """Return the `hello_ack` that the host has sent; empty if the start is missing."""
        return next((one.frame for one in self.frames if one.sender == HOST and one.kind == "hello_ack"), {})


@dataclass(frozen=True, slots=True)
class FrameDifference:
    """A frame that is missing, or was not expected, or is another one."""

    about: str
    """Type of the frame, and what it answers."""
    line: int | None
    """Where the recording has it; None: it has no such frame."""
    recorded: Frame | None
    sent: Frame | None


@dataclass(frozen=True, slots=True)
class RecordedPaths:
    """The directories of one machine that stand for others on another one."""

    cwd: str = ""
    extension_dir: str = ""
    data_dir: str = ""

    def general(self, value: object) -> object:
        """Return JSON with placeholders instead of the directories."""
        for name in _PATHS:
            path: str = getattr(self, name)
            if len(path) > 1:
                pattern = re.compile(re.escape(path.rstrip("/")) + r"(?![\w-])")
                value = replaced(value, pattern, "{{" + name + "}}")
        return value

    def local(self, value: object) -> object:
        """Return JSON with the directories instead of placeholders."""
        for name in _PATHS:
            value = replaced(value, re.compile(re.escape("{{" + name + "}}")), getattr(self, name))
        return value


def replaced(value: object, pattern: "re.Pattern[str]", by: str) -> object:
    """Return JSON with a replacement in each of its texts; names of members stay."""
    if isinstance(value, str):
        return pattern.sub(lambda _: by, value)
    if isinstance(value, list):
        return [replaced(item, pattern, by) for item in value]
    if isinstance(value, dict):
        return {name: replaced(item, pattern, by) for name, item in value.items()}
    return value


def head_line(extension: str, time: str) -> str:
    """Return the first line of a recording."""
    return _written({"type": "recording", "v": VERSION, "extension": extension, "time": time, "ignore": []})


def frame_line(sender: str, text: str, *, time: str, cut: int, paths: RecordedPaths) -> str:
    """Return a line for a frame as it was on the wire; `cut`: bytes that are missing in `text`."""
    about: Frame = {"time": time, "from": sender}
    frame = None if cut else _object(text)
    if frame is not None:
        return _written({**about, "frame": paths.general(frame)})
    return _written({**about, "text": text, **({"cut": cut} if cut else {})})


def is_hello(text: str) -> bool:
    """Whether a frame is the first one of a process."""
    frame = _object(text)
    return frame is not None and frame.get("type") == "hello"


def parse(text: str) -> Recording:
    """Read a recording.

    Raises:
        RecordingError: it is none, or a frame in it cannot be sent or compared.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    head = _object(lines[0][1]) if lines else None
    if head is None or head.get("type") != "recording":
        raise RecordingError("does not begin with the first line of a recording; make one with: zotctl ext record")
    if head.get("v") != VERSION:
        raise RecordingError(f"has the version {head.get('v')}, and this program reads {VERSION}")
    ignore = head.get("ignore", [])
    if not isinstance(ignore, list) or not all(isinstance(one, str) for one in ignore):
        raise RecordingError("has an `ignore` that is no list of regular expressions")
    check_patterns(ignore)
    frames = [frame for number, line in lines[1:] if (frame := _read_line(number, line)) is not None]
    return Recording(str(head.get("extension", "")), frames, ignore)


def check_patterns(patterns: Sequence[str]) -> None:
    """Raise RecordingError if one of these is no regular expression."""
    for pattern in patterns:
        try:
            re.compile(pattern)
        except re.error as error:
            raise RecordingError(f"ignores {pattern!r}, which is no regular expression: {error}") from error


def _read_line(number: int, line: str) -> RecordedFrame | None:
    entry = _object(line)
    if entry is None or entry.get("from") not in {HOST, EXTENSION}:
        raise RecordingError(f"has no frame in line {number}")
    frame = entry.get("frame")
    if entry.get("cut"):
        raise RecordingError(f"has a frame in line {number} that was longer than 64 KiB, of which the end is missing")
    if entry["from"] == EXTENSION and not is_known(frame):
        return None
    if not isinstance(frame, dict) or not isinstance(frame.get("type"), str):
        raise RecordingError(f"has no frame in line {number}")
    return RecordedFrame(number, str(entry["from"]), frame)


def is_known(frame: object) -> bool:
    """Whether it is a frame that the host does not skip."""
    return frame is not None and not isinstance(ext.read(json.dumps(frame).encode()), ext.Skipped)


def _object(text: str) -> Frame | None:
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# --- comparing ---------------------------------------------------------------------------------------------------


def compare(recording: Recording, sent: Sequence[Frame], ignore: Sequence[str] = ()) -> list[FrameDifference]:
    """Compare what an extension has sent, with placeholders, with a recording.

    Ids that it has chosen itself, times and UUIDs in texts, its version, and what `ignore` matches do not count.
    """
    patterns = [re.compile(pattern) for pattern in (*recording.ignore, *ignore)]
    questions = {
        str(one.frame["id"]): one.frame for one in recording.frames if "id" in one.frame and one.sender == HOST
    }
    recorded = [one for one in recording.frames if one.sender == EXTENSION and one.kind not in UNCOMPARED]
    found: list[FrameDifference] = []
    expected = _in_lanes(_Comparable.of([one.frame for one in recorded], [one.line for one in recorded], patterns))
    actual = _in_lanes(_Comparable.of([one for one in sent if one.get("type") not in UNCOMPARED], None, patterns))
    for lane in dict.fromkeys([*expected, *actual]):
        found += _differences(expected.get(lane, []), actual.get(lane, []), questions)
    return sorted(found, key=lambda one: (one.line is None, one.line or 0))


@dataclass(frozen=True, slots=True)
class _Comparable:
    """A frame, and what of it counts."""

    frame: Frame
    line: int | None
    lane: str
    text: str = field(repr=False)

    @classmethod
    def of(
        cls, frames: Sequence[Frame], lines: Sequence[int] | None, patterns: "Sequence[re.Pattern[str]]"
    ) -> "list[_Comparable]":
        calls: dict[object, str] = {}
        found: list[_Comparable] = []
        for index, frame in enumerate(frames):
            kind = str(frame.get("type", ""))
            counted = dict(frame)
            if kind == "hello":
                counted.pop("version", None)
            if kind in {"call_tool", "call_tool_cancel"} and "id" in frame:
                counted["id"] = calls.setdefault(frame["id"], f"call {len(calls) + 1}")
            value: object = counted
            for pattern in (TIMES, IDS, *patterns):
                value = replaced(value, pattern, "…")
            lane = f"answers to {frame.get('id')}" if kind in _ANSWERS else ""
            text = json.dumps(value, sort_keys=True, ensure_ascii=False)
            found.append(cls(frame, lines[index] if lines else None, lane, text))
        return found


def _in_lanes(frames: Sequence[_Comparable]) -> dict[str, list[_Comparable]]:
    lanes: dict[str, list[_Comparable]] = {}
    for one in frames:
        lanes.setdefault(one.lane, []).append(one)
    return lanes


def _differences(
    expected: Sequence[_Comparable], actual: Sequence[_Comparable], questions: Mapping[str, Frame]
) -> Iterator[FrameDifference]:
    matcher = difflib.SequenceMatcher(
        None, [one.text for one in expected], [one.text for one in actual], autojunk=False
    )
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag == "equal":
            continue
        for offset in range(max(end - start, other_end - other_start)):
            left = expected[start + offset] if start + offset < end else None
            right = actual[other_start + offset] if other_start + offset < other_end else None
            about = _about((left or right or expected[0]).frame, questions)
            yield FrameDifference(
                about,
                left.line if left else None,
                left.frame if left else None,
                right.frame if right else None,
            )


def _about(frame: Frame, questions: Mapping[str, Frame]) -> str:
    question = questions.get(str(frame.get("id", "")), {})
    name = question.get("name") or question.get("event") or frame.get("name")
    return f"{frame.get('type')} of {name}" if name else str(frame.get("type"))
