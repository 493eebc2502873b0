"""The options of a session that an editor can change: mode, model, reasoning."""

from collections.abc import Sequence

from zotd.wire import api
from zotd.wire.acp import AvailableCommand, ConfigOption, Hint, Mode, Modes, OptionValue
from zotd.wire.base import Frozen
from zotd.wire.jsonrpc import RpcError, RpcErrorCode

MODE = "mode"
MODEL = "model"
REASONING = "reasoning"

_MODES = [
    Mode("yolo", "Yolo", "Run every call that no rule is about."),
    Mode("workspace", "Workspace", "Run calls in a jail of the working directory; ask before what leads out of it."),
    Mode("ask", "Ask", "Ask before write, edit, bash and the tools of extensions."),
    Mode("read-only", "Read only", "Deny write, edit, bash and the tools of extensions."),
]

_LEVELS = ("off", "minimum", "low", "medium", "high", "xhigh", "max")
"""Levels of reasoning (`docs/protocol.md`)."""


def modes(session: api.SessionInfo) -> Modes:
    """Return the current and the available approval modes."""
    return Modes(session.mode, _MODES)


def config_options(session: api.SessionInfo, models: Sequence[api.ModelInfo]) -> list[ConfigOption]:
    """Return the approval modes, the models that have a key, as `provider/model`, and the levels of reasoning.

    Modes are options too, because an editor that knows options does not look at `modes`.
    """
    current = f"{session.provider}/{session.model}"
    names = [f"{one.provider}/{one.id}" for one in models if one.ready]
    # The current value must be among the choices, even if its model has no key.
    choices = [OptionValue(name, name) for name in ([] if current in names else [current]) + names]
    levels = [OptionValue(level, level) for level in _LEVELS]
    offered = [OptionValue(mode.id, mode.name, mode.description) for mode in _MODES]
    return [
        ConfigOption(MODE, "Mode", "mode", session.mode, offered),
        ConfigOption(MODEL, "Model", "model", current, choices),
        ConfigOption(REASONING, "Reasoning", "thought_level", session.reasoning, levels),
    ]


def change_of(session_id: str, option: str, value: str) -> Frozen:
    """Return the command that sets an option: `api.SetMode`, `api.SetModel` or `api.SetReasoning`.

    Raises:
        RpcError: the option or the value does not exist.
    """
    if option == MODE:
        return api.SetMode(session=session_id, mode=value)
    if option == MODEL:
        provider, slash, model = value.partition("/")  # the name of a model may contain slashes
        if not slash:
            raise RpcError(RpcErrorCode.PARAMS, f'"{value}" is not a model; use provider/model')
        return api.SetModel(session=session_id, model=model, provider=provider)
    if option == REASONING:
        if value not in _LEVELS:
            raise RpcError(RpcErrorCode.PARAMS, f'unknown reasoning "{value}"; there are {" ".join(_LEVELS)}')
        return api.SetReasoning(session=session_id, reasoning=value)
    raise RpcError(RpcErrorCode.PARAMS, f'there is no option "{option}"; there are {MODE}, {MODEL} and {REASONING}')


def window_of(session: api.SessionInfo, models: Sequence[api.ModelInfo]) -> int:
    """Return the context window of the session's model in tokens; 0 if unknown."""
    names = (session.provider, session.model)
    return next((one.context_window for one in models if (one.provider, one.id) == names), 0)


def commands(found: Sequence[api.Completion]) -> list[AvailableCommand]:
    """Convert slash commands to the list for editors."""
    return [
        AvailableCommand(one.text, one.detail or one.source or one.text, Hint(one.hint or "arguments")) for one in found
    ]
