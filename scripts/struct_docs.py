"""What the sources say about the Structs of `zotd.wire`: docstrings of classes and of fields."""

import ast
import inspect
import textwrap

import msgspec

Struct = type[msgspec.Struct]


def doc(kind: Struct) -> str:
    """The docstring of a shape, as one paragraph."""
    return " ".join(inspect.cleandoc(kind.__doc__ or "").split())


def field_docs(kind: Struct) -> dict[str, str]:
    """The string literals below the fields of a shape: Python forgets them, its parser does not."""
    body = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    assert isinstance(body, ast.ClassDef)
    notes: dict[str, str] = {}
    for field, note in zip(body.body, body.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(note, ast.Expr):
            notes[ast.unparse(field.target)] = " ".join(str(ast.literal_eval(note.value)).split())
    return notes
