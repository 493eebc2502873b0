"""Sends the host's frames of a recording to an extension, without a daemon, and compares its answers.

Each frame of the host is sent when the extension has sent as many frames as the recording has before it.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

from zotd.core.supervision import QUIET_S
from zotd.exthost.log import ExtensionLog
from zotd.exthost.manifest import Manifest, ManifestError
from zotd.exthost.recording import (
    EXTENSION,
    UNCOMPARED,
    Frame,
    FrameDifference,
    RecordedFrame,
    RecordedPaths,
    Recording,
    RecordingError,
    compare,
    is_known,
)
from zotd.exthost.surroundings import Surroundings
from zotd.exthost.validation.conversation import GoneError, ProbedProcess
from zotd.exthost.validation.subject import find_subject

PATIENCE_S = 10.0
"""How long the next frame of the extension may take, unless the caller says otherwise."""

STDERR_BYTES = 2_000


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What came of a replay."""

    compared: int
    """Frames of the extension in the recording."""
    differences: Sequence[FrameDifference]
    failure: str = ""
    """Why it could not be played to its end: continues the extension's name. Empty: it was."""
    stderr: str = ""
    """The end of what the extension has written to stderr."""

    @property
    def is_ok(self) -> bool:
        """Whether the extension did what the recording says."""
        return not self.differences and not self.failure


async def replay(
    recording: Recording,
    directory: Path,
    *,
    cwd: str,
    env: Mapping[str, str],
    ignore: Sequence[str] = (),
    patience_s: float = PATIENCE_S,
) -> ReplayReport:
    """Start an extension in a home of its own, and send it the frames of the host.

    Args:
        recording: what was said.
        directory: of the extension, or of Python modules, as for `zotctl ext validate`.
        cwd: the working directory of its sessions.
        env: its environment.
        ignore: regular expressions for parts of texts that are not compared, besides those of the recording.
        patience_s: how long its next frame may take.

    Raises:
        RecordingError: there is no extension in the directory.
    """
    try:
        manifest = find_subject(directory, cwd=Path(cwd))
    except ManifestError as error:
        raise RecordingError(f"cannot be replayed: {error}") from error
    with TemporaryDirectory(prefix="zot-replay-") as home:
        played = _Replay(recording, manifest, Path(home), cwd=cwd, env=env, patience_s=patience_s)
        failure = await played.play()
        differences = compare(recording, played.heard, ignore)
        compared = sum(_counts(one) for one in recording.frames)
        return ReplayReport(compared, differences, failure, played.stderr())


class _Replay:
    """One replay."""

    def __init__(
        self,
        recording: Recording,
        manifest: Manifest,
        home: Path,
        *,
        cwd: str,
        env: Mapping[str, str],
        patience_s: float,
    ) -> None:
        self.heard: list[Frame] = []
        """What the extension has sent, with placeholders."""
        self._recording = recording
        self._manifest = manifest
        self._patience_s = patience_s
        self._log = ExtensionLog(home / "logs" / f"ext-{manifest.name}.log")
        ack = recording.ack()
        features = ack.get("features")
        self._surroundings = Surroundings(
            cwd,
            home,
            env,
            version=str(ack.get("zot_version", "")),
            provider=str(ack.get("provider", "")),
            model=str(ack.get("model", "")),
            features=tuple(map(str, features)) if isinstance(features, list) else (),
        )
        self._paths = RecordedPaths(cwd, str(manifest.directory), str(home))
        self._own_ids: list[object] = []
        """Ids of calls that the extension has made, in their order."""
        self._recorded_ids: list[object] = []

    async def play(self) -> str:
        """Play the recording; returns why it could not be played to its end."""
        process = ProbedProcess(self._manifest, self._surroundings, self._log, {})
        process.taps[self._hear] = None
        try:
            async with process:
                await process.greet()
                if not self._recording.has_start:
                    await process.settle()
                    self.heard.clear()  # what it said at its start is not in the recording
                return await self._send_all(process)
        except GoneError as error:
            return str(error)

    def stderr(self) -> str:
        """Return the end of its stderr."""
        if not self._log.path.exists():
            return ""
        return self._log.path.read_bytes()[-STDERR_BYTES:].decode(errors="replace")

    async def _send_all(self, process: ProbedProcess) -> str:
        expected = 0
        for one in self._recording.frames:
            if one.sender == EXTENSION:
                expected += _counts(one)
                if one.kind == "call_tool":
                    self._recorded_ids.append(one.frame.get("id"))
            elif one.kind not in {"hello_ack", "shutdown"}:  # those are sent anyway
                if not await self._has(process, expected):
                    return self._silence(one, expected)
                process.send(self._to_send(one.frame))
        if not await self._has(process, expected):
            return self._silence(None, expected)
        # What it sends beyond the recording is a difference, too.
        await process.until(lambda: self._counted > expected, QUIET_S)
        return ""

    async def _has(self, process: ProbedProcess, count: int) -> bool:
        """Wait until it has sent so many frames; return False if it does not in time."""
        return await process.until(lambda: self._counted >= count, self._patience_s)

    @property
    def _counted(self) -> int:
        return sum(frame.get("type") not in UNCOMPARED for frame in self.heard)

    def _silence(self, before: RecordedFrame | None, expected: int) -> str:
        where = f"before line {before.line}" if before else "at the end"
        return f"sent {self._counted} of {expected} frames {where}, and no more within {self._patience_s:g} s"

    def _to_send(self, frame: Frame) -> Frame:
        sent = cast("Frame", self._paths.local(frame))
        # The answer to a call that the extension has made, with the id that it has chosen this time.
        if frame.get("type") == "tool_result" and frame.get("id") in self._recorded_ids:
            number = self._recorded_ids.index(frame["id"])
            if number < len(self._own_ids):
                sent["id"] = self._own_ids[number]
        return sent

    def _hear(self, direction: str, line: bytes) -> None:
        if direction != "in":
            return
        try:
            frame: object = json.loads(line)
        except (ValueError, RecursionError):
            return
        if isinstance(frame, dict) and is_known(frame):
            if frame["type"] == "call_tool":
                self._own_ids.append(frame.get("id"))
            self.heard.append(cast("Frame", self._paths.general(frame)))


def _counts(one: RecordedFrame) -> bool:
    return one.sender == EXTENSION and one.kind not in UNCOMPARED
