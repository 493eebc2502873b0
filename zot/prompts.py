"""What a prompt consists of, checked before anything is sent."""

from base64 import b64encode
from collections.abc import Sequence

from zot.errors import OptionError
from zotd.sdk.values import Image
from zotd.wire.api import PromptImage


def check_prompt(prompt: object, images: Sequence[object], tries: object) -> None:
    """Raise OptionError for a prompt that is no text, images that are none, or a wrong number of tries."""
    if not isinstance(prompt, str):
        raise OptionError(f"the prompt must be text, not {prompt!r:.80}")
    for image in images:
        if not isinstance(image, Image):
            raise OptionError(f"images must be made with Image.from_bytes(data); this is {image!r:.80}")
    if not isinstance(tries, int) or tries < 1:
        raise OptionError(f"tries must be a whole number from 1 on, not {tries!r:.80}")


def encoded(images: Sequence[Image]) -> list[PromptImage]:
    """Return the images as they are sent."""
    return [PromptImage(image.mime_type, b64encode(image.data).decode()) for image in images]
