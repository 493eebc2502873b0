"""`zotctl ext new`: the extension it creates works without changes, in every language."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.conftest import tsx  # noqa: F401  (a fixture)
from tests.needs import needs
from tests.npm import typescript as typescript_sdk
from tests.npm.packages import INSTALL_S, installed
from zotctl.ext.new import PREPARATIONS, SKELETONS, SkeletonError, new
from zotd.testing.ext_driver import ExtensionDriver, text_of

BIN = Path(sys.executable).parent

GO_BUILD_S = 300
"""Time limit in seconds. The first build compiles Go's standard library: 10 s on two idle cores."""

PATIENCE_S = {"go": GO_BUILD_S + 20, "ts": INSTALL_S + 60}

LANGUAGES = [
    pytest.param(lang, marks=pytest.mark.timeout(PATIENCE_S[lang])) if lang in PATIENCE_S else lang
    for lang in PREPARATIONS
]


NEEDED = {"sh": "jq", "js": "node"}
"""Programs that a language needs and that may be missing on this machine."""


@pytest.fixture
def tools_of(request, shell):
    """Add the programs that a language needs to PATH."""

    def tools_of(lang, directory):
        programs = [str(BIN)]
        if lang in NEEDED:
            needs(NEEDED[lang])
        if lang == "ts":
            programs.insert(0, str(typescript_sdk.runtime(request.config, "node")[0].parent))
        if lang == "go":
            cache = str(request.config.cache.mkdir("go-build"))
            env = {**os.environ, "GOCACHE": cache, "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local", "GOPROXY": "off"}
            for arguments in (["vet"], ["build"]):
                subprocess.run([BIN / "go", *arguments], cwd=directory, env=env, check=True, timeout=GO_BUILD_S)
        shell.env["PATH"] = os.pathsep.join([*programs, os.environ["PATH"]])

    return tools_of


def argv(directory, manifest):
    program = manifest["exec"]
    return [directory / program if "/" in program else program, *manifest.get("args", [])]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_new_extension_passes_validation_and_works(shell, tools_of, lang):
    code, out, err = shell.zotctl("ext", "new", "my.weather", "--lang", lang)
    assert (code, err) == (0, "")
    directory = shell.cwd / "my.weather"
    tools_of(lang, directory)

    code, out, err = shell.zotctl("ext", "validate", "my.weather", "--call", "--json")
    report = json.loads(out)
    assert [one for one in report["findings"] if one["verdict"] == "broken"] == []
    assert (code, report["ok"], err) == (0, True, "")

    manifest = json.loads((directory / "extension.json").read_text())
    with ExtensionDriver(argv(directory, manifest), cwd=directory, env=shell.env) as driver:
        driver.greet()
        assert text_of(driver.call_tool("my_weather", who='Ada "A" \u2028')) == 'Hello, Ada "A" \u2028!'
        assert driver.call_tool("my_weather")["is_error"] is True
        assert driver.run_command("my.weather")["prompt"] == "Greet me with the tool my_weather."
        assert driver.run_command("my.weather", 'Ada "A"')["prompt"] == 'Greet Ada "A" with the tool my_weather.'
        assert driver.shut_down() == 0
        assert driver.log() == ""


def test_an_extension_in_python_needs_no_zot_in_its_interpreter(tmp_path):
    new("weather", "py", tmp_path)
    bare = [sys.executable, "-E", "-S", "main.py"]  # no site-packages, no PYTHONPATH
    with ExtensionDriver(bare, cwd=tmp_path / "weather") as driver:
        driver.greet()
        assert text_of(driver.call_tool("weather", who="Ada")) == "Hello, Ada!"


@pytest.mark.timeout(INSTALL_S + 20)
@pytest.mark.parametrize("program", [*typescript_sdk.RUNTIMES, "tsx"])
def test_an_extension_in_typescript_needs_nothing_but_a_program_that_reads_it(request, tmp_path, program):
    new("weather", "ts", tmp_path)
    if program == "tsx":
        needs("node", "env")
        found = {
            "tsx": request.getfixturevalue("tsx") / "tsx",
            "node": shutil.which("node"),
            "env": shutil.which("env"),
        }
    else:
        found = {program: typescript_sdk.runtime(request.config, program)[0]}
    (tmp_path / "bin").mkdir()
    for name, path in found.items():
        (tmp_path / "bin" / name).symlink_to(path)
    nothing_else = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    with ExtensionDriver(["/bin/sh", "run.sh"], cwd=tmp_path / "weather", env=nothing_else) as driver:
        driver.greet()
        assert text_of(driver.call_tool("weather", who="Ada")) == "Hello, Ada!"
        assert driver.shut_down() == 0
        assert driver.log() == ""


def test_an_extension_in_typescript_says_what_it_needs(tmp_path):
    new("weather", "ts", tmp_path)
    with ExtensionDriver(["/bin/sh", "run.sh"], cwd=tmp_path / "weather", env={"PATH": str(tmp_path)}) as driver:
        assert driver.end() == 1
        assert driver.log().splitlines()[-1].startswith("main.ts needs Node 22.18 or newer, Bun, Deno or tsx")


@pytest.mark.timeout(INSTALL_S + 20)
def test_an_extension_in_typescript_passes_the_compiler(request, tmp_path):
    new("weather", "ts", tmp_path)
    packages = installed(request.config, typescript_sdk.SDK)
    (tmp_path / "weather" / "node_modules").symlink_to(packages)
    assert typescript_sdk.complaints(packages, tmp_path / "weather") == ""


def test_new_prints_the_files_and_the_next_steps(shell):
    code, out, _ = shell.zot("ext", "new", "weather", "--lang", "sh", "--dir", "made for me")
    directory = shell.cwd / "made for me" / "weather"
    assert code == 0
    assert out.startswith("created made for me/weather with README.md, extension.json, main.sh\n")
    assert "\n  zotctl ext validate 'made for me/weather'\n" in out
    assert "\n  zot -e 'made for me/weather'\n" in out
    everywhere = f"{shell.env['ZOT_HOME']}/extensions"
    assert f"\n  mkdir -p {everywhere} && ln -s '{directory}' {everywhere}/\n" in out
    assert "\n  zotctl ext reload weather\n" in out
    assert os.access(directory / "main.sh", os.X_OK)


def test_the_files_that_were_made_are_given_in_order(tmp_path):
    files = new("weather", "js", tmp_path / "far" / "away")
    assert [path.name for path in files] == ["README.md", "extension.json", "main.mjs"]
    assert all("{{" not in path.read_text() for path in files)


@pytest.mark.parametrize("name", ["", "two words", "../up", ".hidden", "a/b", "x" * 65, "tools", "channels"])
def test_new_refuses_an_invalid_name(tmp_path, name):
    with pytest.raises(SkeletonError, match="invalid extension name"):
        new(name, "py", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", ["directory", "file", "dangling link"])
def test_new_does_not_overwrite_files(shell, there):
    path = shell.cwd / "weather"
    if there == "directory":
        path.mkdir()
    elif there == "file":
        path.write_text("mine")
    else:
        path.symlink_to("nowhere")

    code, out, err = shell.zotctl("ext", "new", "weather", "--lang", "py")

    assert (code, out) == (1, "")
    assert err == "zotctl: weather already exists; choose another name or remove it\n"
    assert not path.is_dir() or list(path.iterdir()) == []


def test_new_names_a_directory_that_is_not_writable(shell):
    (shell.cwd / "file").write_text("mine")
    code, _, err = shell.zotctl("ext", "new", "weather", "--lang", "py", "--dir", "file")
    assert (code, err) == (1, "zotctl: cannot write file/weather: not a directory\n")


def test_an_unknown_language_is_bad_usage(shell):
    code, _, err = shell.zotctl("ext", "new", "weather", "--lang", "cobol")
    assert code == 2
    assert "cobol" in err
    assert list(shell.cwd.iterdir()) == []


def test_there_is_a_skeleton_for_each_language_and_no_other():
    assert {path.name for path in SKELETONS.iterdir()} == set(PREPARATIONS)
