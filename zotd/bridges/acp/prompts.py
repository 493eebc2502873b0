"""Converts the content blocks of `session/prompt` to a prompt of the daemon."""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from zotd.wire import slash_lines
from zotd.wire.acp import AudioBlock, ContentBlock, Contents, ImageBlock, LinkBlock, ResourceBlock, TextBlock
from zotd.wire.api import PromptImage
from zotd.wire.jsonrpc import RpcError, RpcErrorCode


@dataclass(frozen=True, slots=True)
class Entered:
    """The prompt of a person, as text and images."""

    text: str
    images: Sequence[PromptImage] = ()

    @property
    def command(self) -> tuple[str, str] | None:
        """Name and arguments of a slash command, or None for a prompt to the model."""
        return None if self.images else slash_lines.parsed(self.text)

    @property
    def message(self) -> str:
        """The text for the model, without the escape of a leading slash."""
        return slash_lines.unescaped(self.text)


def entered(blocks: Sequence[ContentBlock]) -> Entered:
    """Convert blocks in their order: text unchanged, links by name, files with their content, images separately.

    Raises:
        RpcError: the prompt is empty or has an unsupported block, such as audio.
    """
    words: list[str] = []
    images: list[PromptImage] = []
    for block in blocks:
        match block:
            case TextBlock(text=text):
                words.append(text)
            case ImageBlock(data=data, mime_type=mime_type):
                images.append(PromptImage(mime_type, data))
            case LinkBlock(uri=uri, name=name):
                words.append(_link(uri, name))
            case ResourceBlock(resource=contents) if contents.text is not None:
                words.append(_file(contents.uri, contents.text))
            case ResourceBlock(resource=contents):
                images.append(_image(contents))
            case AudioBlock():
                raise RpcError(
                    RpcErrorCode.PARAMS, "audio is not supported: `promptCapabilities.audio` was not offered"
                )
    text = "".join(words)
    if not text.strip() and not images:
        raise RpcError(RpcErrorCode.PARAMS, "the prompt is empty")
    return Entered(text, images)


def _link(uri: str, name: str) -> str:
    """Format a link: a path for files, which models read with `read`; otherwise a Markdown link."""
    parts = urlsplit(uri)
    if parts.scheme == "file" and parts.netloc in {"", "localhost"}:
        return f"`{unquote(parts.path)}`"
    return f"[{name}]({uri})"


def _file(uri: str, text: str) -> str:
    # Escaped, so that a file name cannot end the attribute and add text of its own.
    name = uri.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return f'\n<file uri="{name}">\n{text}\n</file>\n'


def _image(contents: Contents) -> PromptImage:
    if contents.blob is None or not (contents.mime_type or "").startswith("image/"):
        raise RpcError(RpcErrorCode.PARAMS, f"{contents.uri} is neither text nor an image; send a link to it instead")
    return PromptImage(contents.mime_type or "", contents.blob)
