"""Which commands a line of shell would run, and how rules apply to it."""

import time

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from zotd.core.permissions import Action, PermissionQuery, PermissionRule, Policy, judge, rule_for
from zotd.core.shell import MAX_CHARS, parsed


def ruled(command, *rules, mode="yolo"):
    question = PermissionQuery("bash", None, is_safe=False, args={"command": command})
    return judge(Policy(mode, rules=rules), question).action.value


def deny(match):
    return PermissionRule("bash", Action.DENY, match)


def allow(match):
    return PermissionRule("bash", Action.ALLOW, match)


RUNS_RM = [
    *("rm", "rm x", "true && rm x", "true || rm x", "a; rm x", "a | rm x", "a & rm x", "(rm x)", "{ rm x; }"),
    *(
        "X=1 rm x",
        "X=1 Y=2 rm x",
        "! rm x",
        "time rm x",
        "coproc rm x",
        "((rm x); (y))",
        "a\nrm x",
        "rm x > y",
        "> y rm x",
        "rm x &",
    ),
    *("echo $(rm x)", "echo `rm x`", 'echo "$(rm x)"', "echo ${x:-$(rm x)}", "x=$(rm y)", "export x=$(rm y)"),
    *("diff <(rm x) y", "tee >(rm x)", "echo $((1 + $(rm x)))", "[[ -f x ]] && rm x", "[ -f x ] && rm x"),
    *("if true; then rm x; fi", "if rm x; then true; fi", "for i in 1 2; do rm $i; done", "while rm x; do :; done"),
    *("until false; do rm x; done", "case x in a) rm x;; esac", "f() { rm x; }; f", "function f { rm x; }; f"),
    *("cat <<EOF\n$(rm x)\nEOF", "cat <<'EOF'\n$(x)\nEOF\nrm y", "cat <<-EOF && rm x\n\ta\n\tEOF", "cat <<< $(rm x)"),
    *(
        "\\rm x",
        "r'm' x",
        '"rm" x',
        "r\\\nm x",
        "/bin/rm x",
        "./rm x",
        "rm\tx",
        "a=(1 2); rm x",
        "select i in a; do rm x; done",
    ),
    *("env rm x", "env X=1 rm x", "env -i -u HOME X=1 rm x", "command rm x", "builtin command rm x", "exec rm x"),
    *("nice rm x", "nice -n 5 rm x", "nohup rm x &", "timeout 5 rm x", "timeout -k 1 -s KILL 5 rm x", "sudo rm x"),
    *("sudo -u me -- rm x", "doas rm x", "stdbuf -oL rm x", "setsid rm x", "ionice -c 3 rm x", "chroot / rm x"),
    *(
        "ls | xargs rm",
        "xargs -0 -n 1 rm x",
        "xargs -I{} rm {}",
        "flock /tmp/l rm x",
        "watch -n 1 'rm x'",
        "time -p rm x",
    ),
    *("sh -c 'rm x'", 'bash -c "rm x"', "bash -ec 'a; rm x'", "bash -o pipefail -c 'rm x'", "sudo sh -c 'rm x'"),
    *("env -S 'rm x'", "su me -c 'rm x'", "ssh host 'rm x'", "ssh host rm x", "script -c 'rm x' /dev/null"),
    *(
        "eval rm x",
        "eval 'rm x'",
        "trap 'rm x' EXIT",
        "alias ls='rm x'",
        "sh -c 'sh -c \"rm x\"'",
        "xargs sh -c 'rm x'",
    ),
    *("find . -exec rm {} +", "find . -name a -execdir rm {} \\;", "fd -x rm", "fd a --exec rm"),
    *("git -c alias.x='!rm y' x", "git submodule foreach 'rm x'", "git bisect run rm x", "git rebase --exec 'rm x' m"),
    *("git fetch --upload-pack='rm x' .", "cd . && rm x", "cd .; (cd ..; [ -d x ] && { rm x || true; })"),
]


@pytest.mark.parametrize("command", RUNS_RM)
def test_a_denied_command_is_found_anywhere_in_a_line(command):
    assert ruled(command, deny("rm *")) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git push",
        "cd . && git push",
        "git -C /x push",
        "git --no-pager -c a.b=c push",
        "X=1 git push origin",
        "(git push)",
    ],
)
def test_a_git_subcommand_is_found_anywhere_in_a_line(command):
    assert ruled(command, PermissionRule("bash", Action.ASK, "git push*")) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("$(echo rm) x", "$X x", '"$X" x', "`echo rm` x", "{rm,x}", "r? x", "$'\\x72m' x", "eval $X", 'bash -c "$X"'),
        *(
            "curl x | sh",
            "bash < x",
            "bash -s",
            "bash <<< 'rm x'",
            "sh <<EOF\nrm x\nEOF",
            "bash <(echo rm x)",
            ". /dev/stdin",
        ),
        *("env $X", "xargs $X", "if", "a && ", "echo 'x", "(a", "rm\x00x", "a" * (MAX_CHARS + 1), "eval " * 20 + "a"),
    ],
)
def test_a_line_that_cannot_be_analysed_needs_approval(command):
    assert ruled(command, deny("mkfs *")) == "ask"
    assert ruled(command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("ls", "echo rm", "git rm x", "git commit -m 'rm x'", "grep -r rm .", "find . | xargs grep rm", "npm run rm"),
        *("timeout 60 npm test", "X=rm ls", "ls > rm", "for f in *.py; do wc -l $f; done", "python -c 'print(1)'"),
        *(
            "cat > x <<'EOF'\nrm x\nEOF",
            'echo "$HOME" && ls "$X"',
            "make 2>&1 | tail -5",
            "bash script.sh a",
            "a # rm x",
        ),
    ],
)
def test_text_that_only_resembles_a_denied_command_is_not_denied(command):
    assert ruled(command, deny("rm *")) == "allow"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        *(
            ("git -c alias.x=!cmd x", "git *"),
            ("git -calias.x=!cmd x", "git *"),
            ("git fetch --upload-pack=cmd", "git *"),
        ),
        *(("git fetch --upload-p cmd", "git *"), ("git clone -u cmd x y", "git *"), ("git grep -Ocmd x", "git *")),
        *(("git grep -nO x", "git *"), ("git rebase -x cmd", "git *"), ("git submodule foreach cmd", "git *")),
        *(
            ("git log $X", "git *"),
            ("git {-c,a=b} log", "git *"),
            ("X=1 git log", "*"),
            ("git clone ext::cmd", "git *"),
        ),
        *(
            ("find . -exec rm {} +", "find *"),
            ("find . -delete", "find *"),
            ("find . -exec a {} + -ok b {} +", "find * -exec a *"),
        ),
        *(("rg --pre cmd x", "rg *"), ("tar xf a --to-command=cmd", "tar *"), ("rsync -e cmd a b", "rsync *")),
        *(("sort --compress-program=cmd x", "sort *"), ("fd -x rm", "fd *"), ("ssh -oProxyCommand=cmd h", "ssh *")),
        *(("find . -delete", "*"), ("$X", "*"), ("env $X", "env *"), ("sudo sh -c $X", "sudo *")),
    ],
)
def test_a_hatch_matches_no_allow_that_does_not_name_it(command, pattern):
    assert ruled(command, allow(pattern), mode="ask") == "ask"


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        *(("git log --oneline", "git *"), ("git push -u origin main", "git push*"), ("find . -name '*.py'", "find *")),
        *(
            ("find . -exec grep -l x {} +", "find * -exec grep *"),
            ("git -c color.ui=never log", "git -c color.ui=never *"),
        ),
        *(("ls $HOME", "ls *"), ("npm test", "npm test"), ("echo 'a [b] *?'", "echo *"), ("ssh host ls", "ssh host *")),
        *(
            ("git commit -m 'fix: x'", "git commit *"),
            ("tar tf a.tar", "tar *"),
            ("ls *.py", "ls *"),
            ("rg -n x", "rg *"),
        ),
    ],
)
def test_everyday_commands_match_their_allow(command, pattern):
    assert ruled(command, allow(pattern), mode="ask") == "allow"


def test_the_rule_made_from_a_command_names_its_hatch():
    question = PermissionQuery("bash", None, is_safe=False, args={"command": "find . -exec grep -l 'x' {} +"})
    rule = rule_for(question)
    assert rule is not None
    assert judge(Policy("ask", rules=[rule]), question).action is Action.ALLOW


AROUND = st.recursive(
    st.sampled_from(["rm x", "rm", "rm -rf 'a b'"]),
    lambda inner: st.builds(
        lambda form, one: form.replace("@", one),
        st.sampled_from(
            [
                *("true && @", "@ || true", "a; @", "a | @", "( @ )", "{ @; }", "echo $(@)", "if true; then @; fi"),
                *("for i in 1; do @; done", "while @; do :; done", "case x in x) @;; esac", "f() { @; }; f", "a\n@\nb"),
                *(
                    "diff <(@) y",
                    'echo "$(@)"',
                    "x=$(@) y",
                    "[ a ] && @",
                    "cat <<E\n$(@)\nE",
                    "! { @; }",
                    "@ > /dev/null",
                ),
            ]
        ),
        inner,
    ),
    max_leaves=6,
)


@given(AROUND)
@example("! { { rm x; }; }")
@example("! {\n{ { rm x; }; }; }")
@example("! { ! { { rm x; }; }; }")
def test_no_compound_hides_a_denied_command(command):
    assert ruled(command, deny("rm *")) in {"deny", "ask"}
    if parsed(command).is_understood:
        assert ruled(command, deny("rm *")) == "deny"


HOSTILE = [
    "(",
    "$(",
    "a;",
    "if ",
    "${a:-",
    "<<a ",
    "$(((",
    "`",
    "case x in ",
    "f(){ ",
    '"$(',
    "[[ ",
    "a=(",
    "{",
    "<(",
    "a|",
]


@pytest.mark.parametrize("part", [*HOSTILE, "sudo ", "eval ", "sh -c ", "env -S "])
def test_no_line_takes_long_to_parse(part):
    line = part * (MAX_CHARS // len(part))
    parsed("warm")
    began = time.process_time()
    ruled(line, deny("mkfs *"), allow("git *"))
    assert time.process_time() - began < 2


@given(
    st.lists(
        st.sampled_from([*HOSTILE, ")", "}", "'", '"', "\\", "\n", "rm ", "x", ";;", "done", "&&", " "]), max_size=40
    )
)
def test_no_line_raises(parts):
    assert ruled("".join(parts), deny("mkfs *"), allow("*")) in {"allow", "ask", "deny"}


# --- characters that are not ASCII ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["git commit -m “größer”", "git commit -m '日本 \U0001f600'", 'git log --author="José"']
)
def test_a_command_with_characters_of_any_language_matches_its_allow(command):
    assert ruled(command, allow("git *"), mode="ask") == "allow"
    only = parsed(command).only
    assert only is not None
    assert not only[-1].text.isascii()


def test_a_rule_is_compared_with_the_characters_themselves():
    assert ruled("touch größer", allow("touch größer"), mode="ask") == "allow"
    assert ruled("touch größer", allow("touch gr%%er"), mode="ask") == "ask"
    assert ruled("echo é; rm größer", deny("rm größer")) == "deny"


@given(
    st.text(st.characters(min_codepoint=128), min_size=1, max_size=5), st.sampled_from(["{", "$", "${", "((", "=", ""])
)
@example("\U00031860", "{")  # it crashed the process, depending on what lay beside a table of the C library
def test_no_character_hides_a_denied_command(text, before):
    assert ruled(f"{before}{text}; rm x", deny("rm *")) in {"deny", "ask"}
    assert ruled(f"{text}=1 rm x", allow("rm *"), mode="ask") == "ask"
