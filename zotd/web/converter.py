"""A program that turns one page into text: the page on standard input, the text on standard output.

Its own process, because a page can make any parser slow, large or wrong. It reads nothing but the page, and limits itself.

exit 0  the text is on standard output
     3  the library that is needed is not installed
     4  the page cannot be converted
"""

import contextlib
import resource
import sys

MEMORY_BYTES = 1_500_000_000
CPU_S = 20

MISSING, FAILED = 3, 4


def main() -> int:
    """Convert; `sys.argv` has the kind of page (`html`, `pdf`), its character set and its URL."""
    _, kind, charset, url = sys.argv
    for what, limit in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_CORE, 0)):
        with contextlib.suppress(ValueError, OSError):  # a limit of the user's own is lower, or macOS has it not
            resource.setrlimit(what, (limit, limit))
    data = sys.stdin.buffer.read()
    try:
        text = _from_html(decoded(data, charset), url) if kind == "html" else _from_pdf(data)
    except ImportError:
        return MISSING
    except Exception as error:  # noqa: BLE001  (whatever a page does to a library)
        sys.stdout.write(f"{type(error).__name__}: {str(error)[:200]}")
        return FAILED
    sys.stdout.buffer.write(text.encode(errors="replace"))
    return 0


def decoded(data: bytes, charset: str) -> str:
    """Return text; what is no character becomes U+FFFD, and an unknown character set is UTF-8."""
    try:
        return data.decode(charset or "utf-8", errors="replace")
    except (LookupError, UnicodeError, ValueError):
        return data.decode("utf-8", errors="replace")


def _from_html(text: str, url: str) -> str:
    from html_to_markdown import ConversionOptions, convert  # noqa: PLC0415  (an extra)

    options = ConversionOptions(
        compact_tables=True,
        extract_metadata=False,
        hidden_content="drop",  # what no person sees is not for the model either
        inline_data_media="alt_text_only",
        base_url=url,
    )
    return convert(text, options).content or ""


def _from_pdf(data: bytes) -> str:
    from io import BytesIO  # noqa: PLC0415

    from pypdf import PdfReader  # noqa: PLC0415  (an extra)

    reader = PdfReader(BytesIO(data))
    return "\n\n".join(
        f"[page {number} of {len(reader.pages)}]\n\n{page.extract_text()}"
        for number, page in enumerate(reader.pages, 1)
    )


if __name__ == "__main__":
    sys.exit(main())
