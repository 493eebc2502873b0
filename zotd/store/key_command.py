"""API keys from a program of the user, such as a password manager (`api_key_command`)."""

import asyncio
import subprocess
from collections.abc import Mapping, Sequence
from signal import SIGKILL

from zotd import logs
from zotd.config import PROVIDER
from zotd.core.retry import Failure, ModelError
from zotd.process import spawn

TIMEOUT_S = 120.0
"""Time limit of the program; long, because it may ask its user for a password."""

OUTPUT_BYTES = 64 * 1024
"""Limit of its output; a key has about a hundred bytes, a token with claims a few thousand."""


class KeyCommand:
    """Runs the program once per vendor and caches the keys in memory."""

    def __init__(self, argv: Sequence[str], *, env: Mapping[str, str], timeout_s: float = TIMEOUT_S) -> None:
        """`argv` as configured, with `{provider}` for the vendor's name; `env` is the whole environment."""
        self._argv = tuple(argv)
        self._env = env
        self._timeout_s = timeout_s
        self._keys: dict[str, str] = {}
        # Held while the program runs: sessions that start together must not make it ask for the password twice.
        self._running = asyncio.Lock()

    async def key(self, provider: str) -> str | None:
        """Return the vendor's key; None if the program succeeds and prints nothing.

        Cancelling the call ends the program. Failures are not cached: the next call tries again.

        Raises:
            ModelError: `no_key`: the program could not be started, failed, took too long, or printed no valid key.
        """
        async with self._running:
            if provider in self._keys:
                return self._keys[provider]
            argv = [word.replace(PROVIDER, provider) for word in self._argv]
            key = _key_in(await self._output(argv), argv[0])
            if key:
                logs.hide(key)
                self._keys[provider] = key
            return key or None

    async def _output(self, argv: Sequence[str]) -> bytes:
        output = bytearray()

        def collect(data: bytes) -> None:
            output.extend(data)
            if len(output) > OUTPUT_BYTES:
                child.signal_group(SIGKILL)

        try:
            # Discard its stderr: the messages of a password manager might contain a secret.
            child = spawn(argv, cwd="/", env=self._env, on_output=collect, stderr=subprocess.DEVNULL)
        except (OSError, ValueError) as error:
            raise _failure(argv[0], f"cannot be started: {error}") from error
        try:
            async with asyncio.timeout(self._timeout_s), child:  # ends with its exit, or is ended
                code = await child.wait()
        except TimeoutError as error:
            raise _failure(argv[0], f"printed no key within {self._timeout_s:g} s") from error
        if len(output) > OUTPUT_BYTES:
            raise _failure(argv[0], f"printed more than {OUTPUT_BYTES >> 10} KiB")
        if code != 0:
            raise _failure(argv[0], f"failed with exit code {code}; run it in a terminal to see why")
        return bytes(output)


def _key_in(output: bytes, program: str) -> str:
    try:
        key = output.decode().strip()
    except UnicodeDecodeError as error:
        raise _failure(program, "printed something that is not text") from error
    # A key goes into an HTTP header: a second line or a blank is a warning or a prompt printed along with it.
    if not key.isprintable() or " " in key:
        raise _failure(program, "printed more than a key")
    return key


def _failure(program: str, what: str) -> ModelError:
    return ModelError(Failure.NO_KEY, f"api_key_command: {program} {what}")
