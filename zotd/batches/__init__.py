"""Batches of prompts, which any daemon of a fleet works through (`docs/batches.md`)."""
