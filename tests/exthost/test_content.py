import base64

import pytest

from zotd.exthost.content import RESULT_BLOCKS, RESULT_BYTES, blocks_of, outcome_of
from zotd.wire.content import Image, Text
from zotd.wire.ext import ToolResult

PNG = base64.b64encode(b"not really").decode()


def read(*blocks, is_error=False):
    outcome = outcome_of(ToolResult("1", blocks, is_error), "x")
    return outcome.is_error, outcome.content


def test_texts_and_images_are_kept_in_order():
    blocks = [
        {"type": "text", "text": "a", "format": "markdown"},
        {"type": "image", "mime_type": "image/png", "data": PNG},
    ]
    assert read(*blocks) == (False, [Text("a"), Image("image/png", 10, PNG)])
    assert read(*blocks, is_error=True)[0]


@pytest.mark.parametrize("blocks", [[], [{"type": "text", "text": ""}]])
def test_nothing_is_said_to_be_nothing(blocks):
    assert read(*blocks) == (False, [Text("(no content)")])


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "video"}, '[unknown block type "video" from extension x]'),
        ({"type": "text"}, "[an invalid block from extension x]"),
        ({"type": "text", "text": 7}, "[an invalid block from extension x]"),
        ({}, "[an invalid block from extension x]"),
        ("text", "[an invalid block from extension x]"),
        (None, "[an invalid block from extension x]"),
    ],
)
def test_an_unknown_block_becomes_a_text_that_names_it(block, text):
    assert read(block) == (False, [Text(text)])


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"mime_type": "image/png", "data": "?"}, "[image from extension x that is not base64]"),
        ({"mime_type": "image/png", "data": PNG[:-1]}, "[image from extension x that is not base64]"),
        ({"mime_type": "image/png", "data": "\u00e9"}, "[image from extension x that is not base64]"),
        ({"mime_type": "image/png"}, "[image from extension x that is not base64]"),
        ({"mime_type": "image/png", "data": ""}, "[empty image from extension x]"),
        ({"mime_type": "image/tiff", "data": PNG}, '[image of unknown type "image/tiff" from extension x]'),
        ({"data": PNG}, '[image of unknown type "None" from extension x]'),
        ({"mime_type": ["image/png"], "data": PNG}, "[image of unknown type \"['image/png']\" from extension x]"),
    ],
)
def test_an_image_that_no_vendor_would_take_is_an_error(fields, text):
    assert read({"type": "image", **fields}) == (True, [Text(text)])


def words(*content):
    """What an extension gets: texts, and images as their data; and whether something is left out."""
    blocks, is_cut = blocks_of(content)
    return [block.get("text", block.get("data")) for block in blocks], is_cut


def test_an_extension_gets_texts_and_images_as_it_would_send_them():
    assert blocks_of([Text("a"), Image("image/png", 10, PNG)]) == (
        ({"type": "text", "text": "a"}, {"type": "image", "mime_type": "image/png", "data": PNG}),
        False,
    )
    assert words() == words(Text("")) == (["(no content)"], False)


def test_text_is_cut_between_two_characters():
    assert words(Text("x" * RESULT_BYTES)) == (["x" * RESULT_BYTES], False)
    assert words(Text("x"), Text("é" * RESULT_BYTES)) == (["x", "é" * (RESULT_BYTES // 2 - 1)], True)


def test_an_image_that_does_not_fit_is_said_to_be_there_and_what_follows_may_fit():
    image = Image("image/png", 300_000, "A" * 400_000)
    assert words(image, Text("a caption")) == (["[image/png of 300000 bytes, too long]", "a caption"], True)
    assert words(Text("x" * RESULT_BYTES), image) == (["x" * RESULT_BYTES], True)


def test_a_result_has_a_number_of_blocks_that_can_be_read():
    assert words(*[Text("x")] * (RESULT_BLOCKS + 1)) == (["x"] * RESULT_BLOCKS, True)
