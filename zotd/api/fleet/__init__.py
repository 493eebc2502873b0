"""Forwards clients to the daemon of the same database that has their session (`docs/postgresql.md`).

    client ── ServerConnection ── Forwarding ── Relay ── WebSocket door of that daemon ── ServerConnection
              commands ──────────────────────────────────────────────────────────────────────>
              <────────────────────────────────────────────────────────── responses, events ───

`zotd/api/forwarding.py` decides which commands are forwarded; the modules here connect the daemons.
"""
