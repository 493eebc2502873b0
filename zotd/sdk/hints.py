"""Converts type hints to shapes, and reads the parameters of functions.

Parameters are read from the code object, because importing `inspect` would delay the start of every extension by 10 ms.
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
"""Hints that accept anything on purpose."""

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
"""Constructor of the value for each hint of an array."""
TABLES = (dict, abc.Mapping, abc.MutableMapping)

SUPPORTED = (
    "hints are str, int, float, bool, None, list, tuple, set, frozenset, dict, Path, date, time, datetime, timedelta, UUID, "
    "Decimal, Enum, Literal, TypedDict, NamedTuple, dataclasses, msgspec.Struct, unions and Annotated of these; "
    "object for anything"
)
"""What a message about another hint says."""

NAME_CHARS = 80
"""Longest excerpt of an unknown hint in a message."""


class _Unresolved:
    """A forward reference that cannot be resolved."""

    def __init__(self, text: object) -> None:
        self.text = str(text)


def parameters(function: Function) -> ObjectShape:
    """Return the parameters of a function that is called with named arguments, in their order.

    Raises:
        TypeError: the function takes `*args`, `**kwargs` or positional-only parameters, or is not a Python function.
    """
    plain, bound = _unwrap(function)
    code = plain.__code__
    if code.co_flags & (VARARGS | VARKEYWORDS):
        raise TypeError(f"{plain.__name__}() takes *args or **kwargs, but a tool's parameters must each have a name")
    if code.co_posonlyargcount > bound:
        raise TypeError(f"{plain.__name__}() has positional-only parameters, but a tool is called with named arguments")
    positional = plain.__defaults__ or ()
    # Positional defaults belong to the last parameters.
    defaults = dict(zip(code.co_varnames[code.co_argcount - len(positional) : code.co_argcount], positional))
    defaults.update(plain.__kwdefaults__ or {})
    hints = getattr(plain, "__annotations__", {})
    return ObjectShape(
        [_parameter(name, hints.get(name, object), plain.__globals__, defaults) for name in parameter_names(function)]
    )


def parameter_names(function: Function) -> tuple[str, ...]:
    """Return the names of a function's parameters without `*args` and `**kwargs`.

    Raises:
        TypeError: it is not a Python function.
    """
    plain, bound = _unwrap(function)
    code = plain.__code__
    return code.co_varnames[bound : code.co_argcount + code.co_kwonlyargcount]


def description(documented: object) -> str:
    """Return the docstring of a function or module without indentation; empty if there is none."""
    first, *rest = (getattr(documented, "__doc__", None) or "").expandtabs().strip().split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first.rstrip(), *(line[margin:].rstrip() for line in rest)])


def is_coroutine_function(function: Function) -> bool:
    """Return True if calling it always gives a coroutine. A plain function may still return an awaitable."""
    while isinstance(function, functools.partial):
        function = function.func
    function = getattr(function, "__func__", function)
    return bool(getattr(getattr(function, "__code__", None), "co_flags", 0) & COROUTINE)


def shape_of(hint: object) -> Shape:
    """Return the shape of a hint. An unknown hint accepts anything and is named in `undescribed`."""
    return _shape(hint, ())


def _unwrap(function: Function) -> tuple[types.FunctionType, int]:
    """Return the innermost function and the number of its leading parameters that are already bound."""
    bound = 0
    while True:
        if isinstance(function, types.MethodType):
            function, bound = function.__func__, 1
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, types.FunctionType):
            return function, bound
        else:
            raise TypeError(f"{function!r} is not a Python function; wrap it in one")


def _parameter(name: str, hint: object, names: Mapping[str, object], defaults: Mapping[str, object]) -> Field:
    shape = _shape(_evaluate(hint, names), ())
    if name not in defaults:
        return Field(name, shape, required=True)
    field = Field(name, shape, required=False, default=defaults[name])
    if defaults[name] is None and not accepts_null(shape):
        # `city: str = None`: a model that reads the default may send null.
        return field._replace(shape=either([shape, NULL]))
    return field


def _evaluate(hint: object, names: Mapping[str, object]) -> object:
    """Resolve the forward references of a hint; return `_Unresolved`, which accepts anything, if that fails.

    Hints are resolved one by one, so that a failure (`X | None` as text on Python 3.9) does not affect the others.
    """
    holder = types.SimpleNamespace(__annotations__={"hint": hint})
    try:
        return typing.get_type_hints(holder, dict(names), include_extras=True)["hint"]
    except Exception:  # noqa: BLE001  evaluating a hint runs foreign code, which may raise anything
        return _Unresolved(hint)


def _shape(hint: object, inside: tuple[object, ...]) -> Shape:
    """`inside` are the enclosing records, so that the description of a recursive one ends."""
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
        # Models see the values, which are usually the readable form. Other values have no JSON, so the names are
        # used.
        plain = all(type(member.value) in JSON_SCALARS for member in hint)
        return choice([(member.value if plain else member.name, member) for member in hint])
    if hint in inside:
        # A recursive class: the schema ends here, and values are converted when they are there.
        return again(lambda value, where: _shape(hint, ()).convert(value, where))
    return _record_shape(hint, (*inside, hint))


def _record_shape(hint: type, inside: tuple[object, ...]) -> Shape:
    # Kinds of records are recognised by their attributes: importing dataclasses or msgspec would cost start-up time.
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
    # Some typing objects are not hashable and cannot be looked up.
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
    """Return the shape of a key. JSON keys are text, so only types that are written as text are possible."""
    shape = _shape(key, inside)
    return shape if shape is ANYTHING or shape.schema.get("type") == "string" else unknown(_name(key))


def _name(hint: object) -> str:
    """Return a hint approximately as its author wrote it."""
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
    """Return the fields of a `msgspec.Struct` under their JSON names."""
    missing = sys.modules["msgspec"].NODEFAULT  # already loaded, because the class is a Struct
    hints, names = _class_hints(hint), list(getattr(hint, "__struct_fields__"))  # noqa: B009  for mypy
    defaults = list(getattr(hint, "__struct_defaults__"))  # noqa: B009  for mypy
    defaults = [missing] * (len(names) - len(defaults)) + defaults  # defaults belong to the last fields
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
    """Create a Struct; `names` maps JSON names to field names."""
    return hint(**{names[name]: value for name, value in members.items()})


def _typed_dict_fields(hint: type, inside: tuple[object, ...]) -> list[Field]:
    fields = []
    for name, member in _class_hints(hint).items():
        required = name in getattr(hint, "__required_keys__", ())
        # With `from __future__ import annotations` the marks are text when the class is created, so Python gets the
        # required keys wrong. The resolved marks are used instead.
        mark = typing.get_origin(member)
        if mark is not None and mark in {REQUIRED, NOT_REQUIRED}:
            required, member = mark is REQUIRED, typing.get_args(member)[0]  # noqa: PLW2901  the mark is taken off
        fields.append(Field(name, _shape(member, inside), required=required))
    return fields


def _dataclass_fields(hint: type, inside: tuple[object, ...]) -> list[Field]:
    dataclasses = sys.modules["dataclasses"]  # already loaded, because the class is a dataclass
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
    """Return the hints of a class and its bases; unresolved ones accept anything."""
    hints: dict[str, object] = {}
    for base in reversed(hint.__mro__):
        # Each base is resolved in the module that defines it.
        names = {**vars(sys.modules.get(base.__module__, types)), **vars(base)}
        for name, text in vars(base).get("__annotations__", {}).items():
            hints[name] = _evaluate(text, names)
    return hints
