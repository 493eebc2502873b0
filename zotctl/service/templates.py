"""The unit templates in `units/`, which are links to `systemd/` in the sources and copies in the installed package."""

import os

UNITS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "units")


def template(name: str) -> str:
    """Return the text of a template."""
    with open(os.path.join(UNITS, name), encoding="utf-8") as file:
        return file.read()
