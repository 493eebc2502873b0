"""The key that the daemons of one database share, and what they prove with it (`docs/postgresql.md`).

    caller ── hello: nonce, proof that it has the key and means this daemon ──> callee
    caller <── proof that it has the key and has read this hello ────────────── callee

Both proofs are over the certificate that the caller was shown. A third party between the two has to show a certificate of its
own, so it can reuse neither. No authority has to sign certificates, and the key itself is never sent.
"""

import hashlib
import hmac
import json
import secrets

from zotd import secret_file

FILE = "fleet-key"
"""Name of the file in `$ZOT_HOME`, unless `fleet.key_file` names another."""

KEY_BYTES = 32

MIN_CHARS = 32
"""A shorter word could be guessed, and is none that `made` returns."""


class FleetKeyError(Exception):
    """The file has no such key; the message is one sentence, and never quotes the file."""


class FleetKey:
    """A key, with which proofs are made and checked."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()

    @classmethod
    def read(cls, path: str) -> "FleetKey":
        """Return the key in a file that only its user can read; raises FleetKeyError."""
        try:
            key = secret_file.read(path, "fleet key")
        except secret_file.SecretFileError as error:
            raise FleetKeyError(str(error)) from error
        if len(key) < MIN_CHARS:
            raise FleetKeyError(
                f"the fleet key file {path} has fewer than {MIN_CHARS} characters; `zotctl fleet key` makes one"
            )
        return cls(key)

    def caller_proof(self, callee: str, nonce: str, certificate: str) -> str:
        """Return the proof for the daemon with the home `callee`.

        `certificate` is what `digest` returns for the one that the callee has shown, empty without TLS.
        """
        return self._proof("caller", callee, nonce, certificate)

    def callee_proof(self, callee: str, nonce: str, certificate: str) -> str:
        """Return the answer of that daemon."""
        return self._proof("callee", callee, nonce, certificate)

    def _proof(self, *words: str) -> str:
        return hmac.new(self._key, json.dumps(words).encode(), hashlib.sha256).hexdigest()


def made() -> str:
    """Return a new key, as it is stored."""
    return secrets.token_urlsafe(KEY_BYTES)


def nonce() -> str:
    """Return a word that no other hello has."""
    return secrets.token_hex(16)


def digest(certificate: bytes) -> str:
    """Return the SHA-256 of a certificate in DER."""
    return hashlib.sha256(certificate).hexdigest()


def is_same(proof: str, expected: str) -> bool:
    """Compare two proofs in constant time."""
    return hmac.compare_digest(proof.encode(), expected.encode())
