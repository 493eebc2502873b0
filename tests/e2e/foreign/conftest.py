"""Servers that others wrote, each in a process of its own."""

import socket
import subprocess
from contextlib import contextmanager

import pytest

from tests.e2e.foreign import litellm_proxy
from zotd.testing import warm


@contextmanager
def reserved_port():
    """A port of loopback that no other test gets meanwhile, and that a server can listen on again and again."""
    with socket.socket() as holder:
        # Bound and not listening: the kernel gives it to nobody by itself, and these options let a server bind it, too.
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@pytest.fixture
def port():
    """A port for a server of the test."""
    with reserved_port() as port:
        yield port


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """litellm's proxy for all tests of the module: it takes 5 s to start."""
    with reserved_port() as port, litellm_proxy.serving(tmp_path_factory.mktemp("litellm"), port) as proxy:
        yield proxy


def command(place, module, *arguments):
    """Run a command that a person types, in the environment of a daemon."""
    argv = warm.command(module, *arguments)
    return subprocess.run(argv, cwd=place.cwd, env=place.env, capture_output=True, text=True, check=False, timeout=50)
