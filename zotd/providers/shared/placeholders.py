"""Base URLs with placeholders for environment variables: `https://{RESOURCE}.example.com/v1`.

    {NAME}            the variable; it must be set
    {NAME|OTHER}      the first of them that is set
    {NAME:default}    the default if none is set

A value is one label of a host name, so a variable can choose a region or a resource of a vendor, but no other host.
"""

import re
from collections.abc import Mapping

BEGIN = "{"
"""A URL without it has no placeholders."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_|]*)(?::([A-Za-z0-9-]*))?\}")
_LABEL = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?")


class PlaceholderError(Exception):
    """A placeholder has no value, or none that a host name can have; the message completes "URL: ..."."""


def names(url: str) -> tuple[str, ...]:
    """Return the variables that the URL depends on."""
    return tuple(name for found in _PLACEHOLDER.finditer(url) for name in found[1].split("|"))


def filled(url: str, variables: Mapping[str, str]) -> str:
    """Return the URL with the values of its placeholders; raises `PlaceholderError`."""

    def value(found: re.Match[str]) -> str:
        alternatives = found[1].split("|")
        text = next((variables[name] for name in alternatives if variables.get(name)), found[2] or "")
        if not text:
            raise PlaceholderError(f"set {' or '.join(alternatives)}")
        if not _LABEL.fullmatch(text):
            raise PlaceholderError(f"{alternatives[0]} must be one label of a host name: letters, digits and hyphens")
        return text

    return _PLACEHOLDER.sub(value, url)
