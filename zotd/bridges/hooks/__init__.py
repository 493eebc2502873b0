"""Runs hooks: the process between the daemon and the commands that a user's or a project's files of hooks name.

It speaks the extension protocol to the daemon, as a guard, and the format of `docs/hooks.md` to the commands.
"""
