"""Files of prompts for `zotctl fleet run`: one JSON object a line (`docs/batches.md`)."""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from zotd.client.blocking import Json
from zotd.client.errors import ClientError
from zotd.sanitize import one_line

MAX_FILE_BYTES = 256 * 1024 * 1024
"""Longest file: all of it is in memory."""

CHUNK_BYTES = 1024 * 1024
"""Prompts that are submitted together, unless a single one is longer."""

CHUNK_PROMPTS = 200
"""Most prompts that are submitted together."""

ID_DIGITS = 12
"""Of the digest in the id of a batch."""

NAME_CHARS = 60
"""Longest part of a file's name in the id of a batch."""

FIELDS: dict[str, tuple[type, ...]] = {
    "prompt": (str,),
    "cwd": (str,),
    "labels": (list,),
    "provider": (str,),
    "model": (str,),
    "mode": (str,),
    "limit_usd": (int, float),
    "limit_s": (int, float),
    "retries": (int,),
}
"""What a line may have, and of which types."""

KINDS = {str: "a string", list: "a list of strings", int: "an integer", float: "a number"}


class LineError(Exception):
    """What is wrong with a line, as a part of a sentence."""


def read(name: str) -> bytes:
    """Return the content of a file, `-` for standard input; raises ClientError."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MAX_FILE_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ClientError(f"{name} cannot be read: {(error.strerror or str(error)).lower()}") from error
    if len(data) > MAX_FILE_BYTES:
        raise ClientError(f"{name} is longer than {MAX_FILE_BYTES >> 20} MiB; split it")
    return data


def batch_id(name: str, orders: Sequence[Json]) -> str:
    """Return an id that the same prompts of a file of that name have again."""
    digest = hashlib.sha256(json.dumps(list(orders), sort_keys=True).encode()).hexdigest()
    stem = "stdin" if name == "-" else Path(name).name.removesuffix(".jsonl")
    readable = "".join(letter if letter.isalnum() or letter in "-_." else "-" for letter in stem)[:NAME_CHARS]
    return f"{readable}-{digest[:ID_DIGITS]}"


def orders(name: str, data: bytes, cwd: str, defaults: Json) -> list[Json]:
    """Return the prompts of a file, each with the number of its line; empty lines are passed over.

    `cwd`: for prompts without one; theirs may be relative to it. `defaults`: fields of prompts that do not have them.

    Raises:
        ClientError: a line is wrong, or there is none; names the line.
    """
    found = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            found.append(_order(number, line, cwd, defaults))
        except LineError as error:
            raise ClientError(f"{name}, line {number}: {error}; nothing was submitted") from error
    if not found:
        raise ClientError(f'{name} has no prompts; each line is an object such as {{"prompt": "fix issue 12"}}')
    return found


def chunks(orders: Sequence[Json]) -> Iterator[list[Json]]:
    """Yield prompts in parts that can be submitted at once."""
    chunk: list[Json] = []
    size = 0
    for order in orders:
        length = len(json.dumps(order))
        if chunk and (size + length > CHUNK_BYTES or len(chunk) >= CHUNK_PROMPTS):
            yield chunk
            chunk, size = [], 0
        chunk.append(order)
        size += length
    yield chunk


def _order(number: int, line: bytes, cwd: str, defaults: Json) -> Json:
    """Return one prompt as the command `batch.submit` has it; raises LineError."""
    fields = _fields(line)
    merged = {**defaults, **fields}
    prompt = merged.pop("prompt", "")
    if not isinstance(prompt, str) or not prompt.strip():
        raise LineError('there is no "prompt"')
    where = os.path.normpath(Path(cwd, str(merged.pop("cwd", ""))))
    return {"number": number, "message": prompt, "cwd": where, **merged}


def _fields(line: bytes) -> Json:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise LineError("it is not JSON") from error
    if not isinstance(fields, dict):
        raise LineError("it is not a JSON object")
    for name, value in fields.items():
        if name not in FIELDS:
            raise LineError(f'"{one_line(name)}" is unknown; a line may have {", ".join(FIELDS)}')
        kinds = FIELDS[name]
        are_strings = not isinstance(value, list) or all(isinstance(one, str) for one in value)
        if isinstance(value, bool) or not isinstance(value, kinds) or not are_strings:
            raise LineError(f'"{name}" is not {KINDS[kinds[-1]]}')
    return fields
