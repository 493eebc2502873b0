"""litellm's proxy in a process of its own, before the scripted model server.

It has a virtual environment of its own beside ours, made by `make litellm`: it wants other versions of packages.
"""

import json
import os
import subprocess
import sys
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import pytest

from tests.conftest import SHARED
from tests.needs import ABSENT

PYTHON = Path(sys.prefix, "litellm", "bin", "python")

PROGRAM = """
from litellm.proxy import proxy_cli

proxy_cli.ProxyInitializationHelpers.get_loop_type = staticmethod(lambda: "asyncio")
proxy_cli.run_server()
"""
"""The command `litellm`, but with the event loop of asyncio. With uvloop it has ended with SIGSEGV when a vendor cut a reply."""

KEY = "sk-of-the-proxy"

MODELS = {
    "gpt-4o": ("openai/gpt-4o", "/v1"),
    "gpt-5": ("openai/gpt-5", "/v1"),
    "claude-sonnet-4-5": ("anthropic/claude-sonnet-4-5", ""),
}
"""Names of models, what they are behind the proxy, and the path of the API there."""

ENVIRONMENT = {
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # otherwise it asks the network for prices at its start
    "LITELLM_TELEMETRY": "False",
    "NO_PROXY": "127.0.0.1",
    "PYTHONUNBUFFERED": "1",
}


class Proxy:
    """A proxy that serves."""

    def __init__(self, process, upstream_port):
        self.upstream_port = upstream_port
        """Where it looks for its models; the server there is the test's."""
        self.url = ""
        self.log: deque[str] = deque(maxlen=200)
        self._process = process
        self._reader = Thread(target=self.log.extend, args=(process.stdout,), daemon=True)

    def wait(self):
        """Wait until it says where it listens; afterwards its output goes to `log`."""
        for line in self._process.stdout:
            self.log.append(line)
            if "Uvicorn running on " in line:
                self.url = line.partition("Uvicorn running on ")[2].split()[0]
                self._reader.start()
                return
        raise AssertionError("".join(self.log))

    def check(self):
        """Fail if it has ended by itself: a test would wait for it until its own limit."""
        assert self._process.poll() is None, f"litellm has ended: {self._process.returncode}\n{''.join(self.log)}"

    def end(self):
        """Kill it."""
        self._process.kill()
        self._process.wait()
        if self._reader.ident is not None:
            self._reader.join()
        self._process.stdout.close()


def configuration(upstream_port):
    """Its file, in the JSON that YAML includes."""
    models = [
        {"model_name": name, "litellm_params": _behind(model, f"http://127.0.0.1:{upstream_port}{path}")}
        for name, (model, path) in MODELS.items()
    ]
    return {
        "model_list": models,
        "general_settings": {"master_key": KEY},
        # What fails upstream shall reach us: the retries are ours to make, and to show.
        "router_settings": {"num_retries": 0, "disable_cooldowns": True},
        "litellm_settings": {"num_retries": 0, "telemetry": False},
    }


def _behind(model, api_base):
    return {"model": model, "api_base": api_base, "api_key": "sk-upstream"}


@contextmanager
def serving(folder, upstream_port):
    """A proxy, until the end of the block."""
    if not PYTHON.exists():
        pytest.skip(f"{ABSENT}litellm: make litellm")
    config = folder / "litellm.yaml"
    config.write_text(json.dumps(configuration(upstream_port)))
    process = subprocess.Popen(
        [PYTHON, "-c", PROGRAM, "--config", config, "--host", "127.0.0.1", "--port", "0"],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    SHARED.add(process.pid)
    proxy = Proxy(process, upstream_port)
    try:
        proxy.wait()
        yield proxy
    finally:
        proxy.end()
        SHARED.discard(process.pid)
