"""What a daemon and its template process say to each other (`zotd.template.forks`, `zotd.template.fork_server`)."""

import json
import struct
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Self

from zotd.template.python_program import PythonProgram

COERCED = "C.UTF-8"
"""The locale of the template process, and the one that the interpreter chooses instead of C (PEP 538)."""

REQUEST = b"f"
"""A message to this process: fork, and let the fork read what follows from the descriptors that come with it."""

DESCRIPTORS = 5
"""With a request come: a connection for its fork, a file with the request as JSON, stdin, stdout, stderr."""

READY = b"r"
"""This process's only message to the daemon: it serves."""

STARTED = b"s"
"""The fork is the program's process, a child of the daemon, and waits for `GO`. Its pid follows."""

PID = struct.Struct("!i")

REFUSED = b"n"
"""The program must be started cold; the reason follows."""

CHANGED = b"c"
"""As `REFUSED`, because the code on disk has changed: this template process is of no further use."""

GO = b"g"

MAX_REASON_BYTES = 4096


@dataclass(frozen=True, slots=True)
class ForkRequest:
    """What a fork of the template process is to become."""

    program: PythonProgram
    cwd: str
    environment: Mapping[str, str]
    is_bound: bool
    """The kernel ends it when the daemon ends."""

    def packed(self) -> bytes:
        """Return it as JSON; text that is not Unicode is kept."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def unpacked(cls, packed: bytes) -> Self:
        """Return what `packed` has made."""
        fields = json.loads(packed)
        program = fields["program"]
        for name in ("shown", "arguments"):
            program[name] = tuple(program[name])
        return cls(**{**fields, "program": PythonProgram(**program)})
