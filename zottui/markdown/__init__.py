"""Markdown that models write, for the terminal: `stream` says what is finished, `emit` and `code` make lines of it."""

CONTEXT_LINES = 400
"""Lines of one fence that are highlighted: 0.2 ms each, and nobody reads colours in what is longer.

A piece of a fence knows all lines before it up to that number, so that a comment or a string that began far above is one
still: a highlighter that starts in the middle of one paints everything the wrong way round.
"""
