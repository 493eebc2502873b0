"""`zotctl share`: a session as one HTML file, without secrets and without anything that a browser would run or load."""

import re
import shutil

import msgspec
import pytest
from playwright.sync_api import sync_playwright

from tests.needs import needs
from zotctl.share.page import escaped
from zotd.testing.script import CallPart, calls, text

HOSTILE = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "</p></article><svg/onload=document.title='owned'>",
    "</style><style>*{display:none}</style>",
    "<iframe srcdoc='<script>parent.document.title=1</script>'></iframe>",
    "<meta http-equiv=refresh content='0;url=http://192.0.2.1/'>",
    "<link rel=stylesheet href=http://192.0.2.1/a.css>",
    "<a href=\"javascript:document.title='owned'\">here</a>",
    "\"'><b onmouseover=document.title='owned'>",
    "&lt;script&gt; &#60;script&#62; <!-- --> <![CDATA[ ]]>",
    "\u202egnp.exe \x1b]0;owned\x07 \x00",
    "<base href=http://192.0.2.1/><form action=/x><button autofocus>",
    "<details open ontoggle=document.title='owned'>",
]


ELEMENTS = frozenset(
    [
        "a",
        "article",
        "body",
        "details",
        "footer",
        "h1",
        "head",
        "header",
        "html",
        "main",
        "meta",
        "p",
        "pre",
        "span",
        "style",
        "summary",
        "title",
    ]
)


def scripted(live, *replies):
    return live.scripted(*map(msgspec.to_builtins, [text(one) if isinstance(one, str) else one for one in replies]))


def test_a_session_is_one_file_with_folded_calls_diffs_and_costs(live):
    live.session(
        scripted(
            live,
            calls(CallPart("write", {"path": "a.txt", "content": "one\n"})),
            calls(CallPart("edit", {"path": "a.txt", "edits": [{"oldText": "one", "newText": "two"}]})),
            calls(CallPart("bash", {"command": "cat a.txt; exit 3"})),
            text("It is **done**."),
        )
    )
    live.zotctl("send", "--session", "tests", "change it", "--wait")
    code, out, err = live.zotctl("share", "tests", "--output", "talk.html")
    assert (code, err) == (0, "")
    assert out.startswith("talk.html: 5 messages; masked 0 secrets, shortened the home directory ")
    page = (live.cwd / "talk.html").read_text()
    assert page.count("<details") == 3
    assert '<span class="cut">-one</span><span class="add">+two</span>' in page
    assert '<details class="failed"><summary>bash cat a.txt; exit 3</summary>' in page
    assert "[exit 3]" in page
    assert re.search(r"\d+ tokens, \$\d+\.\d\d", page)
    assert (live.cwd / "talk.html").stat().st_mode & 0o777 == 0o600
    first = re.findall(r'id="m(\d+)"', page)[0]
    assert live.zotctl("share", "--last", "--to", first)[1].split(":")[1].startswith(" 1 messages")


def test_secrets_homes_and_what_one_names_are_masked_and_counted(live):
    key = "sk-" + "a1B2" * 8
    said = f"password: hunter2hunter2 {key} {live.shell.env['HOME']}/x {live.shell.env['HOME']}x ACME-12 and ACME-7 valueofmine"
    live.session(scripted(live, calls(CallPart("bash", {"command": f"echo {key}"})), text(said)))
    live.zotctl("send", "--session", "tests", said, "--wait")
    live.shell.env["MY_API_KEY"] = "valueofmine"
    code, out, _ = live.zotctl("share", "tests", "-o", "talk.html", "--redact", r"ACME-\d+")
    page = (live.cwd / "talk.html").read_text()
    assert code == 0
    for secret in (key, "hunter2hunter2", "valueofmine", "ACME-12", "ACME-7", f"{live.shell.env['HOME']}/x"):
        assert secret not in page
    assert f"{live.shell.env['HOME']}x" in page
    assert "4 texts like ACME-" in out
    assert re.search(r"masked [1-9]\d* secrets", out)
    assert escaped(out.split("; ")[1].split("\n")[0]) in page


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ((), "name one session, or use --last"),
        (("tests", "--last"), "name one session, or use --last"),
        (("tests", "--redact", "("), "--redact (: "),
        (("tests", "--redact", "a*"), "--redact a*: matches an empty text"),
        (("tests", "-o", "/nonexistent/x"), "cannot write /nonexistent/x"),
    ],
)
def test_what_cannot_be_done_is_told(live, args, why):
    live.session(scripted(live, "hi"))
    code, out, err = live.zotctl("share", *args)
    assert (code, out) == (1, "")
    assert why in err


def test_nothing_in_a_hostile_session_runs_or_is_loaded(live):
    needs("chromium")
    hostile = "\n".join(HOSTILE)
    live.session(
        scripted(
            live,
            calls(CallPart("bash", {"command": hostile})),
            calls(CallPart("write", {"path": hostile, "content": hostile})),
            calls(CallPart("edit", {"path": "x", "edits": [{"oldText": hostile, "newText": hostile}]})),
            text(hostile),
        )
    )
    live.zotctl("send", "--session", "tests", hostile.replace("\0", ""), "--wait")
    live.zotctl("rename", "tests", "</title><script>document.title='owned'</script>")
    assert live.zotctl("share", "--last", "-o", "talk.html")[0] == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page()
        faults, asked = [], []
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(f"file://{live.cwd}/talk.html")
        page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
        assert page.title() == "</title><script>document.title='owned'</script>"
        elements = page.evaluate("[...new Set([...document.querySelectorAll('*')].map((one) => one.localName))].sort()")
        assert set(elements) <= ELEMENTS
        assert page.evaluate("document.querySelectorAll('style').length") == 1
        assert page.locator("article.user p").inner_text().count("<script>") >= 1
        assert page.evaluate("getComputedStyle(document.querySelector('.user')).borderRadius") == "10px"
        assert asked == [f"file://{live.cwd}/talk.html"]
        # Even a text that was not escaped could not run: the policy of the page.
        page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=\"document.title=1\">')")
        assert page.title() != "1"
        browser.close()
    assert all("Content Security Policy" in fault for fault in faults), faults
