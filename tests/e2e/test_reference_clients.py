"""The clients of examples/rpc, each written from the protocol alone, against the real `zot rpc`."""

import asyncio
import os
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.needs import needs
from zotd.template.client import SWITCH
from zotd.testing import warm
from zotd.testing.model_server import ModelServer
from zotd.testing.script import CallPart, Refusal, calls, text

EXAMPLES = Path(__file__).parents[2] / "examples/rpc"

BIN = Path(sys.executable).parent

GO_BUILD_S = 300
"""The first build on a machine compiles Go's library: 10 s on two idle cores."""

RUN_S = 60
"""One run of one client, which starts `zot rpc`."""

CLIENTS = {
    "shell": ["bash", str(EXAMPLES / "shell/zot-rpc.sh")],
    "python": [sys.executable, str(EXAMPLES / "python/zot_rpc.py")],
    "node": ["node", str(EXAMPLES / "node/zot-rpc.mjs")],
}


NEEDED = {"shell": "jq", "node": "node"}
"""What a client takes that not every machine has."""


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


@pytest.fixture(scope="session")
def go_client(request, tmp_path_factory):
    program = tmp_path_factory.mktemp("go") / "zot-rpc"
    cache = str(request.config.cache.mkdir("go-build"))
    env = {**os.environ, "GOCACHE": cache, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPROXY": "off"}
    for arguments in (["vet", "."], ["build", "-o", program, "."]):
        subprocess.run([BIN / "go", *arguments], cwd=EXAMPLES / "go", env=env, check=True, timeout=GO_BUILD_S)
    return [str(program)]


@pytest.fixture(params=[*CLIENTS, pytest.param("go", marks=pytest.mark.timeout(GO_BUILD_S + RUN_S))])
def client(request):
    if request.param in NEEDED:
        needs(NEEDED[request.param])
    return CLIENTS.get(request.param) or request.getfixturevalue("go_client")


@pytest.fixture(scope="session")
def zot(tmp_path_factory):
    """A directory with a `zot` from the template process."""
    program = tmp_path_factory.mktemp("bin") / "zot"
    program.write_text(f'#!/bin/sh\nexec {shlex.join(map(str, warm.command("zotd.cli")))} "$@"\n')
    program.chmod(0o755)
    return program.parent


@pytest.fixture
def run(client, tmp_path, zot):
    """Runs the client in an empty directory, against a scripted model."""

    async def run(*arguments, answers=(), prompt="hello", **env):
        async with ModelServer(answers) as server:
            flags = ["--provider", "openai", "--base-url", server.openai_url, "--api-key", "k", *arguments]
            result = await start([*client, *flags, "--", *prompt.split(" ")], **env)
            return result, server.requests

    async def start(command, **env):
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("ZOT")}
        process = await asyncio.create_subprocess_exec(
            *command,
            cwd=tmp_path,
            env={
                **inherited,
                "PATH": f"{zot}:{BIN}:{os.environ['PATH']}",
                "ZOT_HOME": str(tmp_path / "home"),
                SWITCH: "off",
                **env,
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with asyncio.timeout(RUN_S):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.communicate()
            raise
        assert process.returncode is not None
        return Result(process.returncode, out.decode(), err.decode())

    return run


async def test_text_and_tools_are_shown_as_they_come(run, tmp_path):
    (tmp_path / "a.txt").write_text("walrus\n")
    answers = [
        calls(CallPart("read", {"path": "a.txt"}), before="Looking."),
        calls(CallPart("read", {"path": "b.txt"})),
        text("It says\u2028", "wälrus."),
    ]
    result, requests = await run(answers=answers, prompt='what\'s in\n"a.txt"?')

    lines = result.out.split("\n")
    assert (result.code, result.err) == (0, "")
    assert lines[:4] == ["Looking.", '[call] read {"path":"a.txt"}', "[result] walrus", '[call] read {"path":"b.txt"}']
    assert lines[4].startswith("[error] ")
    assert lines[5:] == ["It says\u2028wälrus.", ""]
    assert requests[0].messages[-1]["content"] == 'what\'s in\n"a.txt"?'


async def test_a_failed_run_ends_with_its_sentence_and_exit_code_1(run):
    result, _ = await run(answers=[Refusal(401, "no such key")])
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("error: ")


async def test_a_run_that_reaches_its_step_limit_has_failed(run):
    result, _ = await run("--max-steps", "1", answers=[calls(CallPart("glob", {"pattern": "*"}))])
    assert result.code == 1
    assert result.err.startswith("error: ")


async def test_a_process_that_never_starts_to_serve_is_a_failure(run):
    result, requests = await run("--no-such-flag")
    assert result.code == 1
    assert "--no-such-flag" in result.err
    assert requests == []


async def test_the_token_is_sent_when_there_is_one(run):
    result, _ = await run(answers=[text("hi")], ZOTCORE_RPC_TOKEN="a secret")
    assert (result.code, result.out, result.err) == (0, "hi\n", "")
