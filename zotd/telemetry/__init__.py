"""Figures and traces of runs, derived from the records of sessions when they are committed (`docs/observability.md`)."""
