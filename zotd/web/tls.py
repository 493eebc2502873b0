"""The certificates that requests of this package trust."""

import ssl
from functools import lru_cache

import httpx2


@lru_cache(maxsize=1)
def tls_context() -> ssl.SSLContext:
    """Return the TLS context; takes 20 ms the first time."""
    return httpx2.create_ssl_context()
