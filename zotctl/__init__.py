"""The admin tool, and the non-interactive modes of `zot`."""
