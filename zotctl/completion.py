"""`zotctl completion`: shell completion of `zot` and `zotctl` for bash, zsh and fish.

The scripts only call `zotctl candidates`, so they need no update; `zotctl.completion_engine` computes the candidates.
"""

import argparse
import os

from zotctl.commands import Subparsers
from zotctl.completion_engine import candidates
from zotd.client import options
from zotd.client.environment import without_flags
from zotd.sanitize import one_line

BASH = """\
_zot() {
    local word IFS=$'\\n'
    COMPREPLY=()
    while IFS=$'\\t' read -r word _; do
        case $word in
            :files) compopt -o default ;;
            :dirs) compopt -o dirnames ;;
            *) printf -v word %q "$word"; COMPREPLY+=("$word") ;;
        esac
    done < <(zotctl candidates "${1##*/}" -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
}
complete -F _zot zot zotctl
"""

ZSH = """\
#compdef zot zotctl
_zot() {
    local line
    local -a found
    for line in ${(f)"$(zotctl candidates ${service:-${words[1]:t}} -- ${(@)words[2,CURRENT]} 2>/dev/null)"}; do
        case $line in
            :files*) _files ;;
            :dirs*) _files -/ ;;
            *) found+=("${${line%%$'\\t'*}//:/\\\\:}:${line#*$'\\t'}") ;;
        esac
    done
    ((${#found})) && _describe -V value found
}
compdef _zot zot zotctl
"""

FISH = """\
function __zot
    set -l words (commandline -opc) (commandline -ct)
    set -l program (basename $words[1])
    for line in (zotctl candidates $program -- $words[2..-1] 2>/dev/null)
        switch $line
            case ':files*'
                __fish_complete_path (commandline -ct)
            case ':dirs*'
                __fish_complete_directories (commandline -ct)
            case '*'
                echo $line
        end
    end
end
complete -c zot -f -a '(__zot)'
complete -c zotctl -f -a '(__zot)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}

EPILOG = """\
bash:  echo 'source <(zotctl completion bash)' >> ~/.bashrc
zsh:   echo 'source <(zotctl completion zsh)' >> ~/.zshrc      (below compinit)
fish:  zotctl completion fish > ~/.config/fish/completions/zotctl.fish
       zotctl completion fish > ~/.config/fish/completions/zot.fish
"""

SUBCOMMANDS = [
    ("rpc", "serve one session on standard input and output"),
    ("acp", "serve sessions to an editor"),
    ("ext", "manage extensions"),
]
"""Subcommands of `zot`, which are not in its argparse parser (`zotd.cli`)."""

CANDIDATES = "candidates"
"""The hidden command that the scripts call."""


def add(commands: Subparsers) -> None:
    """Register `completion`."""
    parser = commands.add_parser("completion", help="print a completion script for your shell", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=list(SCRIPTS), help="your shell")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    print(SCRIPTS[args.shell], end="")
    return 0


def print_candidates(zotctl: argparse.ArgumentParser, program: str, words: list[str]) -> int:
    """Print the completions of the last of `words`, one per line: the word, a tab, its description.

    A `--` before the words, which keeps their flags from being parsed as those of this call, is dropped.
    """
    words = words[1:] if words[:1] == ["--"] else words
    os.environ.update(without_flags(words[:-1])[1])  # --host: complete the sessions and models of that machine
    if program == "zotctl" or words[:1] == ["ext"]:
        found = candidates(zotctl, words)
    else:
        found = candidates(options.parser(), words)
        found += [one for one in SUBCOMMANDS if len(words) == 1 and one[0].startswith(words[0])]
    for word, about in found:
        print(f"{one_line(word)}\t{one_line(about)}")
    return 0
