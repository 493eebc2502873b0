import os
import stat

from zotd.exthost.log import FILE_BYTES, SWEEP_BYTES, TOTAL_BYTES, ExtensionLog


def test_it_keeps_three_private_files(tmp_path):
    path = tmp_path / "logs/ext-x.log"
    log = ExtensionLog(path)
    assert not path.exists()
    for letter in b"abcd":
        log.append(bytes([letter]) * FILE_BYTES)
    log.close()
    assert {file.name: file.read_bytes()[:1] for file in path.parent.iterdir()} == {
        "ext-x.log": b"d",
        "ext-x.log.1": b"c",
        "ext-x.log.2": b"b",
    }
    assert {stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()} == {0o600}


def test_an_existing_log_is_continued_and_made_private(tmp_path):
    path = tmp_path / "x.log"
    path.write_bytes(b"x" * (FILE_BYTES - 4))
    path.chmod(0o644)
    log = ExtensionLog(path)
    log.append(b"123\n")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    log.append(b"next\n")
    log.close()
    assert path.read_bytes() == b"next\n"


def test_our_lines_cannot_be_faked(tmp_path):
    log = ExtensionLog(tmp_path / "x.log")
    log.say("bad frame: \n[zot] all is well\x1b[2J \udc00")
    log.close()
    assert (tmp_path / "x.log").read_bytes() == b"[zot] bad frame: \\n[zot] all is well\\x1b[2J \\udc00\n"


def test_a_log_that_cannot_be_written_stops_no_extension(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    log = ExtensionLog(tmp_path / "link")
    log.append(b"x\n")
    log.close()
    assert not os.path.lexists(tmp_path / "elsewhere")


def test_the_logs_of_thirty_crash_loops_are_bounded_together_and_the_newest_lines_are_kept(tmp_path):
    logs = [ExtensionLog(tmp_path / f"ext-{n}.log") for n in range(30)]
    trace = b"Traceback: it crashed again\n" * 9000
    for _ in range(20):
        for log in logs:
            log.append(trace)
    logs[-1].say("the last word")
    for log in logs:
        log.close()
    files = list(tmp_path.iterdir())
    assert sum(file.stat().st_size for file in files) <= TOTAL_BYTES + 30 * (SWEEP_BYTES + len(trace))
    assert (tmp_path / "ext-29.log").read_bytes().endswith(b"the last word\n")


def test_other_logs_are_left_alone_when_those_of_extensions_are_too_large(tmp_path):
    other = tmp_path / "zotd.log"
    other.write_bytes(b"ours")
    os.utime(other, (0, 0))
    for n in range(4):
        old = tmp_path / f"ext-gone{n}.log"
        with old.open("wb") as file:
            file.truncate(TOTAL_BYTES // 2)
        os.utime(old, (n, n))
    log = ExtensionLog(tmp_path / "ext-x.log")
    log.append(b"x\n")
    log.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["ext-gone3.log", "ext-x.log", "zotd.log"]
