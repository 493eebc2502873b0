"""What can be chosen of `zotd.testing.odd_agent`: modes, options, or what makes no sense, as `ODD` in its environment says."""

from collections.abc import Sequence

Json = dict[str, object]

MODES = {"ask": "Ask", "code": "Write code", "plan": "Plan"}

MODELS = {"small": "Small", "large": "Large"}


class OddChoices:
    """The mode and the model, of one process: another one begins with the first of each."""

    def __init__(self, odd: str) -> None:
        self._odd = odd
        self.mode = "ask"
        self.model = "small"

    def fields(self) -> Json:
        """Return what the answer to `session/new` and `session/load` says of it."""
        match self._odd:
            case "modes":
                return {"modes": self._modes()}
            case "options":  # the older form says less
                return {"modes": self._modes(), "configOptions": self.options()}
            case "absurd-options":
                return {"modes": {"currentModeId": 7}, "configOptions": self._absurd()}
            case _:
                return {}

    def set(self, option: str, value: str) -> str:
        """Take a value; returns why not, or nothing."""
        if value == "plan" and self._odd == "options":
            return "plan is for members"
        if option == "model":
            self.model = value
        else:
            self.mode = value
        return ""

    def options(self) -> list[Json]:
        """Return all options."""
        groups: list[Json] = [{"group": "own", "name": "Own", "options": [_value(*one) for one in MODELS.items()]}]
        return [
            _select("how", "Approach", "mode", current=self.mode, options=[_value(*one) for one in MODES.items()]),
            _select("model", "Model", "model", current=self.model, options=groups),
            {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": True},
        ]

    def _modes(self) -> Json:
        known = [{"id": key, "name": name, "description": f"to {name}"} for key, name in MODES.items()]
        return {"currentModeId": self.mode, "availableModes": known}

    def _absurd(self) -> list[Json]:
        values = [_value("\x1b[31mred", "red"), _value("v" * 5_000, "long"), _value("good", "\x1b]0;x\x07Good")]
        return [
            *(_select(name, name, "", current="good", options=values) for name in ("", "\x1b[2J", "x" * 5_000, "fine")),
            _select("empty", "Empty", "", current="", options=[]),
        ]


def _select(key: str, name: str, category: str, *, current: str, options: Sequence[Json]) -> Json:
    fields = {"id": key, "name": name, "category": category, "type": "select"}
    return {**fields, "currentValue": current, "options": options}


def _value(key: str, name: str) -> Json:
    return {"value": key, "name": name, "description": None}
