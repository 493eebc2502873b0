"""Makes up names for worktrees: two words that are easy to read, say and type."""

import secrets
from collections.abc import Callable

ADJECTIVES = (
    *("amber", "bold", "brave", "brief", "bright", "brisk", "calm", "clear", "clever", "cool", "crisp", "eager"),
    *("early", "fair", "fast", "fine", "fond", "fresh", "gentle", "glad", "grand", "green", "happy", "keen"),
    *("kind", "light", "lively", "lucky", "mellow", "merry", "mild", "modest", "neat", "noble", "plain", "proud"),
    *("quick", "quiet", "rapid", "ready", "round", "sharp", "silver", "simple", "smart", "smooth", "solid", "steady"),
)
NOUNS = (
    *("ash", "badger", "beech", "birch", "brook", "cedar", "cliff", "cloud", "comet", "coral", "crane", "creek"),
    *("delta", "dune", "eagle", "elm", "falcon", "fern", "finch", "fjord", "forest", "fox", "grove", "harbor"),
    *("hare", "heron", "hill", "iris", "island", "lake", "lark", "lily", "lynx", "maple", "meadow", "moon"),
    *("oak", "orchid", "otter", "owl", "pine", "pond", "raven", "reef", "ridge", "river", "robin", "willow"),
)

ATTEMPTS = 20
"""How many pairs of words are tried before one gets a number."""


def made_up(is_free: Callable[[str], bool]) -> str:
    """Return a name such as `calm-otter` that is free."""
    for _ in range(ATTEMPTS):
        name = f"{secrets.choice(ADJECTIVES)}-{secrets.choice(NOUNS)}"
        if is_free(name):
            return name
    return f"{secrets.choice(ADJECTIVES)}-{secrets.choice(NOUNS)}-{secrets.token_hex(3)}"
