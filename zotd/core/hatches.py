"""Options by which harmless programs run another command or write a file. An `allow` rule has to name them.

`git *` is meant for `git log`, not for `git -c alias.x='!rm -rf ~' x`. The list contains the known options and cannot
be complete, which is why `docs/security.md` lists it among the known holes.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from zotd.core.shell import SHELLS, WRAPPERS
from zotd.core.shell_words import Word


class _Hatches(Struct, frozen=True):
    """Arguments with which one program runs other commands or writes files."""

    words: frozenset[str] = frozenset()
    """Whole words, also as the part before a `=`."""
    longs: Sequence[str] = ()
    """Long options. Abbreviations match too, because most programs accept them."""
    letters: str = ""
    """Short options, alone or combined behind one dash."""
    starts: tuple[str, ...] = ()
    """Prefixes of words."""


_NONE = _Hatches()

HATCHES: Mapping[str, _Hatches] = {
    "cargo": _Hatches(longs=("--config",)),
    "fd": _Hatches(longs=("--exec", "--exec-batch"), letters="xX"),
    "fdfind": _Hatches(longs=("--exec", "--exec-batch"), letters="xX"),
    "find": _Hatches(
        frozenset({"-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf", "-fls"})
    ),
    "git": _Hatches(
        words=frozenset({"foreach", "run", "filter-branch", "difftool", "mergetool"}),
        longs=(
            *("--config", "--config-env", "--exec", "--exec-path", "--ext-diff", "--extcmd", "--open-files-in-pager"),
            *("--output", "--receive-pack", "--template", "--textconv", "--upload-pack"),
        ),
        letters="O",
        starts=("-c", "-x", "ext::"),
    ),
    "go": _Hatches(frozenset({"-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"})),
    "man": _Hatches(longs=("--pager", "--html"), letters="PH"),
    "rg": _Hatches(longs=("--pre", "--hostname-bin")),
    "rsync": _Hatches(longs=("--rsh", "--rsync-path"), letters="e"),
    "scp": _Hatches(letters="oFSD"),
    "sftp": _Hatches(letters="oFSD"),
    "sort": _Hatches(longs=("--compress-program", "--output"), letters="o"),
    "ssh": _Hatches(letters="oF"),
    "tar": _Hatches(
        longs=(
            *("--checkpoint-action", "--info-script", "--new-volume-script", "--rsh-command"),
            *("--to-command", "--use-compress-program"),
        ),
        letters="IF",
    ),
}


def are_named(words: Sequence[Word], pattern: str) -> bool:
    """Whether the glob names every hatch that the command uses, as often as it is used, and every unknown value.

    A variable or brace expansion could expand to a hatch, so it must be in the glob literally.
    """
    name = words[0].text.rpartition("/")[2]
    if not words[0].is_fixed:  # the program itself is a variable
        return False
    hatches = HATCHES.get(name, _NONE)
    named = [word.strip("'\"") for word in pattern.split()]  # a rule may quote words like the command does
    # Counted: an allow for one `-c color.ui=never` must not admit a second `-c` that the `*` would match.
    used = Counter(option for word in words[1:] for option in _used(hatches, word.text, words))
    if any(sum(word.startswith(option) for word in named) < count for option, count in used.items()):
        return False
    if name not in HATCHES and name not in WRAPPERS and name not in SHELLS:
        return True
    unknown = [word for word in words if not word.is_fixed and ("$" in word.text or "{" in word.text)]
    return all(word.text in pattern for word in unknown)


def _used(hatches: _Hatches, word: str, words: Sequence[Word]) -> Iterator[str]:
    option = word.partition("=")[0]
    # Abbreviations need at least one letter: `--` alone only ends the options.
    if option in hatches.words or (len(option) > 2 and any(one.startswith(option) for one in hatches.longs)):
        yield option
    elif word.startswith(hatches.starts) if hatches.starts else False:
        yield next(start for start in hatches.starts if word.startswith(start))
    elif word[:1] == "-" and word[:2] != "--" and set(word[1:]) & set(hatches.letters):
        yield word
    # The short form of `--upload-pack`, which only these subcommands have.
    elif word.startswith("-u") and any(one.text in {"clone", "ls-remote", "fetch-pack"} for one in words):
        yield "-u"
