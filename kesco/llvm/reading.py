"""LLVM's text, token by token → values. In: a line, as LLVM prints it. Out: a type, a value, a head, a variable.

Apart from `instructions` because these are what every line is made of. Attributes and flags are not listed: a word
that begins neither a type nor a value is one. So a word of the next LLVM is read like those of this one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeVar

from kesco.llvm.names import bare
from kesco.llvm.types import FLOATS, POINTER, VOID, Type
from kesco.llvm.values import (
    Aggregate,
    Assembly,
    Attribute,
    Bytes,
    Expression,
    Head,
    Integer,
    Literal,
    Local,
    Parameter,
    Symbol,
    Unread,
    Value,
    Variable,
)

_TOKEN = re.compile(
    r'c"[^"]*"|[%@$]"[^"]*"|[%@$][-\w.$]+|!"[^"]*"|![\w.]+|"[^"]*"|;.*|\.\.\.|\#\d+|-?\d+\.\d+(?:e[+-]\d+)?|-?\d\w*'
    r"|[A-Za-z_][\w.]*|[(){}\[\]<>,=*|:!]"
)
_INTEGER = re.compile(r"i\d+")
_NUMBER = re.compile(r"-?\d+")
_ESCAPE = re.compile(rb"\\([0-9A-Fa-f]{2}|\\)")
_TYPES = frozenset((*FLOATS, "void", "ptr", "label", "token", "metadata", "x86_amx", "target"))
CASTS = frozenset("trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint ptrtoaddr inttoptr bitcast"
                   " addrspacecast".split())  # fmt: skip
_COMPUTED = CASTS | frozenset(
    "getelementptr add sub mul xor shl and or extractelement insertelement shufflevector".split()
)
_WORDS = frozenset("null undef poison zeroinitializer none".split())
_VALUES = (
    _COMPUTED | _WORDS | frozenset("true false splat asm blockaddress dso_local_equivalent no_cfi ptrauth".split())
)
_WITH_TYPE = frozenset("byval sret byref inalloca preallocated elementtype".split())
_KINDS = ("global", "constant", "alias", "ifunc")
_ATTACHED = re.compile(r"((?:, ![\w.]+ !\d+)+)$")
_ATTACHMENT = re.compile(r", !([\w.]+) !(\d+)")
_T = TypeVar("_T")


class Unreadable(ValueError):
    """A spelling that is not known here."""


class Cursor:
    """Reads the tokens of one line."""

    def __init__(self, text: str) -> None:
        self.metadata: tuple[tuple[str, int], ...] = ()
        attached = _ATTACHED.search(text)
        if attached is not None:
            self.metadata = tuple((name, int(n)) for name, n in _ATTACHMENT.findall(attached[1]))
            text = text[: attached.start()]
        self._tokens = _TOKEN.findall(text)
        self._at = 0

    def peek(self, ahead: int = 0) -> str:
        """The next token, or nothing."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else ""

    def take(self) -> str:
        """The next token, which is then behind."""
        self._at += 1
        try:
            return str(self._tokens[self._at - 1])
        except IndexError:
            raise Unreadable("the line ends early") from None

    def eat(self, token: str) -> bool:
        """Whether the next token is this one, which is then behind."""
        if self.peek() != token:
            return False
        self._at += 1
        return True

    def expect(self, token: str) -> None:
        """Go behind this token."""
        if not self.eat(token):
            raise Unreadable(f"'{self.peek()}' where '{token}' should be")

    def between(self) -> str:
        """The text in parentheses that begin here."""
        depth, first = 0, self._at
        while True:
            token = self.take()
            depth += (token == "(") - (token == ")")
            if not depth:
                return " ".join(self._tokens[first + 1 : self._at - 1])

    def words(self) -> tuple[str, ...]:
        """Words up to where a type or a value begins; what they have in parentheses is left out."""
        found = []
        while (token := self.peek()) and (token[0].isalpha() or token[0] in '_#"') and not _begins(token):
            self._at += 1
            found.append(token)
            if token[0] == '"' and self.eat("="):
                self._at += 1
            elif self.peek() == "(":
                self.between()
            elif token in ("align", "cc") and _NUMBER.fullmatch(self.peek()):
                self._at += 1
        return tuple(found)

    def attributes(self) -> tuple[Attribute, ...]:
        """What is promised of the argument or parameter that comes next."""
        if not self.peek()[:1].isalpha() and self.peek()[:1] not in '"#':
            return ()
        found = []
        while (token := self.peek()) and (token[0].isalpha() or token[0] in '"#') and token not in _VALUES:
            if token.startswith('c"'):
                break
            self._at += 1
            if token[0] == '"':
                if self.eat("="):
                    self._at += 1
            elif token in _WITH_TYPE and self.eat("("):
                found.append(Attribute(token, self.type()))
                self.expect(")")
            elif self.peek() == "(":
                found.append(Attribute(token, text=self.between()))
            else:
                if token == "align":
                    self._at += 1
                found.append(Attribute(token))
        return tuple(found)

    # ---- types

    def type(self) -> Type:
        """The type that begins here."""
        token = self.take()
        if token == "ptr":
            found = POINTER
            if self.eat("addrspace"):
                found = Type("ptr", int(self.between()))
        elif _INTEGER.fullmatch(token):
            found = Type("int", int(token[1:]))
        elif token[0] == "%":
            found = Type("named", name=bare(token[1:]))
        elif token == "[":
            found = self._sequence("array", "]")
        elif token == "<":
            if self.eat("{"):
                found = Type("packed", parts=self._list("}", self.type))
                self.expect(">")
            else:
                if self.eat("vscale"):
                    self.expect("x")
                found = self._sequence("vector", ">")
        elif token == "{":
            found = Type("struct", parts=self._list("}", self.type))
        elif token == "void":
            found = VOID
        elif token in FLOATS:
            found = FLOATS[token]
        elif token == "target":
            found = Type("other", name=self.between())
        elif token in _TYPES:
            found = Type("other", name=token)
        else:
            raise Unreadable(f"'{token}' is no type")
        while self.peek() == "(":
            self._at += 1
            variadic = False
            parts = [found]
            while not self.eat(")"):
                if self.eat("..."):
                    variadic = True
                else:
                    parts.append(self.type())
                self.eat(",")
            found = Type("function", int(variadic), parts=tuple(parts))
        return found

    def _sequence(self, kind: str, end: str) -> Type:
        count = int(self.take())
        self.expect("x")
        element = self.type()
        self.expect(end)
        return Type(kind, count, parts=(element,))

    def _list(self, end: str, one: Callable[[], _T]) -> tuple[_T, ...]:
        found = []
        while not self.eat(end):
            found.append(one())
            self.eat(",")
        return tuple(found)

    # ---- values

    def typed(self) -> Value:
        """A type and the value behind it."""
        type_ = self.type()
        self.attributes()
        return self.value(type_)

    def value(self, type_: Type) -> Value:
        """The value of that type that begins here."""
        token = self.take()
        first = token[0]
        if first == "%":
            return Local(bare(token[1:]), type_)
        if first == "@":
            return Symbol(bare(token[1:]), type_)
        if type_.kind == "int" and _NUMBER.fullmatch(token):
            return Integer(int(token), type_)
        if token in ("true", "false"):
            return Integer(int(token == "true"), type_)
        if token.startswith('c"'):
            return Bytes(_unescaped(token[2:-1]), type_)
        if token in ("[", "{"):
            return Aggregate(self._list("]" if token == "[" else "}", self.typed), type_)
        if token == "<":
            if self.eat("{"):
                parts = self._list("}", self.typed)
                self.expect(">")
                return Aggregate(parts, type_)
            return Aggregate(self._list(">", self.typed), type_)
        if token == "splat":
            self.expect("(")
            element = self.typed()
            self.expect(")")
            return Aggregate((element,) * min(type_.number, 64), type_)
        if token in _COMPUTED:
            return self._expression(token, type_)
        if token == "asm":
            return self._assembly(type_)
        if token in _WORDS or first.isdigit() or first == "-":
            return Literal(token, type_)
        if self.peek() == "(":
            return Unread(f"{token}({self.between()})", type_)
        return Unread(token, type_)

    def _expression(self, op: str, type_: Type) -> Expression:
        while not self.eat("("):
            if self.take() == "inrange":
                self.between()
        source = None
        if op == "getelementptr":
            source = self.type()
            self.expect(",")
        operands = [self.typed()]
        while self.eat(","):
            operands.append(self.typed())
        if self.eat("to"):
            self.type()
        self.expect(")")
        return Expression(op, tuple(operands), type_, source)

    def _assembly(self, type_: Type) -> Assembly:
        parts = ["asm"]
        while self.peek() and self.peek() != "(":
            parts.append(self.take())
        return Assembly(" ".join(parts).replace(" , ", ", "), type_)

    # ---- lines

    def head(self, groups: Mapping[str, tuple[str, ...]]) -> Head:
        """What ``define`` or ``declare`` says; `groups` are the numbered attributes."""
        self.take()
        metadata: list[tuple[str, int]] = []
        while self.peek()[:1] == "!":  # a declaration has them here
            metadata.append((self.take()[1:], int(self.take()[1:])))
        words = self.words()
        returns = self.type()
        name = bare(self.take()[1:])
        self.expect("(")
        parameters: list[Parameter] = []
        unnamed, variadic = 0, False
        while not self.eat(")"):
            if self.eat("..."):
                variadic = True
                continue
            type_ = self.type()
            attributes = self.attributes()
            own = bare(self.take()[1:]) if self.peek()[:1] == "%" else str(unnamed)
            unnamed += own.isdigit()
            parameters.append(Parameter(Local(own, type_), attributes))
            self.eat(",")
        attributes_: list[str] = []
        while (token := self.peek()) and token != "{":
            self.take()
            if token[0] == "#":
                attributes_ += groups.get(token, ())
            elif token[0] == "!":
                metadata.append((token[1:], int(self.take()[1:])))
            elif token[0].isalpha():
                attributes_.append(token)
        return Head(name, words, returns, tuple(parameters), variadic, tuple(attributes_), tuple(metadata))

    def variable(self) -> Variable:
        """What a line such as ``@x = internal global i32 0`` says."""
        name = bare(self.take()[1:])
        self.expect("=")
        words: list[str] = []
        space = 0
        while (token := self.peek()) and token not in _KINDS:
            self.take()
            words.append(token)
            if self.peek() == "(":
                inside = self.between()
                space = int(inside) if token == "addrspace" and inside.isdigit() else space
        kind = self.take()
        type_ = self.type()
        if kind in ("alias", "ifunc"):
            self.expect(",")
            return Variable(name, kind, tuple(words), space, type_, self.typed())
        unseen = "external" in words or "extern_weak" in words
        return Variable(name, kind, tuple(words), space, type_, None if unseen else self.value(type_))


def _begins(token: str) -> bool:
    return token in _TYPES or token in _VALUES or _INTEGER.fullmatch(token) is not None


def _unescaped(text: str) -> bytes:
    return _ESCAPE.sub(
        lambda m: b"\\" if m[1] == b"\\" else bytes([int(m[1], 16)]), text.encode("utf-8", "surrogateescape")
    )
