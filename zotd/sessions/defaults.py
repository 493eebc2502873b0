"""The settings of a new session: what its client asks for, else what the configuration says."""

from pathlib import Path

from msgspec.structs import replace

from zotd.config import Config
from zotd.contributions.toolbox import check as check_tools
from zotd.core.permissions import MODES
from zotd.core.records import Settings
from zotd.ledger.spending import check_budget
from zotd.sessions.agent_settings import agent_settings
from zotd.sessions.models import ModelChooser
from zotd.sessions.run_models import checked_fallback
from zotd.wire.api import SessionCreate
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment


def new_settings(params: SessionCreate, environment: Environment, models: ModelChooser, config: Config) -> Settings:
    """The settings of the session that a client asks for.

    Raises:
        CommandError: one of them is not possible; the sentence says which.
    """
    if params.agent is not None:
        return _of_agent(params, config)
    provider, model = models.choose(params.provider, params.model, environment, keyless=params.keyless)
    mode = params.mode or config.approval.mode
    check_mode(mode)
    check_steps(params.max_steps)
    check_budget(params.budget_usd, params.budget_tokens)
    settings = Settings(
        provider=provider,
        model=model,
        reasoning=params.reasoning or config.reasoning,
        mode=mode,
        base_url=params.base_url,
        system_prompt=params.system_prompt,
        append_system_prompt=params.append_system_prompt,
        tools=params.tools,
        no_tools=params.no_tools,
        max_steps=params.max_steps if params.max_steps is not None else config.max_steps,
        extensions=params.extensions,
        no_ext=params.no_ext,
        own_key=environment.api_key is not None,
        budget_usd=params.budget_usd,
        budget_tokens=params.budget_tokens,
    )
    if params.fallback is not None:
        settings = replace(settings, fallback=checked_fallback(params.fallback, settings, models))
    if not params.keyless:
        models.check(settings, environment)
    check_tools(settings)
    return settings


def _of_agent(params: SessionCreate, config: Config) -> Settings:
    from zotd.adapters.catalog import known_adapters  # noqa: PLC0415  (few sessions are run by another agent)

    mode = params.mode or config.approval.mode
    check_mode(mode)
    check_steps(params.max_steps)
    check_budget(params.budget_usd, params.budget_tokens)
    return agent_settings(params, mode, known=known_adapters(config.adapters))


def check_mode(mode: str) -> None:
    """Raise CommandError for an approval mode that does not exist."""
    if mode not in MODES:
        raise CommandError(Code.BAD_REQUEST, f'unknown mode "{mode}"; there are {", ".join(MODES)}')


def check_steps(max_steps: int | None) -> None:
    """Raise CommandError for a step limit with which no run could begin."""
    if max_steps is not None and max_steps < 1:
        raise CommandError(Code.BAD_REQUEST, f"max_steps must be at least 1, not {max_steps}")


def check_directory(path: str) -> None:
    """Raise CommandError for a working directory that cannot be used. Blocks."""
    if not path.startswith("/"):
        raise CommandError(Code.BAD_REQUEST, f'cwd must be an absolute path, not "{path}"')
    try:
        exists = Path(path).is_dir()
    except OSError as error:  # a name that is too long, a directory that may not be entered
        raise CommandError(Code.BAD_REQUEST, f"the directory cannot be read: {error.strerror}") from error
    if not exists:
        raise CommandError(Code.BAD_REQUEST, f"{path} is not a directory; create it, or choose another one with cwd")
