"""The real daemon for chats."""

from tests.zotctl.conftest import live, shell  # noqa: F401  (fixtures)
