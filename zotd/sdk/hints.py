"""The shapes of type hints, and the parameters of functions.

Parameters are read from the code object: `inspect`, which would do it too, costs every extension about 10 ms at start.
"""

from __future__ import annotations

import functools
import sys
import types
import typing
from collections import abc
from collections.abc import Mapping
from enum import Enum
from typing import Annotated, Literal, Union

from .shapes import (
    ANYTHING,
    JSON_SCALARS,
    NULL,
    SCALARS,
    Field,
    Function,
    ObjectShape,
    Shape,
    accepts_null,
    again,
    array,
    choice,
    described,
    either,
    fixed_array,
    instance,
    table,
    unknown,
    whole_number_name,
)
from .written import written

VARARGS, VARKEYWORDS, COROUTINE = 0x04, 0x08, 0x80
"""Bits of `co_flags`, documented with the module `inspect`."""

UNIONS = (Union, getattr(types, "UnionType", Union))
"""`Union[X, Y]` and, from Python 3.10, `X | Y`."""
REQUIRED = getattr(typing, "Required", None)
NOT_REQUIRED = getattr(typing, "NotRequired", None)
"""Marks on the fields of a TypedDict, from Python 3.11."""

FREE = (object, typing.Any)
"""Hints with which an author says that anything will do."""

ARRAYS: Mapping[object, Function] = {
    list: list,
    set: set,
    frozenset: frozenset,
    abc.Sequence: list,
    abc.MutableSequence: list,
    abc.Collection: list,
    abc.Iterable: list,
    abc.Set: frozenset,
    abc.MutableSet: set,
}
"""What becomes of an array under each hint."""
TABLES = (dict, abc.Mapping, abc.MutableMapping)

NAME_CHARS = 80
"""Of a hint that is not known, in what is said about it."""


class _Unresolved:
    """A hint that is text and names nothing that there is."""

    def __init__(self, text: object) -> None:
        self.text = str(text)


def parameters(function: Function) -> ObjectShape:
    """The parameters of a function that is called with named arguments, in their order.

    Raises:
        TypeError: it takes `*args`, `**kwargs` or positional-only parameters, or is no Python function.
    """
    plain, bound = _unwrap(function)
    code = plain.__code__
    if code.co_flags & (VARARGS | VARKEYWORDS):
        raise TypeError(f"{plain.__name__}() takes *args or **kwargs, but a tool's parameters must each have a name")
    if code.co_posonlyargcount > bound:
        raise TypeError(f"{plain.__name__}() has positional-only parameters, but a tool is called with named arguments")
    positional = plain.__defaults__ or ()
    defaults = dict(zip(code.co_varnames[code.co_argcount - len(positional) : code.co_argcount], positional))
    defaults.update(plain.__kwdefaults__ or {})
    hints = getattr(plain, "__annotations__", {})
    return ObjectShape(
        [_parameter(name, hints.get(name, object), plain.__globals__, defaults) for name in parameter_names(function)]
    )


def parameter_names(function: Function) -> tuple[str, ...]:
    """The names of its parameters, `*args` and `**kwargs` left out.

    Raises:
        TypeError: it is no Python function.
    """
    plain, bound = _unwrap(function)
    code = plain.__code__
    return code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount]


def description(documented: object) -> str:
    """The docstring of a function or module, without the indentation of the source; empty if there is none."""
    first, *rest = (getattr(documented, "__doc__", None) or "").expandtabs().strip().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.rstrip(), *(line[margin:].rstrip() for line in rest)])


def is_coroutine_function(function: Function) -> bool:
    """Whether calling it gives a coroutine for certain; a plain function may still return an awaitable."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & COROUTINE)


def shape_of(hint: object) -> Shape:
    """What JSON a hint accepts; anything for a hint that is not known, which is then named in `undescribed`."""
    return _shape(hint, ())


def _unwrap(function: Function) -> tuple[types.FunctionType, int]:
    """The function as its author wrote it, and the number of its leading parameters that are already bound."""
    bound = 0
    while True:
        if isinstance(function, types.MethodType):
            function, bound = function.__func__, 1
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.FunctionType):
            return function, bound
        else:
            raise TypeError(f"{function!r} is no Python function; wrap it in one")


def _parameter(name: str, hint: object, names: Mapping[str, object], defaults: Mapping[str, object]) -> Field:
    shape = _shape(_evaluate(hint, names), ())
    if name not in defaults:
        return Field(name, shape, required=True)
    field = Field(name, shape, required=False, default=defaults[name])
    if defaults[name] is None and not accepts_null(shape):
        # `city: str = None`: a model that reads the default may well send it.
        return field._replace(shape=either([shape, NULL]))
    return field


def _evaluate(hint: object, names: Mapping[str, object]) -> object:
    """A hint with its forward references resolved; `_Unresolved`, which accepts anything, where that fails.

    One hint at a time, so that one that cannot be resolved (`X | None` as text on Python 3.9) spoils no other.
    """
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    try:
        return typing.get_type_hints(holder, dict(names), include_extras=True)["hint"]
    except Exception:  # noqa: BLE001  the text of a hint is foreign code and may raise anything
        return _Unresolved(hint)


def _shape(hint: object, inside: tuple[object, ...]) -> Shape:
    """`inside` are the records that are being read, so that one that contains itself ends."""
    if hint is None:
        return NULL
    if hint in FREE:
        return ANYTHING
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is Annotated:
        text = next((note for note in args[1:] if isinstance(note, str)), None)
        shape = _shape(args[0], inside)
        return shape if text is None else described(shape, text)
    if origin in UNIONS:
        return either([_shape(arg, inside) for arg in args])
    if origin is Literal:
        return choice([(arg.value if isinstance(arg, Enum) else arg, arg) for arg in args])
    if isinstance(hint, type) and origin is None:
        return _class_shape(hint, inside)
    # `NewType("Id", str)`, and `type Ids = list[int]` of Python 3.12
    meant = getattr(hint, "__supertype__", None) or getattr(hint, "__value__", None)
    return _generic_shape(hint, inside) if meant is None else _shape(meant, inside)


def _class_shape(hint: type, inside: tuple[object, ...]) -> Shape:
    shape = SCALARS.get(hint) or written(hint)
    if shape is not None:
        return shape
    if hint in ARRAYS or hint in TABLES or hint is tuple:
        return _generic_shape(hint, inside)
    if issubclass(hint, Enum):
        plain = all(type(member.value) in JSON_SCALARS for member in hint)
        return choice([(member.value if plain else member.name, member) for member in hint])
    if hint in inside:
        return again(lambda value, where: _shape(hint, ()).convert(value, where))
    return _record_shape(hint, (*inside, hint))


def _record_shape(hint: type, inside: tuple[object, ...]) -> Shape:
    if hasattr(hint, "__required_keys__"):
        return instance(ObjectShape(_typed_dict_fields(hint, inside)), make=dict)
    if hasattr(hint, "__dataclass_fields__"):
        return instance(ObjectShape(_dataclass_fields(hint, inside)), make=hint)
    if issubclass(hint, tuple) and hasattr(hint, "_field_defaults"):
        return instance(ObjectShape(_named_tuple_fields(hint, inside)), make=hint)
    if hasattr(hint, "__struct_encode_fields__"):
        names = dict(zip(hint.__struct_encode_fields__, getattr(hint, "__struct_fields__")))  # noqa: B009  for mypy
        make = functools.partial(_make_struct, hint, names)
        return instance(ObjectShape(_struct_fields(hint, inside)), make)
    return unknown(_name(hint))


def _generic_shape(hint: object, inside: tuple[object, ...]) -> Shape:
    origin, args = typing.get_origin(hint) or hint, typing.get_args(hint)
    if isinstance(origin, abc.Hashable) and origin in ARRAYS:
        return array(_shape(args[0], inside) if args else ANYTHING, make=ARRAYS[origin])
    if origin in TABLES:
        key, item = args or (str, object)
        return table(_shape(item, inside), whole_number_name() if key is int else _key_shape(key, inside))
    if origin is tuple:
        shapes = [_shape(arg, inside) for arg in args if arg is not Ellipsis]
        if not args or args[-1] is Ellipsis:
            return array(shapes[0] if shapes else ANYTHING, make=tuple)
        return fixed_array(shapes)
    return unknown(_name(hint))


def _key_shape(key: object, inside: tuple[object, ...]) -> Shape:
    """The names of an object are text, so that only what text can stand for may be a key."""
    shape = _shape(key, inside)
    return shape if shape is ANYTHING or shape.schema.get("type") == "string" else unknown(_name(key))


def _name(hint: object) -> str:
    """A hint as its author wrote it, or nearly so."""
    if isinstance(hint, _Unresolved):
        name = hint.text
    elif isinstance(hint, type) and typing.get_origin(hint) is None:
        name = (
            hint.__qualname__
            if hint.__module__ in {"builtins", "__main__"}
            else f"{hint.__module__}.{hint.__qualname__}"
        )
    else:
        name = repr(hint).replace("typing.", "")
    return name[:NAME_CHARS]


def _named_tuple_fields(hint: type, inside: tuple[object, ...]) -> list[Field]:
    hints, defaults = _class_hints(hint), getattr(hint, "_field_defaults")  # noqa: B009  for mypy
    return [
        Field(name, _shape(hints.get(name, object), inside), name not in defaults, defaults.get(name, ...))
        for name in getattr(hint, "_fields")  # noqa: B009  for mypy
    ]


def _struct_fields(hint: type, inside: tuple[object, ...]) -> list[Field]:
    """Of a `msgspec.Struct`, under the names that it has in JSON."""
    missing = sys.modules["msgspec"].NODEFAULT  # loaded, for somebody made a Struct
    hints, names = _class_hints(hint), list(getattr(hint, "__struct_fields__"))  # noqa: B009  for mypy
    defaults = list(getattr(hint, "__struct_defaults__"))  # noqa: B009  for mypy
    defaults = [missing] * (len(names) - len(defaults)) + defaults  # they are those of the last fields
    return [
        Field(
            written_as,
            _shape(hints.get(name, object), inside),
            required=default is missing,
            default=... if default is missing else default,
        )
        for written_as, name, default in zip(getattr(hint, "__struct_encode_fields__"), names, defaults)  # noqa: B009
    ]


def _make_struct(hint: Function, names: Mapping[str, str], /, **members: object) -> object:
    """`names`: the names of its fields by those that they have in JSON."""
    return hint(**{names[name]: value for name, value in members.items()})


def _typed_dict_fields(hint: type, inside: tuple[object, ...]) -> list[Field]:
    fields = []
    for name, member in _class_hints(hint).items():
        required = name in getattr(hint, "__required_keys__", ())
        # With `from __future__ import annotations` the marks are text when the class is made, and the keys are wrong.
        mark = typing.get_origin(member)
        if mark is not None and mark in {REQUIRED, NOT_REQUIRED}:
            required, member = mark is REQUIRED, typing.get_args(member)[0]  # noqa: PLW2901  the mark is taken off
        fields.append(Field(name, _shape(member, inside), required=required))
    return fields


def _dataclass_fields(hint: type, inside: tuple[object, ...]) -> list[Field]:
    dataclasses = sys.modules["dataclasses"]  # loaded, for somebody made a dataclass
    hints = _class_hints(hint)
    missing = dataclasses.MISSING
    return [
        Field(
            field.name,
            _shape(hints.get(field.name, object), inside),
            required=field.default is missing and field.default_factory is missing,
            default=... if field.default is missing else field.default,
        )
        for field in dataclasses.fields(hint)
        if field.init
    ]


def _class_hints(hint: type) -> dict[str, object]:
    """The hints of a class and its bases; of those that cannot be resolved, `object`."""
    hints: dict[str, object] = {}
    for base in reversed(hint.__mro__):
        names = {**vars(sys.modules.get(base.__module__, types)), **vars(base)}
        for name, text in vars(base).get("__annotations__", {}).items():
            hints[name] = _evaluate(text, names)
    return hints
