"""Loads the configuration. Precedence: flag, `ZOT_*` variable, `$ZOT_HOME/config.toml`, default.

Each field of `Config` is a setting: its type is the accepted type, the string below it the documentation. `keys` and
`docs` return both as data, for `zotctl config show` and docs/configuration.md. Secrets are not settings: they are kept
in `auth.json`, and a file that contains one is refused.
"""

import ast
import inspect
import re
import shlex
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Literal, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, replace

from zotd.config.kinds import Command, Labels, Names
from zotd.config.sections import (
    EXPOSED,
    PROVIDER,
    ApprovalSection,
    BudgetSection,
    ChannelsSection,
    Config,
    FleetSection,
    PushSection,
    RetentionSection,
    RuleEntry,
    Rules,
    TelegramSection,
    TelemetrySection,
    WebsocketSection,
)
from zotd.config.users import UserQuota, UserQuotas, quota_of
from zotd.config.vendors import ModelEntries, ModelEntry, ModelPrices, ProviderSection
from zotd.decodable import decodable

__all__ = [
    "EXPOSED",
    "PROVIDER",
    "ApprovalSection",
    "BudgetSection",
    "ChannelsSection",
    "Config",
    "ConfigError",
    "FleetSection",
    "LoadedConfig",
    "ModelEntry",
    "ModelPrices",
    "ProviderSection",
    "PushSection",
    "RetentionSection",
    "RuleEntry",
    "Setting",
    "SettingSource",
    "TelegramSection",
    "TelemetrySection",
    "UserQuota",
    "WebsocketSection",
    "changed_back",
    "docs",
    "keys",
    "load",
    "parse",
    "quota_of",
]


class ConfigError(Exception):
    """The configuration is invalid; the message is one sentence that names the source and the setting."""


class SettingSource(StrEnum):
    """Where the value of a setting comes from."""

    FLAG = "flag"
    ENVIRONMENT = "environment"
    FILE = "file"
    DEFAULT = "default"


class Setting(Struct, frozen=True):
    """One setting."""

    name: str
    """Dotted name: `limits.idle_exit_s`, `providers.<name>.base_url`."""
    kind: object
    """A type, for `msgspec.convert`."""
    default: object

    @property
    def expected(self) -> str:
        """The accepted type in words; completes "must be"."""
        kind = _without_none(self.kind)
        if get_origin(kind) is Literal:
            *others, last = (f'"{word}"' for word in get_args(kind))
            return f"{', '.join(others)} or {last}"
        titles = [part.title for part in get_args(kind) if isinstance(part, Meta)]
        return titles[0] or "a string" if titles else "a string"

    @property
    def variable(self) -> str | None:
        """Environment variable that sets it; None for settings below `<name>`, and lists of tables."""
        return (
            None
            if _ANY in self.name or self.kind in {*_TABLES, *_NAMED_TABLES}
            else "ZOT_" + self.name.replace(".", "_").upper()
        )


class LoadedConfig(Struct, frozen=True):
    """A configuration and where its values come from."""

    config: Config
    values: Mapping[str, object]
    """Every setting by name, including those of each configured provider."""
    sources: Mapping[str, SettingSource]
    """Source of each value in `values`."""
    warnings: Sequence[str]
    """One sentence for each unknown setting in the file."""


_ANY = "<name>"

_TABLES = {Rules: "rule", ModelEntries: "model"}
"""Settings that are lists of tables, and what an element is called."""

_NAMED_TABLES = (UserQuotas,)
"""Settings that are tables with names of the user's own."""

_SECRET = re.compile(r"(api_?key|secret|token|password)$", re.IGNORECASE)


@cache
def keys() -> Mapping[str, Setting]:
    """All settings by name, in the order of declaration."""
    return {name: Setting(name, field.type, _default(field)) for name, _, field in _fields(Config, "")}


@cache
def docs() -> Mapping[str, str]:
    """The documentation of each setting as Markdown, by name; read from the source of `sections`."""
    return {name: _texts(owner)[field.name] for name, owner, field in _fields(Config, "")}


def load(path: Path, env: Mapping[str, str], flags: Mapping[str, object] | None = None) -> LoadedConfig:
    """Load the configuration from flags, environment and file.

    Args:
        path: the file, which may be absent.
        env: an empty variable counts as unset; `ZOT_*` variables that set nothing here are ignored.
        flags: values from the command line by the setting's name; None means not given.

    Raises:
        ConfigError: the file cannot be read, is not TOML or contains a secret, or a value has the wrong type.
    """
    return _loaded(_read(path), path, env, flags or {})


def parse(text: str, path: Path) -> LoadedConfig:
    """Parse `text`, ignoring flags and environment; `path` is only used in messages.

    Raises:
        ConfigError: as `load`.
    """
    return _loaded(_parsed(text, path), path, {}, {})


def changed_back(loaded: LoadedConfig, values: Mapping[str, object], *, dropped: Sequence[str]) -> LoadedConfig:
    """Return `loaded` with `values` replaced and the settings in `dropped` removed."""
    found = {name: value for name, value in {**loaded.values, **values}.items() if name not in dropped}
    sources = {name: source for name, source in loaded.sources.items() if name not in dropped}
    return replace(loaded, config=_assemble(found), values=found, sources=sources)


def _loaded(
    tree: Mapping[str, object], path: Path, env: Mapping[str, str], flags: Mapping[str, object]
) -> LoadedConfig:
    values = {name: key.default for name, key in keys().items() if _ANY not in name}
    sources = dict.fromkeys(values, SettingSource.DEFAULT)
    warnings: list[str] = []
    for name, value in _leaves(tree, "", path):
        key = keys().get(_pattern(name))
        if key is None:
            warnings.append(_unknown(name, path))
        else:
            values[name], sources[name] = _convert(value, key, f"{path}: {name}"), SettingSource.FILE
    for name, key in keys().items():
        if key.variable and env.get(key.variable):
            values[name], sources[name] = _from_text(env[key.variable], key), SettingSource.ENVIRONMENT
        if flags.get(name) is not None:
            values[name], sources[name] = _convert(flags[name], key, f"the flag for {name}"), SettingSource.FLAG
    return LoadedConfig(_assemble(values), values, sources, warnings)


def _read(path: Path) -> dict[str, object]:
    try:
        return _parsed(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _parsed(text: str, path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


def _leaves(table: Mapping[str, object], prefix: str, path: Path) -> Iterator[tuple[str, object]]:
    """Yield each setting of the file with its value; an unknown table counts as one setting."""
    for part, value in table.items():
        name = prefix + part
        is_section = any(key.startswith(f"{_pattern(name)}.") for key in keys())
        if _SECRET.search(part):
            raise ConfigError(f"{path}: {name} looks like a secret; secrets belong in auth.json, not in this file")
        if is_section and not isinstance(value, dict):
            raise ConfigError(f"{path}: {name} must be a table: [{name}]")
        if isinstance(value, dict):
            below = list(_leaves(value, f"{name}.", path))  # also in unknown tables: they may contain secrets
            yield from below if is_section else [(name, value)]
        else:
            yield name, value


def _pattern(name: str) -> str:
    """Replace the user's own name in `name` by the placeholder: `providers.<name>.base_url`."""
    return re.sub(r"^(providers|adapters|diagnostics\.servers)\.[^.]+", rf"\1.{_ANY}", name)


def _unknown(name: str, path: Path) -> str:
    import difflib  # noqa: PLC0415  (a third of a MiB, for an error)

    close = difflib.get_close_matches(_pattern(name), keys(), n=1)
    return f"{path}: unknown setting {name} is ignored" + (f"; did you mean {close[0]}?" if close else "")


def _convert(value: object, key: Setting, place: str) -> object:
    try:
        converted: object = msgspec.convert(value, decodable(key.kind))
    except msgspec.ValidationError as error:
        which = _which_name(value, key) or _which(error, key)
        raise ConfigError(f"{place} must be {key.expected}{which}") from error
    return converted


def _which(error: msgspec.ValidationError, key: Setting) -> str:
    """Say which element of a list of tables is invalid and why; empty for other settings."""
    found = re.fullmatch(r"(.*) - at `\$\[(\d+)\](?:\.([\w.]+))?`", str(error))
    if found is None or key.kind not in _TABLES:
        return ""
    what, index, field = found.groups()
    return f"; {_TABLES[key.kind]} {int(index) + 1}{f', {field}' if field else ''}: {what.lower()}"


def _which_name(value: object, key: Setting) -> str:
    """Say which of the named tables is invalid and why; empty for other settings."""
    if key.kind not in _NAMED_TABLES or not isinstance(value, dict):
        return ""
    for name, table in value.items():
        try:
            msgspec.convert({name: table}, decodable(key.kind))
        except msgspec.ValidationError as error:
            what, _, field = str(error).partition(" - at `")
            field = field.rpartition(".")[2].rstrip("`") if "." in field.removeprefix("$[...]") else ""
            if field == "" and "regex" in what:
                what = "this is not the name of a user"
            return f"; {name!r}{f', {field}' if field else ''}: {what[:1].lower()}{what[1:]}"
    return ""


def _default(field: FieldInfo) -> object:
    return field.default if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _from_text(text: str, key: Setting) -> object:
    kind = _without_none(key.kind)
    try:
        words = shlex.split(text) if kind in {Command, Names, Labels} else text
        value: object = msgspec.convert(words, decodable(kind), strict=False)
    except ValueError as error:  # ValidationError, or an unclosed quote
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
        return msgspec.convert(tree, decodable(Config))
    except msgspec.ValidationError as error:  # from __post_init__; the single values are valid already
        raise ConfigError(str(error).partition(" - at `")[0]) from error


def _fields(owner: type[Struct], prefix: str) -> Iterator[tuple[str, type[Struct], FieldInfo]]:
    """Yield each setting below `owner` with the struct that declares it."""
    for field in msgspec.structs.fields(owner):
        name = prefix + field.name
        if get_origin(field.type) is dict and issubclass(get_args(field.type)[1], Struct):
            yield from _fields(get_args(field.type)[1], f"{name}.{_ANY}.")
        elif isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from _fields(field.type, f"{name}.")
        else:
            yield name, owner, field


def _texts(owner: type[Struct]) -> dict[str, str]:
    """Return the string below each field."""
    (tree,) = ast.parse(inspect.getsource(owner)).body
    assert isinstance(tree, ast.ClassDef)
    return {
        field.target.id: " ".join(text.value.value.split())
        for field, text in pairwise(tree.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        if isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant) and isinstance(text.value.value, str)
    }


def _without_none(kind: object) -> object:
    """Return `X` for `X | None`."""
    options = [option for option in get_args(kind) if option is not type(None)]
    return options[0] if type(None) in get_args(kind) else kind
