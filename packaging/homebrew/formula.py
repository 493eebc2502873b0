"""Print the Homebrew formula of a release: `python packaging/homebrew/formula.py dist/zotd-0.2.0.tar.gz --url URL …`.

The SHA-256 of zot is that of the archive, those of its resources are in `packaging/resources.json`.
"""

import argparse
import hashlib
import json
import re
import sys
from pathlib import Path

HERE = Path(__file__).parent

PYTHON = "3.13"
"""Of Homebrew: one with which all resources have been tried."""

RESOURCE = """\
  resource "{name}" do
    url "{url}"
    sha256 "{sha256}"
  end"""


def main(arguments: list[str]) -> int:
    """Print the formula; the exit code."""
    parser = argparse.ArgumentParser(description="Print the Homebrew formula of a release.")
    parser.add_argument("sdist", type=Path, help="the archive of the sources, as it is published")
    parser.add_argument("--url", required=True, help="where it is published")
    parser.add_argument("--homepage", required=True, help="the project's page")
    options = parser.parse_args(arguments)
    sys.stdout.write(formula(options.sdist, url=options.url, homepage=options.homepage))
    return 0


def formula(sdist: Path, *, url: str, homepage: str) -> str:
    """The formula for an archive of the sources that can be had at `url`."""
    resources = json.loads((HERE.parent / "resources.json").read_text())
    values = {
        "VERSION": sdist.name.removeprefix("zotd-").removesuffix(".tar.gz"),
        "HOMEPAGE": homepage,
        "URL": url,
        "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        "PYTHON": PYTHON,
        "RESOURCES": "\n\n".join(RESOURCE.format(**one) for one in resources),
    }
    return re.sub(r"@([A-Z0-9]+)@", lambda found: values[found[1]], (HERE / "zotd.rb.in").read_text())


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
