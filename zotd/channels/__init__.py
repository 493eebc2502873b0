"""Messaging channels: people on a messaging platform talk to sessions (`docs/channels.md`).

    platform <-> extension process (recv, send) <-> channels <-> sessions

`programs` defines the processes, `channels` receives their frames, `telegram` runs in such a process.
"""
