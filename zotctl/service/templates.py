"""The units as they are shipped: `systemd/` of the sources, which is part of this package."""

import os

UNITS = os.path.join(os.path.dirname(os.path.dirname(__file__)), "units")


def template(name: str) -> str:
    """The text of a unit."""
    with open(os.path.join(UNITS, name), encoding="utf-8") as file:
        return file.read()
