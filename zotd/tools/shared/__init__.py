"""Code shared by several tools, which do not import each other."""

from zotd.tools.shared.builtin import (
    TEXT_BYTES,
    TEXT_LINES,
    BuiltinTool,
    ToolError,
    in_thread,
    text_outcome,
)
from zotd.tools.shared.edit_checks import content_before, errors_after
from zotd.tools.shared.editor import UNSAVED, unsaved, write_through
from zotd.tools.shared.files import (
    check_root,
    is_hidden,
    is_secret,
    locate,
    open_regular,
    replace_file,
    resolve,
    shown_path,
)
from zotd.tools.shared.globs import BadGlobError, glob_matcher
from zotd.tools.shared.running import RunningCommand
from zotd.tools.shared.tree import DirectoryWalk, repository_of

__all__ = [
    "TEXT_BYTES",
    "TEXT_LINES",
    "UNSAVED",
    "BadGlobError",
    "BuiltinTool",
    "DirectoryWalk",
    "RunningCommand",
    "ToolError",
    "check_root",
    "content_before",
    "errors_after",
    "glob_matcher",
    "in_thread",
    "is_hidden",
    "is_secret",
    "locate",
    "open_regular",
    "replace_file",
    "repository_of",
    "resolve",
    "shown_path",
    "text_outcome",
    "unsaved",
    "write_through",
]
