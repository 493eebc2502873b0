"""Discovers, installs and supervises extensions, and exchanges frames with their processes."""
