"""`$ZOT_HOME/config.toml`: every key, and where its value comes from: flag > `ZOT_*` > file > default.

A key is a field of `Config` and nothing else: its type says what is accepted, the text below it what it does.
`keys` and `docs` give the same as data, for `zotctl config show` and the documentation. No secret is a key: those
stand in `auth.json`.
"""

import ast
import difflib
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo

from zotd.config.sections import (
    EXPOSED,
    PROVIDER,
    Approval,
    Budget,
    Channels,
    Command,
    Config,
    Names,
    Provider,
    Retention,
    Rule,
    Rules,
    Telegram,
    Websocket,
)

__all__ = [
    "EXPOSED",
    "PROVIDER",
    "Approval",
    "Budget",
    "Channels",
    "Config",
    "ConfigError",
    "Key",
    "Loaded",
    "Provider",
    "Retention",
    "Rule",
    "Source",
    "Telegram",
    "Websocket",
    "changed_back",
    "docs",
    "keys",
    "load",
    "parse",
]


class ConfigError(Exception):
    """The configuration cannot be used; the message is one sentence that names the place and the key."""


class Source(StrEnum):
    """Where a value comes from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


@dataclass(frozen=True, slots=True)
class Key:
    """What a key accepts."""

    name: str
    """As people write it: `limits.idle_exit_s`, `providers.<name>.base_url`."""
    kind: object
    """A type, for `msgspec.convert`."""
    default: object

    @property
    def expected(self) -> str:
        """The type in words; completes "must be"."""
        kind = _without_none(self.kind)
        if get_origin(kind) is Literal:
            return " or ".join(f'"{word}"' for word in get_args(kind))
        titles = [part.title for part in get_args(kind) if isinstance(part, Meta)]
        return titles[0] or "a text" if titles else "a text"

    @property
    def variable(self) -> str | None:
        """The environment variable that sets it; None for keys of `[providers.<name>]`, and for rules."""
        return None if _ANY in self.name or self.kind == Rules else "ZOT_" + self.name.replace(".", "_").upper()


@dataclass(frozen=True, slots=True)
class Loaded:
    """The configuration, and how it came to be."""

    config: Config
    values: Mapping[str, object]
    """By the key's name: every key, and those of each configured provider."""
    sources: Mapping[str, Source]
    """Of the same keys."""
    warnings: Sequence[str]
    """A sentence for each key that nobody knows."""


_ANY = "<name>"

_SECRET = re.compile(r"(api_?key|secret|token|password)$", re.IGNORECASE)


@cache
def keys() -> Mapping[str, Key]:
    """Every key by its name, in the order in which they are declared."""
    return {name: Key(name, field.type, field.default) for name, _, field in _fields(Config, "")}


@cache
def docs() -> Mapping[str, str]:
    """What each key does, by its name, as Markdown; read from this module's source."""
    return {name: _texts(owner)[field.name] for name, owner, field in _fields(Config, "")}


def load(path: Path, env: Mapping[str, str], flags: Mapping[str, object] | None = None) -> Loaded:
    """The configuration from the file `path`, which need not exist, and what goes before it.

    `flags` are values from the command line by the key's name; None: not given. An empty variable counts as unset;
    `ZOT_*` variables that are no key's mean other things and are not looked at.

    Raises ConfigError when the file cannot be read, is not TOML or holds a secret, or when a value is not what its
    key expects.
    """
    return _loaded(_read(path), path, env, flags or {})


def parse(text: str, path: Path) -> Loaded:
    """The configuration that stands in `text`, and nowhere else; `path` is where that is from.

    Raises ConfigError as `load` does.
    """
    return _loaded(_parsed(text, path), path, {}, {})


def changed_back(loaded: Loaded, values: Mapping[str, object], *, dropped: Sequence[str]) -> Loaded:
    """The configuration with these values instead, and without the keys in `dropped`."""
    found = {name: value for name, value in {**loaded.values, **values}.items() if name not in dropped}
    sources = {name: source for name, source in loaded.sources.items() if name not in dropped}
    return replace(loaded, config=_assemble(found), values=found, sources=sources)


def _loaded(tree: Mapping[str, object], path: Path, env: Mapping[str, str], flags: Mapping[str, object]) -> Loaded:
    values = {name: key.default for name, key in keys().items() if _ANY not in name}
    sources = dict.fromkeys(values, Source.DEFAULT)
    warnings: list[str] = []
    for name, value in _leaves(tree, "", path):
        key = keys().get(_pattern(name))
        if key is None:
            warnings.append(_unknown(name, path))
        else:
            values[name], sources[name] = _convert(value, key, f"{path}: {name}"), Source.FILE
    for name, key in keys().items():
        if key.variable and env.get(key.variable):
            values[name], sources[name] = _from_text(env[key.variable], key), Source.ENVIRONMENT
        if flags.get(name) is not None:
            values[name], sources[name] = _convert(flags[name], key, f"the flag for {name}"), Source.FLAG
    return Loaded(_assemble(values), values, sources, warnings)


def _read(path: Path) -> dict[str, object]:
    try:
        return _parsed(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _parsed(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not TOML: {error}") from error


def _leaves(table: Mapping[str, object], prefix: str, path: Path) -> Iterator[tuple[str, object]]:
    """Each key of the file with its value; a table that is no section is one key."""
    for part, value in table.items():
        name = prefix + part
        is_section = any(key.startswith(f"{_pattern(name)}.") for key in keys())
        if _SECRET.search(part):
            raise ConfigError(f"{path}: {name} is a secret, and this file is none: put keys into auth.json")
        if is_section and not isinstance(value, dict):
            raise ConfigError(f"{path}: {name} must be a table: [{name}]")
        if isinstance(value, dict):
            below = list(_leaves(value, f"{name}.", path))  # secrets are looked for in unknown tables too
            yield from below if is_section else [(name, value)]
        else:
            yield name, value


def _pattern(name: str) -> str:
    """`name` with the name of a provider replaced: `providers.<name>.base_url`."""
    return re.sub(r"^providers\.[^.]+", f"providers.{_ANY}", name)


def _unknown(name: str, path: Path) -> str:
    close = difflib.get_close_matches(_pattern(name), keys(), n=1)
    return f"{path}: {name} is no key and is ignored" + (f"; did you mean {close[0]}?" if close else "")


def _convert(value: object, key: Key, place: str) -> object:
    try:
        converted: object = msgspec.convert(value, key.kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{place} must be {key.expected}{_which(error) if key.kind == Rules else ''}") from error
    return converted


def _which(error: msgspec.ValidationError) -> str:
    """Which entry of a list of tables is wrong, and how."""
    found = re.fullmatch(r"(.*) - at `\$\[(\d+)\](?:\.(\w+))?`", str(error))
    if found is None:
        return ""
    what, index, field = found.groups()
    return f"; in number {int(index) + 1}{f', {field}' if field else ''}: {what.lower()}"


def _from_text(text: str, key: Key) -> object:
    kind = _without_none(key.kind)
    try:
        value: object = msgspec.convert(shlex.split(text) if kind in {Command, Names} else text, kind, strict=False)
    except ValueError as error:  # a ValidationError, or a quote that is not closed
        raise ConfigError(f"{key.variable} must be {key.expected}") from error
    return value


def _assemble(values: Mapping[str, object]) -> Config:
    tree: dict[str, object] = {}
    for name, value in values.items():
        *tables, last = name.split(".")
        node = tree
        for table in tables:
            inner = node.setdefault(table, {})
            assert isinstance(inner, dict)
            node = inner
        node[last] = value
    try:
        return msgspec.convert(tree, Config)
    except msgspec.ValidationError as error:  # of __post_init__: each value has its type already
        raise ConfigError(str(error)) from error


def _fields(owner: type[Struct], prefix: str) -> Iterator[tuple[str, type[Struct], FieldInfo]]:
    """Each key below `owner` with the struct that declares it."""
    for field in msgspec.structs.fields(owner):
        name = prefix + field.name
        if get_origin(field.type) is dict:
            yield from _fields(get_args(field.type)[1], f"{name}.{_ANY}.")
        elif isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from _fields(field.type, f"{name}.")
        else:
            yield name, owner, field


def _texts(owner: type[Struct]) -> dict[str, str]:
    """The string below each field."""
    (tree,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _without_none(kind: object) -> object:
    """`X` of `X | None`."""
    options = [option for option in get_args(kind) if option is not type(None)]
    return options[0] if type(None) in get_args(kind) else kind
