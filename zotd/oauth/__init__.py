"""OAuth 2.0 for a program on the user's machine: authorization code with PKCE, device flow, refresh, revocation.

Knows no vendor. `protocol` builds requests and reads answers without I/O; `transport` sends them; `browser` and `device`
are the two ways to log in.
"""
