"""Clients of sessions that another daemon of the same database has: their frames are passed on (`docs/postgresql.md`).

client <─> ServerConnection ── command for a session of another daemon ──> Forwarding ──> Relay ─ WebSocket ─> that daemon
^                                                                          │
└─────────────────────── responses and events, as they come <──────────────┘
"""
