"""The terminal as a device: what it is asked, what it reports, and how it is left as it was."""
