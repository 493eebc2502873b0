"""Finds the commands that a line of shell would run by parsing it, so that permission rules see each of them.

    cd . && X=1 sudo -u me rm -rf y   ->   `cd .`, `sudo -u me rm -rf y`, `rm -rf y`

Simple commands are found anywhere: in lists, pipes, subshells, functions, loops, substitutions and heredocs. Programs
that run another command (`env`, `xargs`, `sh -c`, `find -exec`, …) count as both. A line whose commands depend on
values at run time is not *understood*, and needs an approval. Pure; the parser is imported at first use.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from zotd.core.shell_words import SyntaxNode, UnknownError, Word, is_simple, tree, words_of

MAX_CHARS = 16 * 1024
"""Longest line that is parsed; the worst case measured took 150 ms of CPU time. Longer ones are not understood."""

MAX_SLOW = 200
"""Limit of pipes, array starts and heredocs in a line: the parser's time is quadratic in their number."""

MAX_COMMANDS = 1_000
"""Limit of simple commands in a line, including those inside of wrappers."""

MAX_DEPTH = 8
"""Limit of commands nested in commands (`sudo env sh -c …`)."""

_SLOW = re.compile(r"=\(|<<|\|")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_JOINTS = frozenset({"&&", "||", ";", "|"})
_UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_COMMANDS = frozenset({"command", "declaration_command", "unset_command", "test_command"})


class CommandLine(Struct, frozen=True):
    """Result of parsing a line."""

    commands: Sequence[str]
    """Each command with its arguments, without quotes, assignments and redirections; also without its wrapper."""
    is_understood: bool
    """Whether these are certainly all commands that can run."""
    only: Sequence[Word] | None
    """Its words if it is one simple command without assignment, redirection and substitution, else None."""


class _Wrapper(Struct, frozen=True):
    """Syntax of the arguments that a program takes before the command it runs."""

    flags: str = ""
    """Short options without a value."""
    values: str = ""
    """Short options with a value."""
    long_values: frozenset[str] = frozenset()
    skips: int = 0
    """Number of arguments between the options and the command."""
    has_text: bool = False
    """Whether the command may be a single argument that is passed to a shell."""


def _long(*names: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in names)


WRAPPERS: Mapping[str, _Wrapper] = {
    "builtin": _Wrapper(),
    "busybox": _Wrapper(),
    "chroot": _Wrapper(skips=1),
    "chrt": _Wrapper("bdfiormv", "TPD", skips=1),
    "command": _Wrapper("pvV"),
    "doas": _Wrapper("Lns", "Cu"),
    "env": _Wrapper("i0v", "uCS", _long("unset", "chdir", "split-string"), has_text=True),
    "exec": _Wrapper("cl", "a"),
    "flock": _Wrapper("sxeonuFv", "wE", _long("timeout", "conflict-exit-code"), skips=1, has_text=True),
    "ionice": _Wrapper("t", "cnpPu"),
    "nice": _Wrapper("", "n", _long("adjustment")),
    "nohup": _Wrapper(),
    "parallel": _Wrapper("k0", "jNnI", _long("jobs"), has_text=True),
    "runuser": _Wrapper("lmpf", "ugGcs", _long("command", "user"), has_text=True),
    "script": _Wrapper("aefqB", "cEIOoT", _long("command"), has_text=True),
    "setpriv": _Wrapper(),
    "setsid": _Wrapper("cfw"),
    "ssh": _Wrapper("46AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", skips=1, has_text=True),
    "stdbuf": _Wrapper("", "ioe", _long("input", "output", "error")),
    "strace": _Wrapper("fFqvtTrxyc", "eopsuEPabIOSX"),
    "su": _Wrapper("lmpP", "cgGswT", _long("command", "shell"), has_text=True),
    "sudo": _Wrapper("AbEeHiKklnPSsVvN", "CDghpRrTtUu", _long("user", "group", "host", "chdir", "prompt")),
    "systemd-run": _Wrapper("PtdqGrS", "pHMuE", _long("unit", "property", "slice", "uid", "gid", "setenv")),
    "taskset": _Wrapper("ap", "", skips=1),
    "time": _Wrapper("pvaV", "of"),
    "timeout": _Wrapper("fpv", "ks", _long("kill-after", "signal"), skips=1),
    "unshare": _Wrapper("muinpUCTrfc", "SGwR"),
    "watch": _Wrapper("bcdegprtwx", "nq", _long("interval"), has_text=True),
    "xargs": _Wrapper("0rtpxo", "aEdILlnPs", _long("arg-file", "delimiter", "replace", "max-args", "max-procs")),
}
"""Programs that run the command after their own options. An option that is not listed may or may not take a value, so
both readings are considered."""

RESERVED = frozenset(
    (
        *("!", "{", "}", "[[", "coproc", "do", "done", "elif", "else", "esac", "fi", "for", "function"),
        *("if", "in", "select", "then", "until", "while"),
    )
)
"""Reserved words. The parser takes some of them for command names, as in `! { rm x; }`."""

SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash"})

_GIT_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix"})
_GIT_RUNS = frozenset({"foreach", "run", "--exec", "-x", "--extcmd", "--upload-pack", "--receive-pack", "-O"})
_FIND_RUNS = frozenset({"-exec", "-execdir", "-ok", "-okdir"})
_FD_RUNS = frozenset({"-x", "-X", "--exec", "--exec-batch"})


@lru_cache(maxsize=64)
def parsed(line: str) -> CommandLine:
    """Parse a shell command line; the result lists the commands that it would run."""
    found = _Finder()
    only = None
    try:
        only = found.line(line, 0)
    except UnknownError:
        found.is_understood = False
    return CommandLine(tuple(dict.fromkeys(found.commands)), found.is_understood, only if found.is_understood else None)


@lru_cache(maxsize=64)
def parts(line: str) -> Sequence[str]:
    """Return the simple commands of a line that only joins them with `&&`, `||`, `;` and `|`; else nothing."""
    if _CONTROL.search(line) or not parsed(line).is_understood:
        return ()
    found: list[str] = []
    waiting = [tree(line)]
    while waiting:
        node = waiting.pop()
        if node.type == "command" and is_simple(node):
            found.append((node.text or b"").decode(errors="replace"))
        elif node.type in {"program", "list", "pipeline"}:
            waiting += reversed(node.children)
        elif node.type not in _JOINTS:
            return ()
    return tuple(found)


class _Finder:
    """Collects the commands of a line."""

    def __init__(self) -> None:
        self.commands: list[str] = []
        self.is_understood = True

    def line(self, text: str, depth: int) -> Sequence[Word] | None:
        """Collect the commands of a whole line; returns its words if it is one simple command."""
        # Checked before parsing, because the parser has no time limit of its own.
        if len(text) > MAX_CHARS or depth > MAX_DEPTH or len(_SLOW.findall(text)) > MAX_SLOW or _UNSEEN.search(text):
            raise UnknownError
        only = self._tree(tree(text), depth)
        if "((" in text:  # two subshells rather than arithmetic, when the shell does not find `))`
            is_understood = self.is_understood
            self._tree(tree(text.replace("((", "( (")), depth)
            # The second reading must not mark the line as not understood: it is often a syntax error.
            self.is_understood = is_understood
        if "\\\n" in text:  # the shell joins lines before it looks for words
            self._tree(tree(text.replace("\\\n", "")), depth)
            return None
        return only

    def _tree(self, root: SyntaxNode, depth: int) -> Sequence[Word] | None:
        only = None
        waiting = [root]  # no recursion: brackets may be nested deeper than Python's stack
        while waiting:
            node = waiting.pop()
            if node.type in _COMMANDS:
                words = words_of(node)
                self._command(words, depth)
                only = words
            waiting += node.children
        if root.has_error:  # checked last, so that deny rules still apply to the commands found
            self.is_understood = False
        is_only = root.child_count == 1 and root.children[0].type == "command" and is_simple(root.children[0])
        return only if is_only else None

    def _command(self, words: Sequence[Word], depth: int) -> None:
        if not words:
            return
        self.commands.append(" ".join(word.text for word in words))
        if len(self.commands) > MAX_COMMANDS or depth > MAX_DEPTH:
            raise UnknownError
        name = words[0].text.rpartition("/")[2]
        if not words[0].is_fixed or not name:
            self.is_understood = False
            return
        if name != words[0].text:  # a rule for `rm` applies to `/bin/rm`
            self.commands.append(" ".join([name, *(word.text for word in words[1:])]))
        self._inside(name, words[1:], depth + 1)

    def _inside(self, name: str, args: Sequence[Word], depth: int) -> None:
        """Collect the commands that this command runs."""
        opening, *rest = name.split() or [name]
        if opening in RESERVED:  # the parser may take several for one name: `{ {` in `! { { rm x; }; }`
            self._command([*map(Word, rest), *args], depth)
        elif name in WRAPPERS:
            self._wrapped(WRAPPERS[name], args, depth)
        elif name in SHELLS:
            self._shell(args, depth)
        elif name in {"eval", "trap", "alias", "source", "."}:
            self._builtin(name, args, depth)
        elif name == "git":  # like find and fd no wrapper: a command follows only after certain options
            self._git(args, depth)
        elif name == "find":
            self._behind(args, _FIND_RUNS, depth)
        elif name in {"fd", "fdfind"}:
            self._behind(args, _FD_RUNS, depth)

    def _text(self, word: Word, depth: int) -> None:
        """Collect the commands of an argument that a shell evaluates as a line."""
        self.is_understood &= word.is_fixed
        self.line(word.text, depth)

    def _wrapped(self, wrapper: _Wrapper, args: Sequence[Word], depth: int) -> None:
        for start in _starts(wrapper, args):
            self._command(args[start:], depth)
        if wrapper.has_text:  # any argument with a blank may be the line that the program passes to a shell
            for word in args:
                text = word.text.partition("=")[2] if word.text.startswith("--") else word.text
                if " " in text or "\t" in text or not word.is_fixed:
                    self._text(Word(text, word.is_fixed), depth)

    def _shell(self, args: Sequence[Word], depth: int) -> None:
        options = [word.text for word in args if word.text[:1] in {"-", "+"} and word.is_fixed]
        others = [word for word in args if word.text[:1] not in {"-", "+"} or not word.is_fixed]
        # Which operand is the line depends on the options before it (`-o pipefail -c`), so each of them is parsed.
        if any("c" in option for option in options if not option.startswith("--")):
            for word in others:
                self._text(word, depth)
        elif not others and not {"--version", "--help"} & set(options):
            self.is_understood = False  # it reads its commands from standard input
        else:
            self._script(others)

    def _script(self, words: Sequence[Word]) -> None:
        for word in words[:1]:
            # Running a script file is one command; /dev and /proc can refer to standard input or another process.
            if not word.is_fixed or word.text.startswith(("/dev/", "/proc/")):
                self.is_understood = False

    def _builtin(self, name: str, args: Sequence[Word], depth: int) -> None:
        match name:
            case "eval":  # joins its arguments before it evaluates them
                self._text(Word(" ".join(word.text for word in args), all(word.is_fixed for word in args)), depth)
            case "trap":  # one command, followed by signals
                for word in [word for word in args if not word.text.startswith("-")][:1]:
                    self._text(word, depth)
            case "alias":  # its value is a command that can later run under another name
                for word in args:
                    self._text(Word(word.text.partition("=")[2], word.is_fixed), depth)
            case _:
                self._script(args)

    def _git(self, args: Sequence[Word], depth: int) -> None:
        at = 0
        while at < len(args) and args[at].text.startswith("-"):
            at += 2 if args[at].text in _GIT_VALUES else 1
        if at:  # a rule for `git log` applies to `git -C dir log`
            self.commands.append(" ".join(["git", *(word.text for word in args[at:])]))
        for number, word in enumerate(args):
            option, _, value = word.text.partition("=")
            is_setting = number > 0 and args[number - 1].text in {"-c", "--config"}
            if value and (is_setting or option in _GIT_RUNS):
                self._setting(Word(value.removeprefix("!"), word.is_fixed), depth, is_command=value.startswith("!"))
            elif word.text in _GIT_RUNS:
                self._command(args[number + 1 :], depth)
                self._texts(args[number + 1 : number + 2], depth)

    def _setting(self, word: Word, depth: int, *, is_command: bool) -> None:
        # A setting of git can be a line for a shell, or the name of a program.
        if is_command or " " in word.text or not word.is_fixed:
            self._text(word, depth)
        else:
            self._command([word], depth)

    def _texts(self, words: Sequence[Word], depth: int) -> None:
        for word in words:
            if " " in word.text or not word.is_fixed:
                self._text(word, depth)

    def _behind(self, args: Sequence[Word], marks: frozenset[str], depth: int) -> None:
        for number, word in enumerate(args):
            if word.text in marks:
                rest = args[number + 1 :]
                ends = [at for at, one in enumerate(rest) if one.text in {";", "+"}]
                self._command(rest[: ends[0]] if ends else rest, depth)


def _starts(wrapper: _Wrapper, args: Sequence[Word]) -> Iterator[int]:
    """Yield each index at which the wrapped command may begin."""
    at, is_sure = 0, True
    while at < len(args):
        text = args[at].text
        if text == "--":
            at += 1
            break
        if text.startswith("-") and len(text) > 1:
            is_value = text in wrapper.long_values or (text[1] != "-" and text[-1] in wrapper.values)
            is_sure = (
                "=" in text or is_value or (text[1] != "-" and set(text[1:]) <= set(wrapper.flags + wrapper.values))
            )
            at += 2 if is_value else 1
        elif _ASSIGNMENT.match(text):
            at += 1
        else:
            break
    yield at + wrapper.skips
    if not is_sure:
        yield at + wrapper.skips + 1
    if wrapper.has_text and wrapper.skips:
        yield at
