"""The state of the service, for any service manager."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class ServiceState:
    """The state that `zotctl service` prints."""

    manager: str
    """`systemd` or `launchd`."""
    units: Mapping[str, str]
    """States by unit name: `active`, `inactive`, `failed`, …, or `missing`."""
    files: Sequence[str]
    """The unit files that exist."""
    pid: int | None = None
    """Pid of the daemon; None if the service is not running."""
    unmanaged: int | None = None
    """Pid of a daemon that holds the home or the socket but was not started by the service manager."""
    lingers: bool | None = None
    """Whether the service keeps running after logout; None if that does not apply."""
    hints: Sequence[str] = field(default=())
    """Commands that the user should run, with reasons."""

    @property
    def is_sound(self) -> bool:
        """Whether the service is installed, no unit is missing or failed, and no other daemon runs."""
        return bool(self.files) and self.unmanaged is None and not {"missing", "failed"} & set(self.units.values())

    def fields(self) -> dict[str, object]:
        """Return the state as a JSON object."""
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
        """Return the state as labels and texts."""
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
