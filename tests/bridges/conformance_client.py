"""What the conformance tests of the MCP project run as their client: our bridge as the host starts it, for the URL in its last argument.

It logs in with `zotctl mcp login` if the scenario is about that, and calls every tool once.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

from zotd.exthost import mcp
from zotd.testing.ext_driver import ExtensionDriver

PAGE_S = 20.0

LOGIN_S = 40.0

VALUES = {"integer": 5, "number": 3, "boolean": True, "array": [], "object": {}}
"""What a tool gets for a parameter that it needs, by type; a text otherwise."""

CONTEXT = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))


def log_in(env):
    """Run `zotctl mcp login`, and open the page that it names; the scenarios consent at once."""
    given = ["--client-id", CONTEXT["client_id"]] if "client_id" in CONTEXT else []
    command = [sys.executable, "-m", "zotctl", "mcp", "login", "srv", "--no-browser", *given]
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            sys.stderr.write(line)
            if found := re.fullmatch(r"log in on this page: (\S+)\n", line):
                with urllib.request.urlopen(found[1], timeout=PAGE_S) as page:
                    page.read()
        return process.wait(LOGIN_S) == 0


def call(driver, tool):
    """Call a tool, and answer what it asks meanwhile as somebody who agrees."""
    schema = tool.get("schema", {})
    kinds = {name: schema.get("properties", {}).get(name, {}).get("type") for name in schema.get("required", ())}
    args = {name: VALUES.get(kind, "text") for name, kind in kinds.items()}
    key = driver.request("tool_call", name=tool["name"], args=args, session_id="s_1")
    while (frame := driver.receive())["type"] != "tool_result" or frame["id"] != key:
        if frame["type"] == "ask_user":
            driver.send("user_answer", id=frame["id"], action="accept", values=frame["fields"])
        elif frame["type"] == "ask_model":
            driver.send("model_answer", id=frame["id"], action="accept", text="Hello.", model="m-1", stop="end_turn")
    return frame


def main():
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        file = home / "mcp.json"
        file.write_text(json.dumps({"mcpServers": {"srv": {"url": sys.argv[-1]}}}))
        env = {**os.environ, "ZOT_HOME": str(home), "ZOTD_SOCKET": str(home / "none.sock")}
        if os.environ["MCP_CONFORMANCE_SCENARIO"].startswith("auth/") and not log_in(env):
            return 1
        [manifest], _ = mcp.servers(file, directory=home, logins=home / mcp.LOGINS)
        with ExtensionDriver(manifest.argv, cwd=home, env=env) as driver:
            results = [call(driver, tool) for tool in driver.greet() if tool["type"] == "register_tool"]
            driver.shut_down()
    sys.stderr.write(f"{json.dumps(results)}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
