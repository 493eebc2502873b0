"""Renders the model's Markdown for the terminal: `stream` splits it into finished blocks, `emit` and `code` draw them."""

CONTEXT_LINES = 400
"""Most lines of a fence that are highlighted, at 0.2 ms a line.

Each part of a fence carries all earlier lines up to this number: a highlighter that starts within a comment or a string
would take code for text and text for code.
"""
