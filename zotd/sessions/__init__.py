"""The async shell around `core`: carries out what it decides, one session at a time."""
