"""Updates an extension again and again, and is killed at the first, the second, … thing done to the file system.

    killed.py TEMPLATE SOURCE SCRATCH

Each time a copy of the home TEMPLATE is used; then what was left behind is recovered. Prints one JSON list of what
there was then. The last attempt is the one that was not killed.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from zotd.exthost.install import install
from zotd.exthost.installed import verify
from zotd.exthost.staging import recover

EVENTS = {"open", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "fcntl.flock"}
"""What Python tells an audit hook before it does it."""


def die_at(moment: int, home: Path) -> None:
    left = moment

    def hook(event, args):
        nonlocal left
        if event in EVENTS and (event != "open" or str(args[0]).startswith(str(home))):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


def is_killed(moment: int, home: Path, source: Path) -> bool:
    child = os.fork()
    if child == 0:
        die_at(moment, home)
        asyncio.run(install(str(source), home=home, cwd=home, env={}))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main() -> None:
    template, source, scratch = map(Path, sys.argv[1:])
    found: list[dict[str, object]] = []
    goes_on = True
    while goes_on:
        home = scratch / str(len(found))
        shutil.copytree(template, home)
        goes_on = is_killed(len(found) + 1, home, source)
        recover(home)
        extensions = home / "extensions"
        there = sorted(str(path.relative_to(extensions)) for path in extensions.rglob("*"))
        content = (extensions / "notes/main.sh").read_text()
        found.append({"content": content, "there": there, "trouble": verify(home)})
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
