"""A program of ours as another version of it would be: of another version, with other protocols, and otherwise the same.

python -m zotd.testing.skewed 0.3.0 2 3 PYTHON -m zotd ...       what stands behind it says how it is started
"""

import runpy
import sys

from zotd.wire import version


def main(argv: list[str]) -> None:
    """Take the version, the oldest and the newest protocol, and then a command `PYTHON -m MODULE ARGUMENT...`."""
    # Before anything of the program is imported, which takes these over.
    version.VERSION, version.OLDEST, version.PROTOCOL = argv[0], int(argv[1]), int(argv[2])
    sys.argv = argv[5:]
    runpy.run_module(argv[5], run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main(sys.argv[1:])
