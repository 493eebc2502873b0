"""What the command line tools do at each start and a template process does once for all of them."""

from zotctl import main
from zotd.client import options


def rehearse() -> None:
    """Make the parsers of the command lines, which takes 20 ms, and use them once: argparse compiles patterns then."""
    main.parser().parse_args(["sessions"])
    options.parser().parse_args(["--model", "rehearsal", "--new", "hello"])
