"""A panel that is worked with keys: up and down move, space or enter ticks, d deletes, esc closes."""

import json
from pathlib import Path
from threading import Lock
from typing import TypedDict

from zotd.sdk import Extension, HelloAck, OpenPanel, Panel

KEYS = "↑↓ move · space tick · d delete · esc close"


class Item(TypedDict):
    """One thing to do."""

    text: str
    done: bool


class TodoList:
    """The items, the cursor, and the file that they are kept in. The model and the user change it at the same time."""

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.cursor = 0
        self.lock = Lock()
        self.file = Path("todo.json")

    def load(self, directory: str) -> None:
        """Read the list that an earlier process has left."""
        self.file = Path(directory, "todo.json")
        if self.file.exists():
            self.items = json.loads(self.file.read_text("utf-8"))

    def change(self, *, added: str = "", deleted: bool = False, ticked: bool = False, moved: int = 0) -> list[str]:
        """Change the list, keep it, and give the lines to show."""
        with self.lock:
            if added:
                self.items.append({"text": added, "done": False})
            if deleted and self.items:
                del self.items[self.cursor]
            if ticked and self.items:
                self.items[self.cursor]["done"] ^= True
            self.cursor = max(0, min(self.cursor + moved, len(self.items) - 1))
            self.file.write_text(json.dumps(self.items, ensure_ascii=False), "utf-8")
            return self.lines()

    def lines(self) -> list[str]:
        """One line for each item."""
        lines = [
            f"{'>' if index == self.cursor else ' '} [{'x' if item['done'] else ' '}] {item['text']}"
            for index, item in enumerate(self.items)
        ]
        return lines or ["  nothing to do"]


ext = Extension("todo", "1.0.0")
todo = TodoList()


def press(key: str, typed: str) -> None:
    """A key in the panel."""
    if key == "esc":
        panel.close()
    elif key in {"up", "down"}:
        panel.render(todo.change(moved=1 if key == "down" else -1))
    elif key == "enter" or typed == " ":
        panel.render(todo.change(ticked=True))
    elif typed == "d":
        panel.render(todo.change(deleted=True))


panel = Panel("todo", "To do", footer=KEYS, on_key=press)


@ext.on_hello
def start(host: HelloAck) -> None:
    """Go on where the last process stopped."""
    todo.load(host.data_dir)


@ext.command("todo")
def show(text: str) -> OpenPanel:
    """Open the list; with a text, add that first."""
    panel.render(todo.change(added=text))
    return OpenPanel(panel)


@ext.tool
def add_todo(text: str) -> str:
    """Add something to the user's list of things to do."""
    lines = todo.change(added=text)
    panel.render(lines)
    return f"added; the list has {len(lines)} entries"


ext.run()
