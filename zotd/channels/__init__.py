"""Messaging channels: people who write on some platform talk to sessions (`docs/channels.md`).

    platform <-> extension process (recv, send) <-> channels <-> sessions

`programs` says which processes there are, `channels` is what their frames reach, `telegram` runs in such a process.
"""
