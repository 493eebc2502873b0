"""The daemon's log."""

import asyncio
import logging
import os
import re
import stat
import subprocess
import sys
import warnings

import pytest

from zotd import logs
from zotd.logs.flood import BURST

log = logging.getLogger("zotd.somewhere")


@pytest.fixture
def path(tmp_path):
    return tmp_path / "logs" / "zotd.log"


def raised(text):
    with pytest.raises(ValueError) as caught:
        int(text)
    return caught.value


def lines(path):
    return path.read_text().splitlines()


def test_a_record_is_one_line_with_time_level_logger_and_message(path):
    with logs.configured(path, level="info"):
        log.info("session %s opened", "s_1")
    (line,) = lines(path)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z INFO zotd\.somewhere session s_1 opened", line)


def test_the_level_is_that_of_our_own_loggers_and_others_are_heard_from_warning_on(path):
    with logs.configured(path, level="debug"):
        log.debug("ours")
        logging.getLogger("vendor").info("theirs")
        logging.getLogger("vendor").warning("their warning")
    assert [line.split(" ", 3)[3] for line in lines(path)] == ["ours", "their warning"]

    with logs.configured(path, level="warning"):
        log.info("not now")
    assert len(lines(path)) == 2


def test_a_lone_surrogate_is_written_escaped(path):
    # In a process of its own: pytest keeps what is logged for its report, and xdist cannot carry this.
    code = "import sys; from pathlib import Path; from zotd import logs; import logging\n"
    code += (
        "with logs.configured(Path(sys.argv[1]), level='info'): logging.getLogger('zotd.x').info('%s', '\\ud800 語')"
    )
    subprocess.run([sys.executable, "-c", code, path], check=True)
    assert path.read_text(encoding="utf-8").endswith("\\ud800 語\n")


@pytest.mark.parametrize(
    ("said", "written"),
    [
        ("one\n2026-11-21T00:00:00.000Z INFO zotd forged", r"one\n2026-11-21T00:00:00.000Z INFO zotd forged"),
        ("\x1b[2J\r\x9b\x7f", r"\x1b[2J\r\x9b\x7f"),
        ("a\u202eb\u2066c\u2028d", r"a\u202eb\u2066c\u2028d"),
    ],
    ids=["newline", "controls", "directions"],
)
def test_nothing_that_is_logged_can_look_like_another_line(path, said, written):
    with logs.configured(path, level="info"):
        log.info("%s", said)
    assert path.read_bytes().count(b"\n") == 1
    assert lines(path)[0].endswith(" " + written)


def test_a_traceback_stays_on_the_line_of_its_record(path):
    with logs.configured(path, level="info"):
        log.error("it failed", exc_info=raised("inner"))
    (line,) = lines(path)
    assert r"it failed\nTraceback" in line
    assert line.endswith("invalid literal for int() with base 10: 'inner'")


async def test_records_carry_the_context_of_the_task_that_wrote_them(path):
    async def work(name):
        with logs.about(session=name):
            await asyncio.sleep(0)
            log.info("works")

    with logs.configured(path, level="info"), logs.about(connection="k_1"):
        async with asyncio.TaskGroup() as group:
            group.create_task(work("s_1"))
            group.create_task(work("s_2"))
        log.info("after")
    assert [line.split("somewhere ")[1] for line in lines(path)] == [
        "[connection=k_1 session=s_1] works",
        "[connection=k_1 session=s_2] works",
        "[connection=k_1] after",
    ]


def test_a_hidden_secret_is_masked_wherever_it_occurs(path):
    logs.hide("sesame-open-long")
    logs.hide("sesame-open")
    logs.hide("short")
    with logs.configured(path, level="info"):
        log.info("%s", {"x": "…sesame-open-long…"})
        log.error("a short message", exc_info=raised("sesame-open"))
    assert "sesame" not in path.read_text()
    assert "-long" not in path.read_text()
    assert "a short message" in path.read_text()


@pytest.mark.parametrize(
    "said",
    [
        "api_key=VALUE",
        'ANTHROPIC_API_KEY="VALUE" next',
        "x-api-key: VALUE",
        "Authorization: Bearer VALUE",
        "{'authorization': 'Bearer VALUE'}",
        '{"password" : "VALUE", "user": "me"}',
        "https://host/?token=VALUE&x=1",
        "AWS_SECRET_ACCESS_KEY=VALUE",
        "private-key: VALUE",
        "passphrase = VALUE",
        "Cookie: sid=VALUE; theme=VALUE",
        "Set-Cookie: sid=VALUE; Path=/",
        "Proxy-Authorization: Basic VALUE",
        '{"type":"hello","token":"VALUE"}',
        r"b'{\"token\": \"VALUE\"}'",
        "{'password': 'two words VALUE'}",
        "password='VALUE and no end",
    ],
)
def test_what_looks_like_a_key_is_masked(said):
    assert "VALUE" not in logs.masked(said)
    assert logs.MASK in logs.masked(said)
    assert logs.masked(said.replace("VALUE", logs.MASK)) == logs.masked(said)


@pytest.mark.parametrize("said", ["tokens: 512", "max_tokens=5", "the token bucket is full", "password file read"])
def test_what_only_mentions_keys_is_not_masked(said):
    assert logs.masked(said) == said


@pytest.mark.parametrize(
    "secret",
    [
        "zot_9f8e7d6c5b4a39281706f5e4d3c2b1a0",
        "sk-ant-api03-AAAAbbbbCCCCdddd",
        "ghp_0123456789abcdefghijABCDEFGHIJ456789",
        "github_pat_11ABCDEFG0123456789_abcdefghijklmnop",
        "xoxb-123456789012-abcdefghijkl",
        "AIzaSyA0123456789abcdefghijklmnopqrstuv",
        "AKIAIOSFODNN7EXAMPLE",
        "123456789:AAEhBP0av28FakeFakeFakeFakeFakeFake",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N",
    ],
)
def test_a_value_that_looks_like_a_key_is_masked_wherever_it_stands(secret):
    assert logs.masked(f"refused ({secret}), try again") == f"refused ({logs.MASK}), try again"


def test_who_logs_in_by_a_url_is_masked():
    assert logs.masked("cannot fetch https://me:hunter2@host/x.git") == f"cannot fetch https://{logs.MASK}@host/x.git"


@pytest.mark.parametrize(
    "part", ["secret", "token=", 'password="', "cookie: a", "zot_", "eyJa", "-eyJ", "://a", "1", "token" + " " * 20]
)
def test_no_text_takes_long_to_mask(part):
    text = part * (1024 * 1024 // len(part))
    assert len(logs.masked(text)) > 0  # what takes time in squares would take an hour


def test_a_record_has_a_length(path):
    with logs.configured(path, level="info"):
        log.info("%s", "x" * 1024 * 1024)
    (line,) = lines(path)
    assert len(line) < logs.LONGEST + 100
    assert line.endswith("characters more)")


def at(second):
    """A record of one place in the sources, at a time."""
    record = logging.LogRecord("zotd.door", logging.WARNING, "door.py", 7, "refused", None, None)
    record.created = float(second)
    return record


def test_no_source_of_records_fills_the_log(path):
    with logs.configured(path, level="info"):
        for _ in range(10_000):
            log.handle(at(1_000_000))
        assert len(lines(path)) == BURST
        log.info("another place")
        log.handle(at(1_000_001))
        log.handle(at(0))  # the clock was put back
    assert [line.split(" ", 3)[3] for line in lines(path)[BURST:]] == [
        "another place",
        f"refused ({10_000 - BURST} more like this were left out)",
        "refused",
    ]


def test_there_are_five_files_in_all(path):
    path.parent.mkdir()
    for name in ("zotd.log", *(f"zotd.log.{number}" for number in range(1, 5))):
        (path.parent / name).write_text(name)
    path.write_text("x" * logs.FILE_BYTES)
    with logs.configured(path, level="info"):
        log.info("one line more")
    assert {file.name for file in path.parent.iterdir()} == {"zotd.log", *(f"zotd.log.{n}" for n in range(1, 5))}
    assert (path.parent / "zotd.log.4").read_text() == "zotd.log.3"


def a_link(path):
    path.symlink_to("elsewhere")


def a_link_to_a_file(path):
    (path.parent / "elsewhere").write_text("")
    path.symlink_to("elsewhere")


def a_pipe(path):
    os.mkfifo(path)


def a_directory(path):
    path.mkdir()


IN_THE_WAY = [a_link, a_link_to_a_file, a_pipe, a_directory]


@pytest.mark.parametrize("prepare", IN_THE_WAY)
def test_a_log_path_that_is_no_file_is_not_followed_and_stops_no_work(path, prepare, capsys):
    path.parent.mkdir()
    prepare(path)
    before = path.lstat()
    with logs.configured(path, level="info"):
        log.info("lost")
        log.info("lost too")
        assert path.lstat() == before
        path.rename(path.parent / "away")
        log.info("found")
    elsewhere = path.parent / "elsewhere"
    assert not elsewhere.exists() or elsewhere.read_text() == ""
    assert lines(path)[0] == "(2 records could not be written here)"
    assert lines(path)[1].endswith("found")
    said = capsys.readouterr().err
    assert said.count(f"the log {path} cannot be written") >= 1
    assert len(said.splitlines()) <= 2


@pytest.mark.parametrize("prepare", IN_THE_WAY)
def test_a_log_path_that_changes_while_open_is_not_followed(path, prepare):
    with logs.configured(path, level="info"):
        log.info("before")
        path.unlink()
        prepare(path)
        log.info("lost")
    assert not path.is_file() or path.read_text() == ""


def test_a_log_rotated_by_another_program_continues_under_its_name(path):
    with logs.configured(path, level="info"):
        log.info("one")
        path.rename(path.parent / "zotd.log.old")
        log.info("two")
        path.unlink()
        log.info("three")
        os.truncate(path, 0)
        log.info("four")
    assert [line.split()[-1] for line in lines(path)] == ["four"]
    assert len(lines(path.parent / "zotd.log.old")) == 1


def test_a_log_whose_directory_goes_away_makes_it_again(path):
    with logs.configured(path, level="info"):
        path.unlink()
        path.parent.rmdir()
        log.info("here")
    assert len(lines(path)) == 1
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_directory_that_cannot_be_made_stops_no_work(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    with logs.configured(tmp_path / "file" / "zotd.log", level="info"):
        log.info("lost")
    assert f"zotd: the log {tmp_path / 'file' / 'zotd.log'} cannot be written" in capsys.readouterr().err


def test_a_record_that_cannot_be_formatted_does_not_fail_its_caller(path):
    # In a process of its own: the handler of pytest raises.
    code = "import sys; from pathlib import Path; from zotd import logs; import logging\n"
    code += "with logs.configured(Path(sys.argv[1]), level='info'):\n"
    code += " logging.getLogger('zotd.x').info('%d', 'no number')\n logging.getLogger('zotd.x').info('next')\n"
    done = subprocess.run([sys.executable, "-c", code, path], check=True, capture_output=True, text=True)
    assert "Logging error" in done.stderr
    assert [line.split()[-1] for line in lines(path)] == ["next"]


def test_only_the_user_can_read_the_log_also_after_it_was_rotated(path):
    path.parent.mkdir()
    path.write_text("x" * (logs.FILE_BYTES - 10))
    path.chmod(0o644)
    with logs.configured(path, level="info"):
        log.info("one line more than fits")
        log.info("and one")
    assert {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {
        "zotd.log": 0o600,
        "zotd.log.1": 0o600,
    }
    assert len(lines(path)) == 2


def test_a_directory_that_is_missing_is_made_for_the_user_alone(path):
    with logs.configured(path, level="info"):
        pass
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_standard_error_gets_the_same_lines_when_asked(path, capsys):
    with logs.configured(path, level="info", stderr=True):
        log.info("both")
    assert capsys.readouterr().err == path.read_text()
    with logs.configured(None, level="info", stderr=True):
        log.info("stderr only")
    assert len(lines(path)) == 1
    assert capsys.readouterr().err.endswith("stderr only\n")


def test_warnings_of_python_are_records(path):
    with logs.configured(path, level="info"):
        warnings.showwarning("an old thing", DeprecationWarning, "module.py", 7)
    assert "module.py:7: DeprecationWarning: an old thing" in path.read_text()


def test_a_logging_configuration_ends_with_its_block(path):
    root = logging.getLogger()
    before = (list(root.handlers), logging.getLogger("zotd").level)
    with logs.configured(path, level="debug"):
        pass
    assert (list(root.handlers), logging.getLogger("zotd").level) == before
