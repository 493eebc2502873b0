"""Makes an example of each frame from its Struct: one with what must be there, and one with every field."""

import enum
import inspect
from collections.abc import Iterator, Mapping

import msgspec
from msgspec import inspect as types

TEXTS = {
    "args_digest": "9f86d081884c7d65",
    "cwd": "/home/ann/shop",
    "data": "iVBORw0KGgo=",
    "mime_type": "image/png",
    "model": "claude-sonnet-5-5",
    "path": "/home/ann/shop/notes.txt",
    "provider": "anthropic",
    "request_id": "6f1c0e2a",
    "session": "s_1",
    "session_id": "s_1",
    "time": "2026-01-31T13:45:00Z",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}
"""Texts for fields with these names; other fields say their own name."""

SCALARS: Mapping[type[types.Type], object] = {types.BoolType: True, types.IntType: 7, types.FloatType: 2.5}

DATA: object = {"city": "Köln\u2028", "days": [1, 2.5, None, True]}
"""What stands where any JSON may."""


def least(kind: type[msgspec.Struct]) -> dict[str, object]:
    """The fields that a frame of this kind must have."""
    return {field.encode_name: _value(field.type, field.encode_name) for field in _fields(kind) if field.required}


def every_field(kind: type[msgspec.Struct]) -> dict[str, object]:
    """All fields that it may have."""
    return {field.encode_name: _value(field.type, field.encode_name) for field in _fields(kind)}


def described(kind: type[msgspec.Struct]) -> str:
    """What a frame of this kind means: the first sentence of its description."""
    paragraph = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    return paragraph.partition(". ")[0].rstrip(".") + "."


def _fields(kind: type[msgspec.Struct]) -> tuple[types.Field, ...]:
    info = types.type_info(kind)
    assert isinstance(info, types.StructType)
    return info.fields


def _value(kind: types.Type, name: str) -> object:
    match kind:
        case types.StrType():
            return TEXTS.get(name, name.replace("_", " "))
        case types.BoolType() | types.IntType() | types.FloatType():
            return SCALARS[type(kind)]
        case types.EnumType():
            first: enum.Enum = next(iter(kind.cls))
            return first.value
        case types.LiteralType():
            return kind.values[0]
        case types.DictType():
            return {str(_value(kind.key_type, "key")): _value(kind.value_type, "value")}
        case types.ListType() | types.VarTupleType() | types.SetType():
            return list(_each(kind.item_type, name))
        case types.TupleType():
            return [_value(item, name) for item in kind.item_types]
        case types.UnionType():
            return next(_each(kind, name))
        case types.StructType():
            tag = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
            return {**tag, **{field.encode_name: _value(field.type, field.encode_name) for field in kind.fields}}
        case _:
            return DATA


def _each(kind: types.Type, name: str) -> Iterator[object]:
    """One value of each kind that may stand here."""
    options = kind.types if isinstance(kind, types.UnionType) else (kind,)
    for option in options:
        if not isinstance(option, types.NoneType):
            yield _value(option, name)
