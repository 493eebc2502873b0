"""What `import zot` loads, and where it can be imported."""

import subprocess
import sys

HEAVY = (
    *(
        "aiohttp",
        "anthropic",
        "google",
        "httpx",
        "mcp",
        "openai",
        "opentelemetry",
        "prometheus_client",
        "prompt_toolkit",
    ),
    *("psutil", "pydantic", "pygments", "sqlite3", "tree_sitter"),
    *(
        "zotctl",
        "zottui",
        "zotd.client.client",
        "zotd.embed.session_runtime",
        "zotd.jail",
        "zotd.providers",
        "zotd.sessions",
    ),
    *("zotd.store", "zotd.tools"),
)
"""Modules that only a run needs, or not even that."""

SUBINTERPRETER = """
import sys
from zot.main_interpreter import MODULE
interpreters = __import__(MODULE)
other = interpreters.create()
program = f"import sys; sys.path[:0] = {sys.path!r}\\ntry:\\n    import zot\\nexcept ImportError as error:\\n    print(error)"
interpreters.run_string(other, program)
"""


def printed(program):
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return ran.stdout


def test_importing_zot_and_making_an_agent_loads_nothing_that_only_a_run_needs():
    program = f"""
import sys
from zot import Agent, tool
@tool
def lookup(name: str) -> str: ...
Agent(tools=[lookup], can_use_tool=print)
Agent.attach("s_1")
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    assert printed(program) == "[]\n"


def test_a_subinterpreter_is_refused_in_a_sentence():
    assert printed(SUBINTERPRETER) == (
        "zot does not run in a sub-interpreter; use it in the main one, or in a process of its own\n"
    )
