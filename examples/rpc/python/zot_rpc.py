#!/usr/bin/env python3
"""Drives `zot rpc` with Python's standard library: one prompt in, what happens out.

    zot_rpc.py [zot rpc flags...] -- PROMPT...

Text and tool calls go to stdout as they come. Exit code: 0 when the run ended normally, 1 when it failed, 2 for wrong
usage. ZOTCORE_RPC_TOKEN, when set, is sent with `hello`.
"""

import json
import os
import subprocess
import sys

Frame = dict[str, object]


class RunFailedError(Exception):
    """The run, or the process that should have done it, failed; the message says how."""


def main(arguments: list[str]) -> int:
    """Run one prompt; the exit code."""
    if "--" not in arguments[:-1]:
        print("usage: zot_rpc.py [zot rpc flags...] -- PROMPT...", file=sys.stderr)
        return 2
    end = arguments.index("--")
    flags, prompt = arguments[:end], " ".join(arguments[end + 1 :])
    pipe = subprocess.PIPE
    try:
        # Leaving the block closes its stdin, which ends it, and waits for it.
        with subprocess.Popen(["zot", "rpc", *flags], stdin=pipe, stdout=pipe, encoding="utf-8") as zot:
            send(zot, hello())
            send(zot, {"id": "1", "type": "prompt", "message": prompt})
            show_run(zot)
    except (RunFailedError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0 if zot.returncode == 0 else 1


def hello() -> Frame:
    """The first command; the token is required when the process was started with one."""
    token = os.environ.get("ZOTCORE_RPC_TOKEN")
    return {"id": "0", "type": "hello", **({"token": token} if token else {})}


def send(zot: subprocess.Popen[str], frame: Frame) -> None:
    """Write one command. Raises BrokenPipeError when the process has ended."""
    zot.stdin.write(json.dumps(frame) + "\n")
    zot.stdin.flush()


def show_run(zot: subprocess.Popen[str]) -> None:
    """Show frames until `done`.

    Raises:
        RunFailedError: the last turn did not stop with `end_turn` (some versions say `end`), a command was refused,
            or the process ended too early.
    """
    stop, error = None, None
    for line in zot.stdout:
        match json.loads(line):
            case {"type": "turn_end", **rest}:
                stop, error = rest["stop"], rest.get("error")
            case {"type": "error", "message": error}:
                pass
            case {"type": "response", "success": False, "error": reason}:
                raise RunFailedError(reason)
            case {"type": "done"} if stop in {"end_turn", "end"}:
                return
            case {"type": "done"}:
                raise RunFailedError(error or f"the run stopped: {stop}")
            case frame:
                show(frame)
    raise RunFailedError("zot rpc ended before the run did")


def show(frame: Frame) -> None:
    """Print what one event has to say; events that this program does not know say nothing."""
    match frame:
        case {"type": "text_delta", "delta": text}:
            print(text, end="", flush=True)
        case {"type": "assistant_message", "content": blocks} if any(block["type"] == "text" for block in blocks):
            print(flush=True)
        case {"type": "tool_call", "name": name, "args": args}:
            print(f"[call] {name} {json.dumps(args, ensure_ascii=False, separators=(',', ':'))}", flush=True)
        case {"type": "tool_result", "is_error": is_error, "content": blocks}:
            text = "\n".join(block.get("text", f"[{block.get('mime_type')}]") for block in blocks)
            print(f"[{'error' if is_error else 'result'}] {text.split(chr(10))[0]}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
