"""The ten tasks."""

from benchmarks.tasks.task import Task, bash, block, edit, write

COMMITTER = "git config user.name Ann && git config user.email ann@example.org"

TASKS = (
    Task(
        name="bug",
        prompt="`python -m unittest` fails in this directory. Find the mistake in ranges.py and correct it; leave the tests alone.",
        files={
            "ranges.py": block("""
                def merged(ranges):
                    \"\"\"Merge ranges (begin, end) that overlap or touch; return them sorted.\"\"\"
                    found = []
                    for begin, end in sorted(ranges):
                        if found and begin < found[-1][1]:
                            found[-1] = (found[-1][0], end)
                        else:
                            found.append((begin, end))
                    return found
            """),
            "test_ranges.py": block("""
                import unittest

                from ranges import merged


                class Merged(unittest.TestCase):
                    def test_overlapping(self):
                        self.assertEqual(merged([(1, 4), (3, 6)]), [(1, 6)])

                    def test_touching(self):
                        self.assertEqual(merged([(1, 2), (2, 3)]), [(1, 3)])
            """),
        },
        check=block("""
            from ranges import merged

            assert merged([(1, 4), (3, 6)]) == [(1, 6)]
            assert merged([(1, 2), (2, 3)]) == [(1, 3)]
            assert merged([(1, 9), (2, 3)]) == [(1, 9)], "a range inside of another one"
            assert merged([(5, 6), (1, 2)]) == [(1, 2), (5, 6)]
            assert "test_touching" in open("test_ranges.py").read()
        """),
        solution=(
            bash("python3 -m unittest 2>&1 | tail -20; cat ranges.py"),
            edit("ranges.py", "begin < found[-1][1]", "begin <= found[-1][1]"),
            edit("ranges.py", "(found[-1][0], end)", "(found[-1][0], max(end, found[-1][1]))"),
            bash("python3 -m unittest"),
        ),
    ),
    Task(
        name="rename",
        prompt="Rename the function `calc` to `net_price` everywhere, in code, tests and the README. Words that merely contain `calc` stay.",
        files={
            "shop/__init__.py": "from shop.prices import calc\n",
            "shop/prices.py": "def calc(gross, rate):\n    return gross / (1 + rate)\n\n\ndef calculated():\n    return calc(119, 0.19)\n",
            "tests/test_prices.py": "from shop import calc\n\nassert calc(119, 0.19) == 100\n",
            "README.md": "`calc(gross, rate)` returns the net price; `calculated()` is an example.\n",
        },
        check=block("""
            import re
            from pathlib import Path

            from shop import net_price
            from shop.prices import calculated

            assert net_price(119, 0.19) == calculated() == 100
            for path in ("shop/__init__.py", "shop/prices.py", "tests/test_prices.py", "README.md"):
                words = Path(path).read_text()
                assert not re.search(r"\\bcalc\\b", words), path
                assert "net_price" in words, path
            assert "calculated()" in Path("README.md").read_text()
        """),
        solution=(
            ("grep", {"pattern": "calc"}),
            bash(
                r"sed -i 's/\bcalc\b/net_price/g' shop/*.py tests/*.py README.md && PYTHONPATH=. python3 tests/test_prices.py"
            ),
        ),
    ),
    Task(
        name="log",
        prompt="Which client address in access.log got the most answers with a status from 500 to 599? Write only that address to worst.txt.",
        files={
            "access.log": "".join(
                f'10.0.0.{n % 7} - - [27/Nov/2026:10:00:{n % 60:02}] "GET /{n} HTTP/1.1" {status} {n * 13}\n'
                for n in range(400)
                for status in [503 if n % 7 == 4 and n % 3 else 500 if n % 11 == 0 else 404 if n % 7 == 2 else 200]
            )
        },
        check=block("""
            from pathlib import Path

            assert Path("worst.txt").read_text().strip() == "10.0.0.4"
        """),
        solution=(
            bash("head -3 access.log"),
            bash(
                "awk '$8 ~ /^5/ {print $1}' access.log | sort | uniq -c | sort -rn | awk 'NR == 1 {print $2}' > worst.txt; cat worst.txt"
            ),
        ),
    ),
    Task(
        name="csv",
        prompt=(
            "Convert people.json to people.csv with the columns name,email,cities in this order and a header line. Cities are joined"
            " with a semicolon, and a missing e-mail address is an empty field. Keep the order."
        ),
        files={
            "people.json": '[{"name": "Ada, Countess", "email": "ada@example.org", "cities": ["London", "Paris"]},\n'
            ' {"name": "Björk \\"B\\" G", "cities": []},\n {"name": "Chen", "email": null, "cities": ["Taipei"]}]\n'
        },
        check=block("""
            import csv

            with open("people.csv", encoding="utf-8", newline="") as file:
                rows = list(csv.reader(file))
            assert rows == [
                ["name", "email", "cities"],
                ["Ada, Countess", "ada@example.org", "London;Paris"],
                ['Björk "B" G', "", ""],
                ["Chen", "", "Taipei"],
            ], rows
        """),
        solution=(
            write(
                "convert.py",
                """
                import csv
                import json

                with open("people.json", encoding="utf-8") as source, open("people.csv", "w", encoding="utf-8", newline="") as to:
                    rows = csv.writer(to)
                    rows.writerow(["name", "email", "cities"])
                    for one in json.load(source):
                        rows.writerow([one["name"], one.get("email") or "", ";".join(one["cities"])])
                """,
            ),
            bash("python3 convert.py && cat people.csv && rm convert.py"),
        ),
    ),
    Task(
        name="conflict",
        prompt="Merge the branch `greeting` into `main`. Keep both changes: the new greeting and the new parameter. Commit the merge.",
        files={"hello.py": 'def hello(name):\n    return "Hello " + name\n'},
        prepare=(
            f"git init -q -b main && {COMMITTER} && git add . && git commit -qm one && git checkout -qb greeting"
            " && sed -i 's/Hello/Good morning/' hello.py && git commit -qam greeting && git checkout -q main"
            """ && printf 'def hello(name, mark="!"):\\n    return "Hello " + name + mark\\n' > hello.py && git commit -qam mark"""
        ),
        check=block("""
            import subprocess

            from hello import hello

            assert hello("Ann") == "Good morning Ann!" and hello("Ann", "?") == "Good morning Ann?"
            git = lambda *words: subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout
            assert git("status", "--porcelain", "--untracked-files=no") == ""
            assert len(git("rev-list", "--parents", "-1", "main").split()) == 3, "no merge commit"
            assert git("branch", "--merged", "main").split().count("greeting") == 1
        """),
        solution=(
            bash("git merge greeting; cat hello.py"),
            write(
                "hello.py",
                """
                def hello(name, mark="!"):
                    return "Good morning " + name + mark
                """,
            ),
            bash("git commit -qam 'merge greeting' && git log --oneline --graph"),
        ),
    ),
    Task(
        name="culprit",
        prompt=(
            "Since some commit `python3 total.py` prints a wrong sum for its own numbers. Write the full hash of the first commit that"
            " is wrong to culprit.txt. Leave the branch and the files as they are."
        ),
        files={"total.py": "numbers = [1, 2, 3, 4]\nprint(sum(numbers))\n"},
        prepare=(
            f"git init -q -b main && {COMMITTER} && git add . && git commit -qm 0 && for n in 1 2 3 4 5 6 7 8 9; do"
            " if [ $n = 6 ]; then sed -i 's/sum(numbers)/sum(numbers[1:])/' total.py; fi;"
            ' echo "# note $n" >> total.py; git commit -qam "note $n"; done'
        ),
        check=block("""
            import subprocess
            from pathlib import Path

            git = lambda *words: subprocess.run(["git", *words], check=True, capture_output=True, text=True).stdout.strip()
            assert Path("culprit.txt").read_text().strip() == git("rev-parse", "main~3")
            assert git("symbolic-ref", "--short", "HEAD") == "main"
            assert git("status", "--porcelain", "--untracked-files=no") == ""
        """),
        solution=(
            bash(
                "git log --oneline | cat; git log -S'numbers[1:]' --format=%H -- total.py | tail -1 > culprit.txt; cat culprit.txt"
            ),
        ),
    ),
    Task(
        name="script",
        prompt=(
            "Write an executable shell script `backup` here: `./backup DIRECTORY FILE.tar.gz` packs the directory. Without exactly two"
            " arguments, or if the directory does not exist, it prints a sentence to standard error and exits with 2; an existing"
            " archive is not overwritten, exit code 3."
        ),
        files={"data/a b.txt": "one\n", "data/c.txt": "two\n"},
        check=block("""
            import subprocess
            import tarfile
            from pathlib import Path

            run = lambda *words: subprocess.run(["./backup", *words], capture_output=True, text=True)
            for words in ((), ("data",), ("none", "x.tar.gz"), ("data", "x.tar.gz", "more")):
                done = run(*words)
                assert done.returncode == 2 and done.stderr.strip() and not Path("x.tar.gz").exists(), words
            assert run("data", "x.tar.gz").returncode == 0
            with tarfile.open("x.tar.gz") as archive:
                assert {Path(name).name for name in archive.getnames()} >= {"a b.txt", "c.txt"}
            before = Path("x.tar.gz").read_bytes()
            assert run("data", "x.tar.gz").returncode == 3 and Path("x.tar.gz").read_bytes() == before
        """),
        solution=(
            write(
                "backup",
                """
                #!/bin/sh
                if [ $# -ne 2 ]; then
                    echo "usage: backup DIRECTORY FILE.tar.gz" >&2
                    exit 2
                fi
                if [ ! -d "$1" ]; then
                    echo "backup: $1 is no directory" >&2
                    exit 2
                fi
                if [ -e "$2" ]; then
                    echo "backup: $2 exists" >&2
                    exit 3
                fi
                tar -czf "$2" "$1"
                """,
            ),
            bash("chmod +x backup && ./backup; ./backup data /dev/null; echo $?"),
        ),
    ),
    Task(
        name="tests",
        prompt=(
            "Write test_parse.py with unittest for `seconds` in parse.py, which turns `1h30m`, `45s` or `2h` into seconds and raises"
            " ValueError for everything else. The tests have to fail for a `seconds` that ignores minutes, and for one that accepts `5x`."
        ),
        files={
            "parse.py": block("""
                import re


                def seconds(text):
                    found = re.fullmatch(r"(?:(\\d+)h)?(?:(\\d+)m)?(?:(\\d+)s)?", text)
                    if not found or not text:
                        raise ValueError(text)
                    hours, minutes, rest = (int(part or 0) for part in found.groups())
                    return hours * 3600 + minutes * 60 + rest
            """)
        },
        check=block("""
            import subprocess
            import sys
            from pathlib import Path

            good = Path("parse.py").read_text()

            def passes(source):
                Path("parse.py").write_text(source)
                done = subprocess.run([sys.executable, "-B", "-m", "unittest", "test_parse"], capture_output=True, text=True)
                return done.returncode == 0 and "Ran 0 tests" not in done.stderr

            try:
                assert passes(good), "the tests fail"
                assert not passes(good.replace("minutes * 60 + ", "")), "minutes are not tested"
                assert not passes(good.replace("(\\\\d+)s)?", "(\\\\d+)[sx])?")), "5x is not tested"
            finally:
                Path("parse.py").write_text(good)
        """),
        solution=(
            ("read", {"path": "parse.py"}),
            write(
                "test_parse.py",
                """
                import unittest

                from parse import seconds


                class Seconds(unittest.TestCase):
                    def test_sums(self):
                        for text, expected in (("1h30m", 5400), ("45s", 45), ("2h", 7200), ("1h1m1s", 3661)):
                            self.assertEqual(seconds(text), expected)

                    def test_refused(self):
                        for text in ("", "5x", "1m1h", "h"):
                            with self.assertRaises(ValueError):
                                seconds(text)


                if __name__ == "__main__":
                    unittest.main()
                """,
            ),
            bash("python3 -m unittest test_parse"),
        ),
    ),
    Task(
        name="make",
        prompt="`make` here does nothing after notes.txt was changed, though report.txt is made of it. Correct the Makefile.",
        files={
            "Makefile": "report.txt: header.txt\n\tcat header.txt notes.txt > report.txt\n",
            "header.txt": "Report\n",
            "notes.txt": "first\n",
        },
        prepare="make -s && touch -d '1 minute ago' header.txt notes.txt report.txt",
        check=block("""
            import subprocess
            from pathlib import Path

            make = lambda: subprocess.run(["make"], check=True, capture_output=True, text=True).stdout
            make()
            Path("notes.txt").write_text("second\\n")
            make()
            assert Path("report.txt").read_text() == "Report\\nsecond\\n"
            assert "cat" not in make(), "it is made again though nothing has changed"
        """),
        solution=(
            ("read", {"path": "Makefile"}),
            edit("Makefile", "report.txt: header.txt\n", "report.txt: header.txt notes.txt\n"),
            bash("make && make"),
        ),
    ),
    Task(
        name="config",
        prompt=(
            "settings.toml cannot be read. Repair it, so that every key has the value that was obviously meant, and the ports stay"
            " numbers. Do not add or remove keys."
        ),
        files={
            "settings.toml": block("""
                title = "Shop
                [server]
                host = "0.0.0.0"
                port = 8O80
                tls = True
                [server.limits]
                body_mb = 10,
                names = ["a", "b"
            """)
        },
        check=block("""
            import tomllib
            from pathlib import Path

            assert tomllib.loads(Path("settings.toml").read_text()) == {
                "title": "Shop",
                "server": {
                    "host": "0.0.0.0", "port": 8080, "tls": True, "limits": {"body_mb": 10, "names": ["a", "b"]},
                },
            }
        """),
        solution=(
            ("read", {"path": "settings.toml"}),
            write(
                "settings.toml",
                """
                title = "Shop"
                [server]
                host = "0.0.0.0"
                port = 8080
                tls = true
                [server.limits]
                body_mb = 10
                names = ["a", "b"]
                """,
            ),
        ),
    ),
)
