"""The example of the scripted model in the documentation, run."""

from collections.abc import Awaitable, Callable
from pathlib import Path

from zotd.testing.live_daemon import place

PAGE = Path(__file__).parent.parent.parent / "docs" / "models.md"


async def test_the_example_of_the_page_runs(tmp_path, monkeypatch):
    for name, value in place(tmp_path).env.items():
        monkeypatch.setenv(name, value)
    _, _, code = PAGE.read_text().partition("## A scripted model for tests")[2].partition("```python\n")
    scope: dict[str, Callable[[Path], Awaitable[None]]] = {}
    exec(compile(code.partition("```")[0], str(PAGE), "exec"), scope)
    await scope["main"](tmp_path / "work")
