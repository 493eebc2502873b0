"""`@picture.png` in a prompt: the image itself goes along, and not only its name."""

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
    """The prompt with the images that its text mentions, behind those that were pasted. Blocks.

    Paths are relative to `folder`. A mention of a file that does not exist stays text.

    Raises:
        ImageError: a file is there and cannot be sent.
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
    names = dict.fromkeys(found[1] or found[2] for found in _IMAGE.finditer(text))
    return (os.path.join(folder, os.path.expanduser(name)) for name in names)
