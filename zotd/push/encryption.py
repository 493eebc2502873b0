"""Encrypts push messages for a browser (RFC 8291) and names their sender to the push service (VAPID, RFC 8292).

Pure, except that keys are random unless the caller gives one. Imported when the first message is sent, because
`cryptography` takes 10 MB.
"""

import base64
import binascii
import json
import struct

from cryptography.exceptions import InvalidKey
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

RECORD_BYTES = 4096
"""Size of the only record of a message; push services take messages up to this size."""

PADDED_BYTES = 2048
"""Messages are filled up to this size, so that their length tells nothing."""

VALID_S = 12 * 3600
"""How long a signature is valid; push services accept a day at most."""

SALT_BYTES = 16
POINT_BYTES = 65
AUTH_BYTES = 16

_SCALAR_BYTES = 32


def to_text(data: bytes) -> str:
    """Encode as base64url without padding."""
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def to_bytes(text: str) -> bytes:
    """Decode base64url, with or without padding; raises ValueError."""
    try:
        return base64.b64decode(text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4), altchars=b"-_", validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from error


def new_key() -> str:
    """Make a private key."""
    return key_text(ec.generate_private_key(ec.SECP256R1()))


def key_text(key: ec.EllipticCurvePrivateKey) -> str:
    """Return a private key in its stored form."""
    return to_text(key.private_numbers().private_value.to_bytes(_SCALAR_BYTES))


def key_of(text: str) -> ec.EllipticCurvePrivateKey:
    """Return the private key of its stored form; raises ValueError."""
    return ec.derive_private_key(int.from_bytes(to_bytes(text)), ec.SECP256R1())


def public_of(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the public key as browsers want it: an uncompressed point."""
    return key.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


def check_receiver(public: str, auth: str) -> None:
    """Raise ValueError unless these are the keys of a browser."""
    if len(to_bytes(auth)) != AUTH_BYTES:
        raise ValueError("the secret has another length")
    ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), to_bytes(public))


def encrypted(message: bytes, public: str, auth: str, *, salt: bytes, own: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the body of the request: `message`, for the browser with these keys.

    Args:
        message: at most `PADDED_BYTES` bytes.
        public: the browser's public key, and
        auth: its secret, both in base64url.
        salt: random bytes.
        own: a key that is used for this message only.

    Raises:
        ValueError: the keys are not valid.
    """
    return sealed(message.ljust(PADDED_BYTES), public, auth, salt=salt, own=own)


def sealed(message: bytes, public: str, auth: str, *, salt: bytes, own: ec.EllipticCurvePrivateKey) -> bytes:
    """Like `encrypted`, without filling the message up."""
    receiver = to_bytes(public)
    sender = public_of(own)
    try:
        shared = own.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), receiver))
    except InvalidKey as error:
        raise ValueError("the public key is not valid") from error
    secret = _derived(shared, to_bytes(auth), b"WebPush: info\0" + receiver + sender, 32)
    key = _derived(secret, salt, b"Content-Encoding: aes128gcm\0", 16)
    nonce = _derived(secret, salt, b"Content-Encoding: nonce\0", 12)
    head = salt + struct.pack(">IB", RECORD_BYTES, POINT_BYTES) + sender
    return head + AESGCM(key).encrypt(nonce, message + b"\x02", None)  # 2: the last record


def _derived(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    return HKDF(hashes.SHA256(), length, salt, info).derive(secret)


def authorization(origin: str, key: ec.EllipticCurvePrivateKey, *, contact: str, now: float) -> str:
    """Return the header `Authorization` for the push service at `origin`; `contact` is whom it may write to."""
    claims = {"aud": origin, "exp": int(now) + VALID_S, "sub": contact}
    words = [to_text(json.dumps(part).encode()) for part in ({"typ": "JWT", "alg": "ES256"}, claims)]
    signed = ".".join(words)
    r, s = utils.decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    signature = to_text(r.to_bytes(_SCALAR_BYTES) + s.to_bytes(_SCALAR_BYTES))
    return f"vapid t={signed}.{signature}, k={to_text(public_of(key))}"
