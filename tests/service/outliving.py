"""The daemon under a real `systemd --user` is killed again and again: what its extension says each time."""

import json
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from tests.faults.counter import __file__ as counter
from tests.service.user_manager import UserManager

COUNTING = str(Path(__file__).with_name("counting.py"))

IMPATIENT = "[Unit]\nStartLimitBurst=1000\n[Service]\nRestartSec=0\n"
"""Killing it for minutes is not what the limits of the unit are about."""


@dataclass(frozen=True)
class Told:
    """What `counting` was told, in order."""

    daemons: list[int]
    extensions: list[int]
    numbers: list[int]
    orphan: str
    """What its orphan is told that wants to stop the daemon."""

    @property
    def is_one(self):
        """Each answer came from another daemon, all from one process of the extension, which has counted on."""
        count = len(self.numbers)
        return (
            len(set(self.daemons)) == count
            and len(set(self.extensions)) == 1
            and self.numbers == list(range(1, count + 1))
        )


def outlive(folder, rounds):
    """Kill it so many times, and restart it once; blocks. `folder`: an empty one."""
    with closing(UserManager(folder)) as manager:
        drop_in = manager.home / ".config/systemd/user/zotd.service.d/impatient.conf"
        drop_in.parent.mkdir(parents=True)
        drop_in.write_text(IMPATIENT)
        extension = manager.home / ".local/state/zot/extensions/counter"
        extension.mkdir(parents=True)
        manifest = {"name": "counter", "exec": sys.executable, "args": ["-I", "-S", counter]}
        (extension / "extension.json").write_text(json.dumps(manifest))
        code, said = manager.zotctl("service", "install")
        assert code == 0, said
        code, said = manager.run(sys.executable, COUNTING, str(rounds))
        assert code == 0, said
        found = json.loads(said)
    daemons, extensions, numbers = ([one[what] for one in found["told"]] for what in ("daemon", "extension", "number"))
    return Told(daemons, extensions, numbers, found["orphan"])
