"""The text of a .proto file, as some registries give it, made into the descriptor that Protobuf works by.

Read is what says how values are laid out. Options, services, extensions, reserved numbers and comments are passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import (
        DescriptorProto,
        EnumDescriptorProto,
        FieldDescriptorProto,
        FileDescriptorProto,
    )

_TOKEN = re.compile(
    r"""\s++|//[^\n]*+|/\*.*?\*/|(?P<token>"(?:[^"\\\n]|\\.)*+"|'(?:[^'\\\n]|\\.)*+'|[.\w]++|[^\s\w])""", re.DOTALL
)
_MAX_DEPTH = 30
_SCALARS = (
    *("double", "float", "int64", "uint64", "int32", "fixed64", "fixed32", "bool", "string", None, None, "bytes"),
    *("uint32", None, "sfixed32", "sfixed64", "sint32", "sint64"),
)
# Numbers of the types in a descriptor, from 1.
_TYPES = {name: number for number, name in enumerate(_SCALARS, 1) if name}
_LABELS = {"optional": 1, "required": 2, "repeated": 3}
_MESSAGE_TYPE = 11
_EDITION = "EDITION_"


class NotProto(ValueError):  # noqa: N818 - reads as the fact it states
    """The text is no .proto file, or has what is not read (a group)."""


def file_of_text(text: str, name: str) -> FileDescriptorProto:
    """Return the descriptor of a file that is imported as ``name``. Raises NotProto."""
    try:
        return _Parser(text).file(name)
    except (StopIteration, IndexError, ValueError, KeyError) as error:
        raise NotProto("no .proto file that can be read") from error


def _tokens(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None:
            raise NotProto("a character that belongs to nothing")
        position = found.end()
        if found["token"] is not None:
            yield found["token"]


class _Parser:
    """Reads tokens one by one, with one looked at ahead."""

    def __init__(self, text: str) -> None:
        self._tokens = [*_tokens(text), ""]
        self._at = 0

    def file(self, name: str) -> FileDescriptorProto:
        from google.protobuf.descriptor_pb2 import Edition, FileDescriptorProto

        found = FileDescriptorProto(name=name, syntax="proto2")
        while word := self._next():
            if word == "syntax":
                self._expect("=")
                found.syntax = self._string()
            elif word == "edition":
                self._expect("=")
                found.syntax, found.edition = "editions", Edition.Value(f"{_EDITION}{self._string()}")
            elif word == "package":
                found.package = self._next()
            elif word == "import":
                is_public = self._skip_if("public")
                self._skip_if("weak")
                if is_public:
                    found.public_dependency.append(len(found.dependency))
                found.dependency.append(self._string())
            elif word == "message":
                self._message(found.message_type.add(), found.syntax, 0)
                continue
            elif word == "enum":
                self._enum(found.enum_type.add())
                continue
            elif word != ";":
                self._skip()
                continue
            self._end(word)
        return found

    def _message(self, message: DescriptorProto, syntax: str, depth: int) -> None:
        if depth > _MAX_DEPTH:
            raise NotProto("messages in messages without end")
        message.name = self._next()
        self._expect("{")
        maps: list[DescriptorProto] = []
        while (word := self._next()) != "}":
            if word == "message":
                self._message(message.nested_type.add(), syntax, depth + 1)
            elif word == "enum":
                self._enum(message.enum_type.add())
            elif word == "oneof":
                self._oneof(message)
            elif word in ("option", "extensions", "reserved", "extend") and self._peek() not in ("=", "{"):
                self._skip()
            elif word == "map" and self._peek() == "<":
                maps.append(self._map(message))
            elif word != ";":
                self._field(message.field.add(), word)
        self._name_optional_fields(message, syntax)
        # Behind the messages that the file names, which are counted to say which one a value holds.
        message.nested_type.extend(maps)

    def _field(self, field: FieldDescriptorProto, word: str, *, in_oneof: bool = False) -> None:
        if word in _LABELS and not in_oneof:
            # A label that the syntax takes away from later, where it only says that a field may be absent.
            field.label, field.proto3_optional = _label(word), word == "optional"
            word = self._next()
        else:
            field.label = _label("optional")
        if word == "group":
            raise NotProto("a group")
        if word in _TYPES:
            field.type = _type(_TYPES[word])
        else:
            field.type_name = word
        field.name = self._next()
        self._expect("=")
        field.number = int(self._next(), 0)
        self._end("field")

    def _oneof(self, message: DescriptorProto) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._next())
        self._expect("{")
        while (word := self._next()) != "}":
            if word == "option":
                self._skip()
            elif word != ";":
                field = message.field.add(oneof_index=index)
                self._field(field, word, in_oneof=True)

    def _map(self, message: DescriptorProto) -> DescriptorProto:
        from google.protobuf.descriptor_pb2 import DescriptorProto

        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        field = message.field.add(name=self._next(), label=_label("repeated"), type=_type(_MESSAGE_TYPE))
        self._expect("=")
        field.number = int(self._next(), 0)
        self._end("field")
        entry = DescriptorProto(name="".join(part.capitalize() for part in field.name.split("_")) + "Entry")
        field.type_name = entry.name
        entry.options.map_entry = True
        for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
            inner = entry.field.add(name=name, number=number, label=_label("optional"))
            if kind in _TYPES:
                inner.type = _type(_TYPES[kind])
            else:
                inner.type_name = kind
        return entry

    def _enum(self, enum: EnumDescriptorProto) -> None:
        enum.name = self._next()
        self._expect("{")
        while (word := self._next()) != "}":
            if word in ("option", "reserved") and self._peek() != "=":
                self._skip()
            elif word != ";":
                self._expect("=")
                sign = -1 if self._skip_if("-") else 1
                enum.value.add(name=word, number=sign * int(self._next(), 0))
                self._end("value")
        enum.options.allow_alias = len({value.number for value in enum.value}) < len(enum.value)

    @staticmethod
    def _name_optional_fields(message: DescriptorProto, syntax: str) -> None:
        """In the syntax proto3 a field that is optional is known by a choice of its own, behind all others."""
        for field in message.field:
            if field.proto3_optional and syntax == "proto3":
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")
            else:
                field.ClearField("proto3_optional")

    def _peek(self) -> str:
        return self._tokens[self._at]

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _skip_if(self, token: str) -> bool:
        found = self._peek() == token
        self._at += found
        return found

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise NotProto(f"no {token} where there has to be one")

    def _string(self) -> str:
        token = self._next()
        if token[:1] not in ('"', "'"):
            raise NotProto("no string where there has to be one")
        return token[1:-1]

    def _end(self, word: str) -> None:
        """To the semicolon, over options in brackets."""
        if word != ";":
            self._skip()

    def _skip(self) -> None:
        """Over a statement, or a block, whichever ends first."""
        depth = 0
        while token := self._next():
            depth += (token in ("{", "[")) - (token in ("}", "]"))
            if depth == 0 and token in (";", "}"):
                return
        raise NotProto("a statement without an end")


def _label(word: str) -> FieldDescriptorProto.Label.ValueType:
    return cast("FieldDescriptorProto.Label.ValueType", _LABELS[word])


def _type(number: int) -> FieldDescriptorProto.Type.ValueType:
    return cast("FieldDescriptorProto.Type.ValueType", number)
