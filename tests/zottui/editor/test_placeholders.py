"""What stands for a long paste, and what becomes of it."""

from hypothesis import given
from hypothesis import strategies as st

from zotd.wire.api import PromptImage
from zottui.editor.placeholders import EditorDraft, Placeholders, is_long, lines

WORDS = st.text(st.sampled_from("ab #1·\n[]p"), max_size=12)
CONTENTS = st.text(st.sampled_from("ab \n["), min_size=1, max_size=30)
IMAGE = PromptImage(mime_type="image/png", data="AAAA")


def test_only_long_pastes_become_placeholders():
    assert not is_long("x" * 1000)
    assert is_long("x" * 1001)
    assert not is_long("x\n" * 15)
    assert is_long("x\n" * 15 + "x")


def test_a_placeholder_gives_the_size_of_the_pasted_text():
    placeholders = Placeholders()
    assert placeholders.paste("x\n" * 60) == "[pasted #1 · 60 lines]"
    assert placeholders.paste("x" * 2000) == "[pasted #2 · 2,000 characters]"
    assert placeholders.image(IMAGE, "a [b]\n.png") == "[image #3 · a b .png]"


@given(st.lists(st.tuples(WORDS, CONTENTS), max_size=4), WORDS)
def test_a_submission_contains_all_pastes(pieces, end):
    placeholders = Placeholders()
    shown = "".join(words + placeholders.paste(content) for words, content in pieces) + end
    assert placeholders.expanded(shown) == "".join(words + content for words, content in pieces) + end


@given(st.lists(st.tuples(WORDS, CONTENTS), max_size=4), WORDS)
def test_collapsing_an_expanded_text_keeps_its_meaning(pieces, end):
    placeholders = Placeholders()
    shown = "".join(words + placeholders.paste(content) for words, content in pieces) + end
    expanded = placeholders.expanded(shown)
    assert placeholders.expanded(placeholders.collapsed(expanded)) == expanded


def test_a_paste_that_holds_a_placeholder_is_sent_as_it_is():
    placeholders = Placeholders()
    first = placeholders.paste("one")
    second = placeholders.paste(f"see {first}")
    assert placeholders.expanded(f"{first}, {second}") == f"one, see {first}"


def test_images_are_sent_in_the_order_of_the_text_and_only_those_that_are_in_it():
    placeholders = Placeholders()
    images = [PromptImage(mime_type="image/png", data=data) for data in ("AAAA", "BBBB", "CCCC")]
    a, _, c = (placeholders.image(image, f"{n}.png") for n, image in enumerate(images))
    submission = placeholders.submission(f"{c} and {a}")
    assert submission.text == "[image #3 · 2.png] and [image #1 · 0.png]"
    assert submission.images == (images[2], images[0])


def test_adopting_a_draft_renames_labels_in_use():
    placeholders = Placeholders()
    mine = placeholders.paste("x\n" * 20)
    theirs = EditorDraft(
        f"{mine} [image #2 · a.png] [pasted #9 · 20 lines]", {mine: "y\n" * 20}, {"[image #2 · a.png]": IMAGE}
    )
    text = placeholders.adopted(theirs)
    assert text == "[pasted #2 · 20 lines] [image #2 · a.png] [pasted #9 · 20 lines]"
    assert placeholders.expanded(mine) == "x\n" * 20
    assert placeholders.submission(text).text.startswith("y\n" * 20)
    assert placeholders.submission(text).images == (IMAGE,)
    assert placeholders.paste("z\n" * 20) == "[pasted #3 · 20 lines]"


def test_a_draft_carries_only_what_its_text_shows():
    placeholders = Placeholders()
    kept, _ = placeholders.paste("x\n" * 20), placeholders.paste("gone\n" * 20)
    assert placeholders.draft(f"see {kept}") == EditorDraft(f"see {kept}", {kept: "x\n" * 20})


@given(st.text(st.sampled_from("a\n"), max_size=9))
def test_a_newline_at_the_end_begins_no_line(text):
    assert lines(text) == max(len(text.splitlines()), 1)
