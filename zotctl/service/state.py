"""What `zotctl service` says about the service, whoever runs it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class State:
    """The service as its manager sees it."""

    manager: str
    """`systemd` or `launchd`."""
    units: Mapping[str, str]
    """By the unit's name: `active`, `inactive`, `failed`..., or `missing`."""
    files: Sequence[str]
    """The units' files that are there."""
    pid: int | None = None
    """The daemon's; None: the service does not run."""
    unmanaged: int | None = None
    """The pid of a daemon that was not started by the service manager, and has the home or the socket."""
    lingers: bool | None = None
    """The service outlives the user's last logout; None: that is no question here."""
    hints: Sequence[str] = field(default=())
    """What the user should do, a sentence each."""

    @property
    def is_sound(self) -> bool:
        """It is installed, and what has to be there is."""
        return bool(self.files) and self.unmanaged is None and not {"missing", "failed"} & set(self.units.values())

    def fields(self) -> dict[str, object]:
        """The same as JSON."""
        return {
            "v": 1,
            "manager": self.manager,
            "installed": bool(self.files),
            "units": dict(self.units),
            "files": list(self.files),
            "pid": self.pid,
            "unmanaged_pid": self.unmanaged,
            "linger": self.lingers,
            "to_do": list(self.hints),
        }

    def lines(self) -> list[tuple[str, str]]:
        """The same for people: what, and in words."""
        found = [("manager", self.manager), *self.units.items()]
        if self.pid is not None:
            found.append(("pid", str(self.pid)))
        if self.unmanaged is not None:
            found.append(("unmanaged", f"pid {self.unmanaged}: this daemon was not started by {self.manager}"))
        if self.lingers is not None:
            found.append(
                (
                    "linger",
                    "yes: the service runs without a login"
                    if self.lingers
                    else "no: the service stops when you log out",
                )
            )
        return found
