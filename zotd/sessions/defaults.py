"""How sessions of this process are kept, and what new ones begin with."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from zotd.contributions.toolbox import check as check_tools
from zotd.core.permissions import MODES
from zotd.core.records import Settings
from zotd.ledger.spending import check_budget
from zotd.permissions.config import ApprovalConfig
from zotd.sessions.models import Models
from zotd.wire.api import SessionCreate
from zotd.wire.errors import Code, CommandError
from zotd.workspace.environment import Environment


@dataclass(frozen=True, slots=True)
class SessionDefaults:
    """How sessions are kept."""

    environment: Mapping[str, str]
    """Of this process, for sessions that were loaded and whose client has not sent its own."""
    unload_s: float
    mode: str = "yolo"
    reasoning: str = "off"
    max_steps: int | None = None
    addressed: bool = True
    """Events carry `session` and `seq`; False on stdio, where prompts are also answered when they start."""
    approval_config: ApprovalConfig = field(default_factory=ApprovalConfig)

    def settings(self, params: SessionCreate, environment: Environment, models: Models) -> Settings:
        """Of a new session.

        Raises:
            CommandError: one of them cannot be; the sentence says which.
        """
        provider, model = models.choose(params.provider, params.model, environment, keyless=params.keyless)
        mode = params.mode or self.mode
        check_mode(mode)
        check_steps(params.max_steps)
        check_budget(params.budget_usd, params.budget_tokens)
        settings = Settings(
            provider=provider,
            model=model,
            reasoning=params.reasoning or self.reasoning,
            mode=mode,
            base_url=params.base_url,
            system_prompt=params.system_prompt,
            append_system_prompt=params.append_system_prompt,
            tools=params.tools,
            no_tools=params.no_tools,
            max_steps=params.max_steps if params.max_steps is not None else self.max_steps,
            extensions=params.extensions,
            no_ext=params.no_ext,
            own_key=environment.api_key is not None,
            budget_usd=params.budget_usd,
            budget_tokens=params.budget_tokens,
        )
        if not params.keyless:
            models.check(settings, environment)
        check_tools(settings)
        return settings


def check_mode(mode: str) -> None:
    """Raise CommandError for an approval mode that does not exist."""
    if mode not in MODES:
        raise CommandError(Code.BAD_REQUEST, f'there is no mode "{mode}"; there are {", ".join(MODES)}')


def check_steps(max_steps: int | None) -> None:
    """Raise CommandError for a step limit with which no run could begin."""
    if max_steps is not None and max_steps < 1:
        raise CommandError(Code.BAD_REQUEST, f"max_steps must be at least 1, {max_steps} is not")
