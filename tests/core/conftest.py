"""Fixtures for tests of the state machines."""

from zotd.core.life import Tick
from zotd.core.supervision import Supervision


class Life:
    """A state machine and its clock."""

    def __init__(self):
        self.machine = Supervision()
        self.now = 1000.0

    def tell(self, event, *, random=0.5):
        return self.machine.receive(event, now=self.now, random=random)

    def tick(self, seconds):
        """Advance the clock at once."""
        self.now += seconds
        return self.tell(Tick())

    def dialogue(self, *lines):
        """Check pairs of an input (a number: seconds that pass) and the expected actions."""
        for number, (event, actions) in enumerate(lines):
            found = self.tick(event) if isinstance(event, float | int) else self.tell(event)
            assert found == actions, f"line {number}: {event}"
