"""Images and texts that are pasted."""

import base64
import os
import shlex

import pytest

from tests.zottui.editor.keyboard import typing
from zotd.wire.api import PromptImage
from zottui.editor import images
from zottui.editor.images import ImageError, check_room, prompt_image, read
from zottui.editor.pasting import image_paths

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 20


def picture(path, data=PNG):
    path.write_bytes(data)
    return path


def program(folder, name, script):
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o700)
    return path


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("/a/b.png", ["/a/b.png"]),
        ("/a/b.png \n", ["/a/b.png"]),
        ("'/a/my shot.PNG'", ["/a/my shot.PNG"]),
        ("/a/my\\ shot.jpeg", ["/a/my shot.jpeg"]),
        ("file:///a/my%20shot.gif", ["/a/my shot.gif"]),
        ("~/b.webp", ["/home/me/b.webp"]),
        ("/a/b.png /c/d.jpg", ["/a/b.png", "/c/d.jpg"]),
        ("see /a/b.png", []),
        ("b.png", []),
        ("/a/b.py", []),
        ("it's a b.png", []),
        ("/a/b.png /a/b.py", []),
        ("", []),
        (f"/{'a' * 5000}.png", []),
    ],
)
def test_files_are_recognized_as_terminals_write_them(text, paths):
    assert image_paths(text, "/home/me") == paths


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PNG, "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8", "image/webp"),
    ],
)
def test_an_image_is_what_it_begins_with(data, kind):
    assert prompt_image(data, "it") == PromptImage(mime_type=kind, data=base64.b64encode(data).decode())


def test_unsupported_images_are_refused_with_the_reason():
    with pytest.raises(ImageError, match=r"notes\.png is not a PNG"):
        prompt_image(b"words", "notes.png")
    with pytest.raises(ImageError, match="larger than the 5 MiB"):
        prompt_image(PNG + bytes(images.MAX_BYTES), "big.png")


def test_images_of_one_prompt_have_room_together():
    big = PromptImage(mime_type="image/png", data="A" * (images.MAX_BASE64 // 2))
    check_room(big, [big])
    with pytest.raises(ImageError, match="send this one in the next"):
        check_room(big, [big, big])


def test_only_files_are_read(tmp_path):
    os.mkfifo(tmp_path / "pipe.png")
    with pytest.raises(ImageError, match="is not a file"):
        read(str(tmp_path / "pipe.png"))
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "gone.png"))
    with pytest.raises(ImageError, match="5 MiB"):
        read(str(picture(tmp_path / "big.png", PNG + bytes(images.MAX_BYTES))))


async def test_a_dropped_image_is_sent_with_its_prompt(tmp_path):
    path = picture(tmp_path / "my shot.png")
    async with typing() as t:
        await t.type("what is ")
        await t.paste(shlex.quote(str(path)))
        await t.settled()
        assert t.text == "what is [image #1 · my shot.png] "
        await t.type("?\r")
        assert t.texts == ["what is [image #1 · my shot.png] ?"]
        assert t.sent[0][0].images == (PromptImage(mime_type="image/png", data=base64.b64encode(PNG).decode()),)


async def test_an_image_whose_placeholder_is_deleted_is_not_sent(tmp_path):
    path = picture(tmp_path / "shot.png")
    async with typing() as t:
        await t.paste(str(path))
        await t.settled()
        await t.type("\x7f\x7fno\r")
        assert (t.texts, t.sent[0][0].images) == (["no"], ())


async def test_enter_waits_for_an_image_that_is_still_read(tmp_path):
    path = picture(tmp_path / "shot.png")
    async with typing() as t:
        await t.type(f"look \x1b[200~{path}\x1b[201~\r")
        await t.settled()
        assert t.texts == ["look [image #1 · shot.png] "]
        assert len(t.sent[0][0].images) == 1


async def test_a_prompt_is_not_sent_without_the_image_that_was_meant_to_be_in_it(tmp_path):
    path = picture(tmp_path / "shot.png", b"words")
    async with typing() as t:
        await t.type(f"look \x1b[200~{path}\x1b[201~\r")
        await t.settled()
        assert (t.texts, t.text) == ([], "look ")


async def test_a_path_that_leads_nowhere_is_text(tmp_path):
    async with typing() as t:
        await t.paste("/nowhere/shot.png")
        await t.settled()
        assert (t.text, t.fake_ui.said) == ("/nowhere/shot.png", [])


async def test_pasting_a_file_that_is_not_an_image_prints_why(tmp_path):
    path = picture(tmp_path / "shot.png", b"words")
    async with typing() as t:
        await t.paste(str(path))
        await t.settled()
        assert t.text == ""
        assert "is not a PNG, JPEG, GIF or WebP" in t.fake_ui.said[0]


async def test_a_paste_that_no_line_could_carry_is_refused():
    async with typing() as t:
        t.editor.pasting.paste("x" * 4_000_001)
        assert t.text == ""
        assert "save it to a file" in t.fake_ui.said[0]


@pytest.mark.parametrize(("variable", "name"), [("WAYLAND_DISPLAY", "wl-paste"), ("DISPLAY", "xclip")])
async def test_ctrl_v_asks_the_desktop_for_the_image(tmp_path, variable, name):
    picture(tmp_path / "clip")
    program(tmp_path, name, f'case "$*" in *image/png*) exec cat {tmp_path}/clip;; esac')
    async with typing(env={variable: ":0", "PATH": f"{tmp_path}:{os.environ['PATH']}"}) as t:
        await t.type("\x16")
        await t.settled()
        assert t.text == "[image #1 · clipboard] "
        assert t.editor.submitted().images[0].mime_type == "image/png"


@pytest.mark.parametrize(
    ("env", "script", "words"),
    [
        ({}, None, "no display"),
        ({"DISPLAY": ":0"}, None, "install xclip"),
        ({"DISPLAY": ":0"}, "exit 1", "no image in the clipboard"),
        ({"DISPLAY": ":0"}, "echo words", "is not a PNG"),
        ({"DISPLAY": ":0"}, "exec cat /dev/zero", "is not a PNG"),
    ],
)
async def test_pasting_without_an_image_prints_why(tmp_path, env, script, words):
    if script is not None:
        program(tmp_path, "xclip", script)
    async with typing(env={**env, "PATH": f"{tmp_path}:/usr/bin:/bin" if script else str(tmp_path)}) as t:
        await t.type("\x16")
        await t.settled()
        assert t.text == ""
        assert words in t.fake_ui.said[0]
