"""The web page of the WebSocket door: static files, read once.

It is an ordinary client that uses only what `docs/protocol.md` describes. There is no build step and no third-party
file (`docs/page.md`).
"""

from collections.abc import Mapping
from importlib import resources

CONTENT_TYPES: Mapping[str, str] = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}
"""Content types by suffix; files with another suffix are not served."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "manifest-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types zot-worker"
)
"""The page may load its own files and connect to its own door. The last two directives ensure that text never becomes
HTML, even if the page has a bug: the only policy allowed, of which there can be one, makes the address of the service
worker and nothing else."""

HEADERS: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Sent with each file. Browsers must revalidate, because after an upgrade all modules must be of the same version."""


def _files() -> dict[str, tuple[str, bytes]]:
    found: dict[str, tuple[str, bytes]] = {}
    for file in resources.files(__name__).iterdir():
        kind = CONTENT_TYPES.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            found["/" if file.name == "page.html" else f"/{file.name}"] = (kind, file.read_bytes())
    return found


FILES: Mapping[str, tuple[str, bytes]] = _files()
"""Content type and body by URL path: `/`, `/page.css`, the modules, the manifest and its icons; 130 kB in total."""
