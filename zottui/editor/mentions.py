"""Attaches the images that a prompt mentions as `@picture.png`."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from zottui.editor import images
from zottui.editor.placeholders import Submission

_IMAGE = re.compile(
    r'(?:^|(?<=\s))@(?:"([^"\n]+\.(?:png|jpe?g|gif|webp))"|([^\s"]+?\.(?:png|jpe?g|gif|webp))(?=[\s,;:.!?)]|$))',
    re.IGNORECASE,
)


def with_mentioned_images(submission: Submission, folder: str) -> Submission:
    """Return the prompt with the mentioned images after the pasted ones. Blocks.

    Paths are relative to `folder`. A mention of a missing file stays text.

    Raises:
        ImageError: a file exists but cannot be sent.
    """
    found = list(submission.images)
    for path in _mentioned(submission.text, folder):
        try:
            image = images.read(path)
        except FileNotFoundError:
            continue
        images.check_room(image, found)
        found.append(image)
    return replace(submission, images=tuple(found))


def _mentioned(text: str, folder: str) -> Iterator[str]:
    names = dict.fromkeys(found[1] or found[2] for found in _IMAGE.finditer(text))  # each image once, in order
    return (os.path.join(folder, os.path.expanduser(name)) for name in names)
