"""`zotctl completion`: what the tab key offers for `zot` and `zotctl` in bash, zsh and fish.

The scripts hold nothing but a call back: what is offered is computed when somebody asks (`zotctl.completion_engine`).
"""

import argparse
import os

from zotctl.commands import Commands
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
"""Of `zot`, which looks at them before it loads a parser."""

CANDIDATES = "candidates"
"""The command that the scripts call; not in the help."""


def add(commands: Commands) -> None:
    """`completion`."""
    parser = commands.add_parser("completion", help="print a completion script for your shell", epilog=EPILOG)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("shell", choices=list(SCRIPTS))
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    print(SCRIPTS[args.shell], end="")
    return 0


def print_candidates(zotctl: argparse.ArgumentParser, program: str, words: list[str]) -> int:
    """What could stand at the end of `words`, a line each: the word, a tab, what it means.

    `words` may begin with `--`, which keeps the flags in them from being taken for those of the call itself.
    """
    words = words[1:] if words[:1] == ["--"] else words
    os.environ.update(without_flags(words[:-1])[1])  # another machine's sessions and models
    if program == "zotctl" or words[:1] == ["ext"]:
        found = candidates(zotctl, words)
    else:
        found = candidates(options.parser(), words)
        found += [one for one in SUBCOMMANDS if len(words) == 1 and one[0].startswith(words[0])]
    for word, about in found:
        print(f"{one_line(word)}\t{one_line(about)}")
    return 0
