"""The terminal client of zot: an interactive one below the scrollback, and a plain one of lines only."""
