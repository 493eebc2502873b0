"""The web page: what the WebSocket door serves besides the protocol. Static files, read once.

It is a client like every other and knows nothing that is not in `docs/protocol.md`; there is no build step, and no file
of anybody else (`docs/page.md`).
"""

from collections.abc import Mapping
from importlib import resources

CONTENT_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
}
"""By suffix; what has another one is not served."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The page loads its own files and talks to its own door. The last two: no text can become HTML, even by a mistake."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Sent with each file. No file is kept without asking: after an upgrade the modules must be of one version."""


def _files() -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}
    for file in resources.files(__name__).iterdir():
        kind = CONTENT_TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            found["/" if file.name == "page.html" else f"/{file.name}"] = (kind, file.read_bytes())
    return found


FILES: Mapping[str, tuple[str, bytes]] = _files()
"""URL path -> content type and body: `/`, `/page.css` and the modules, 80 kB together."""
