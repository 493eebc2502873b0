"""What is known of a checkpoint. It is the message of its commit, as JSON."""

from typing import Literal

import msgspec

Kind = Literal["step", "end", "manual", "present", "restored"]
"""Why a checkpoint was recorded: before a step of a run, at the end of a run, by a person, before and after a restore."""


class Occasion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why and for whom a checkpoint is recorded."""

    kind: Kind
    session: str = ""
    run: str = ""
    """The run whose step follows, or that has ended."""
    seq: int = 0
    """`seq` of the session's last event at that time."""
    tools: tuple[str, ...] = ()
    """Tools of the step that follows."""
    target: int = 0
    """Of `restored`: number of the checkpoint to which the workspace returned; 0: to the state of no single one."""
    undoes: str = ""
    """Of `restored`: the run whose changes it has taken back."""
    redoes: str = ""
    """Of `restored`: the run whose changes it has made again."""


class Checkpoint(Occasion, frozen=True, kw_only=True, omit_defaults=True):
    """A recorded state of a workspace.

    Attributes:
        number: how users name it; counts up from 1 in a workspace and is never used twice.
        time: when it was recorded, RFC 3339 in UTC.
        changed: number of files that differ from the checkpoint before it.
        left_out: digest of the list of what it does not contain (`left_out.LeftOut`).
    """

    number: int
    time: str
    changed: int = 0
    left_out: str = ""
    commit: str = ""
    """Object name of its commit; empty in the commit itself."""
    tree: str = ""
    """Object name of its tree; empty in the commit itself."""


_DECODER = msgspec.json.Decoder(Checkpoint)


def encoded(checkpoint: Checkpoint) -> bytes:
    """Return the message of the checkpoint's commit."""
    return msgspec.json.encode(msgspec.structs.replace(checkpoint, commit="", tree=""))


def decoded(commit: str, tree: str, message: bytes) -> Checkpoint:
    """Return the checkpoint of a commit; raises `msgspec.MsgspecError` if the message is none of ours."""
    return msgspec.structs.replace(_DECODER.decode(message), commit=commit, tree=tree)
