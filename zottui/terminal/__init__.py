"""The terminal as a device: queries, reports, modes, and restoring it at the end."""
