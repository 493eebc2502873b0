"""The tools that every session has: one module each, and the list `TOOLS`."""
