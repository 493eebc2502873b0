"""A prompt is checked before it is accepted: words, images, or both."""

import base64

import pytest

from zotd.runs.queue import IMAGE_TYPES, MAX_IMAGE_BYTES, content_of
from zotd.wire.api import PromptImage
from zotd.wire.content import Image, Text
from zotd.wire.errors import Code, CommandError


def image(size=3, kind="image/png"):
    return PromptImage(kind, base64.b64encode(bytes(size)).decode())


def refusal(message, images):
    with pytest.raises(CommandError) as caught:
        content_of(message, images)
    return caught.value.code, caught.value.sentence


def test_words_are_taken_as_they_are():
    assert content_of("  mend the door\n", []) == [Text("  mend the door\n")]


def test_images_come_before_the_words_about_them():
    picture = image(4)
    assert content_of("what is this?", [picture]) == [Image("image/png", 4, picture.data), Text("what is this?")]


def test_an_image_needs_no_words():
    picture = image()
    assert content_of(" ", [picture]) == [Image("image/png", 3, picture.data)]


@pytest.mark.parametrize("message", ["", " \n\t"])
def test_an_empty_prompt_is_refused(message):
    assert refusal(message, []) == (Code.BAD_REQUEST, "the prompt is empty; send text, an image, or both")


@pytest.mark.parametrize("kind", IMAGE_TYPES)
def test_the_kinds_that_models_take_are_taken(kind):
    assert content_of("x", [image(kind=kind)])[0] == Image(kind, 3, "AAAA")


@pytest.mark.parametrize("kind", ["image/svg+xml", "text/plain", "IMAGE/PNG", ""])
def test_another_kind_is_refused_and_named(kind):
    sentence = f'image 2 is "{kind}"; models take png, jpeg, gif, webp'
    assert refusal("x", [image(), image(kind=kind)]) == (Code.BAD_REQUEST, sentence)


@pytest.mark.parametrize("data", ["AAA", "AA AA", "AAAA\n", "äöüß", "AAA=A", "%%%%", "A\x00AA"])
def test_invalid_base64_is_refused(data):
    assert refusal("x", [PromptImage("image/png", data)]) == (
        Code.BAD_REQUEST,
        "the data of image 1 is not base64",
    )


def test_an_image_may_be_as_large_as_the_limit():
    [found, _] = content_of("x", [image(MAX_IMAGE_BYTES)])
    assert isinstance(found, Image)
    assert found.bytes == MAX_IMAGE_BYTES


@pytest.mark.parametrize("size", [0, MAX_IMAGE_BYTES + 1])
def test_one_without_bytes_or_with_too_many_is_refused(size):
    sentence = f"image 1 has {size} bytes; models take 1 byte to 5 MiB"
    assert refusal("x", [image(size)]) == (Code.TOO_LARGE, sentence)
