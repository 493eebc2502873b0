"""zot as an agent of Harbor, which runs Terminal-Bench and other sets of tasks in containers.

    PYTHONPATH=. harbor run --dataset terminal-bench@2.0 --agent benchmarks.tasks.harbor_agent:Zot --model anthropic/claude-sonnet-5-5

Harbor needs Python 3.12 and an environment of its own; this module needs nothing else of the project. `ZOT_WHEEL=PATH` installs that
wheel in the containers instead of the published package, and `--agent-kwarg budget_usd=2` limits what one task may cost.
"""

import json
import shlex
from pathlib import Path
from typing import ClassVar

from harbor.agents.agent_auth_resolution import ModelConnectionSpec
from harbor.agents.capabilities import AgentCapabilities
from harbor.agents.installed.base import BaseInstalledAgent, CliFlag, with_prompt_template
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext, ModelUsage

PATH = 'export PATH="$HOME/.local/bin:$PATH"; '
"""Where uv puts commands."""

INSTALLED = "/installed-agent"
"""A directory that Harbor has made."""

PYTHON = ">=3.11"
"""If the container has none of these, uv brings one along."""

EVENTS, USAGE = "zot.jsonl", "usage.json"
"""Files among the logs of a trial: the events of the run, and what all its requests have used, subagents included."""

VENDORS = {"gemini": "google", "amazon-bedrock": "bedrock", "vertex_ai": "vertex"}
"""zot's names of vendors that Harbor calls otherwise."""


class Zot(BaseInstalledAgent):
    """Installs zot in the container of a task, and gives it the instruction as one prompt.

    The mode is `yolo`: the container is the jail, and no person is there who could approve a call.
    """

    capabilities = AgentCapabilities(base_url=True, reasoning_effort=True)
    MODEL_CONNECTION = ModelConnectionSpec(base_url_destination_names={"default": None})  # it is an option of `zot`
    CLI_FLAGS: ClassVar[list[CliFlag]] = [
        CliFlag("reasoning_effort", "--reasoning"),
        CliFlag("budget_usd", "--budget-usd"),
        CliFlag("max_steps", "--max-steps", "int"),
    ]

    @staticmethod
    def name() -> str:
        """Return the agent's name in reports."""
        return "zot"

    def get_version_command(self) -> str:
        """Return the command that prints the installed version."""
        return f"{PATH}zot --version"

    def parse_version(self, stdout: str) -> str:
        """Return the version in that command's output."""
        return stdout.rsplit(maxsplit=1)[-1]

    async def install(self, environment: BaseEnvironment) -> None:
        """Install zot with uv."""
        await self.ensure_system_dependencies(environment, ("curl", "git", "ripgrep"))
        package = "zotd" if self._version is None else f"zotd=={self._version}"
        if wheel := self._get_env("ZOT_WHEEL"):
            package = f"{INSTALLED}/{Path(wheel).name}"
            await environment.upload_file(wheel, package)
        uv = "command -v uv > /dev/null || curl -LsSf https://astral.sh/uv/install.sh | sh"
        await self.exec_as_agent(environment, f"{PATH}{uv}; uv tool install --python '{PYTHON}' {shlex.quote(package)}")

    @with_prompt_template
    async def run(self, instruction: str, environment: BaseEnvironment, context: AgentContext) -> None:
        """Run the instruction to its end; raises an error of Harbor's if the run fails."""
        del context  # filled in afterwards
        if not self.model_name or "/" not in self.model_name:
            raise ValueError("zot needs a model as PROVIDER/MODEL: --model anthropic/claude-sonnet-5-5")
        access, (vendor, model) = self.model_connection, self.model_name.split("/", 1)
        words = ["zot", "--json", "--mode", "yolo", "--provider", VENDORS.get(vendor, vendor), "--model", model]
        if access.execution_base_url is not None:
            words += ["--base-url", access.execution_base_url]
        logs = self.environment_logs_dir
        command = (
            f"{PATH}printf '%s' {shlex.quote(instruction)} | {shlex.join(words)} {self.build_cli_flags()} > {logs / EVENTS}; status=$?; "
            f"zotctl usage --by model --json > {logs / USAGE}; tail -n 1 {logs / EVENTS}; exit $status"
        )
        await self.exec_as_agent(environment, command, env=dict(access.env))

    def populate_context_post_run(self, context: AgentContext) -> None:
        """Take over tokens and cost, from the copy of the logs on this machine."""
        try:
            rows = json.loads((self.logs_dir / USAGE).read_text())["rows"]
        except (OSError, ValueError, KeyError):
            return  # the trial ended before that was written
        context.model_usage = {row["key"]: _usage_of(row) for row in rows}
        used = context.model_usage.values()
        context.n_input_tokens = sum(one.n_input_tokens for one in used)
        context.n_cache_tokens = sum(one.n_cache_tokens for one in used)
        context.n_output_tokens = sum(one.n_output_tokens for one in used)
        context.cost_usd = sum(one.cost_usd or 0.0 for one in used)


def _usage_of(row: dict[str, float]) -> ModelUsage:
    cached = int(row.get("cache_read", 0))
    whole = int(row.get("input", 0)) + int(row.get("cache_write", 0)) + cached
    return ModelUsage(
        n_input_tokens=whole,
        n_cache_tokens=cached,
        n_output_tokens=int(row.get("output", 0)),
        cost_usd=row.get("cost_usd", 0.0),
    )
