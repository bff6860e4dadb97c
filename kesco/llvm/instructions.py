"""The lines of a function's body → blocks of instructions. In: lines, as LLVM prints them. Out: `Block`s.

An opcode without an entry here is read as its name alone, without operands, and with `UNREAD` among its words:
whoever meets one must expect anything.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from kesco.llvm.names import bare
from kesco.llvm.reading import CASTS, Cursor, Unreadable
from kesco.llvm.types import BIT, POINTER, VOID, Layouts, Type
from kesco.llvm.values import UNREAD, Attribute, Block, Instruction, Local, Value

_LABEL = re.compile(r'("[^"]*"|[-\w.$]+):')
_PLAIN = frozenset(
    "add sub mul sdiv udiv srem urem shl lshr ashr and or xor fadd fsub fmul fdiv frem fneg freeze".split()
)


def blocks_of(
    lines: Sequence[str], entry: str, groups: Mapping[str, tuple[str, ...]], layouts: Layouts
) -> tuple[Block, ...]:
    """The blocks of a body; `entry` is what the first one is called where it has no label."""
    found: list[Block] = []
    name, body = entry, list[Instruction]()
    for line in _joined(lines):
        if line[0] != " ":
            label = _LABEL.match(line)
            if label is None:
                raise Unreadable(f"'{line}' is no label")
            if body:
                found.append(Block(name, tuple(body)))
            name, body = bare(label[1]), []
        else:
            body.append(_Line(Cursor(line), groups, layouts).instruction())
    return (*found, Block(name, tuple(body)))


def _joined(lines: Iterable[str]) -> Iterable[str]:
    """One line for each label and instruction."""
    parts: list[str] = []
    for line in lines:
        stripped = line.strip()
        if not stripped or stripped[0] == ";" or stripped.startswith("#dbg_"):
            continue
        if line.startswith(("   ", "  ]")) and parts:
            parts.append(stripped)
            continue
        if parts:
            yield " ".join(parts)
        parts = [line.rstrip()]
    if parts:
        yield " ".join(parts)


@dataclass(slots=True)
class _Line:
    """Reads one instruction."""

    cursor: Cursor
    groups: Mapping[str, tuple[str, ...]]
    layouts: Layouts
    name: str = ""

    def instruction(self) -> Instruction:
        cursor = self.cursor
        if cursor.peek(1) == "=":
            self.name = bare(cursor.take()[1:])
            cursor.take()
        opcode = cursor.take()
        tail: tuple[str, ...] = ()
        while opcode in ("tail", "musttail", "notail"):
            tail, opcode = (*tail, opcode), cursor.take()
        try:
            if opcode in _PLAIN:
                words = cursor.words()
                operands = self._operands_of_one_type(cursor.type())
                return self._made(opcode, operands[0].type, operands, words)
            if opcode in CASTS:
                words = cursor.words()
                operand = cursor.typed()
                cursor.expect("to")
                return self._made(opcode, cursor.type(), (operand,), words)
            read = _READERS.get(opcode)
            if read is not None:
                return read(self, opcode, tail)
        except (Unreadable, ValueError):
            pass
        return self._made(opcode, VOID if not self.name else Type("other"), (), (UNREAD,))

    def _made(
        self,
        opcode: str,
        type_: Type,
        operands: tuple[Value, ...],
        words: tuple[str, ...] = (),
        about: Type | None = None,
        indices: tuple[int, ...] = (),
        targets: tuple[str, ...] = (),
        attributes: tuple[tuple[Attribute, ...], ...] = (),
        promised: tuple[str, ...] = (),
    ) -> Instruction:
        result = Local(self.name, type_) if self.name else None
        metadata = self.cursor.metadata
        return Instruction(
            opcode, result, type_, operands, words, about, indices, targets, attributes, promised, metadata
        )

    def _operands_of_one_type(self, type_: Type) -> tuple[Value, ...]:
        operands = [self.cursor.value(type_)]
        while self.cursor.eat(","):
            operands.append(self.cursor.value(type_))
        return tuple(operands)

    def _operands(self) -> tuple[Value, ...]:
        """Values with their types, up to what is no such thing."""
        found = [self.cursor.typed()]
        while self.cursor.eat(","):
            if self.cursor.peek() in ("align", "addrspace"):
                break
            found.append(self.cursor.typed())
        return tuple(found)

    def _label(self) -> str:
        self.cursor.expect("label")
        return bare(self.cursor.take()[1:])

    def _numbers(self) -> tuple[int, ...]:
        found = []
        while self.cursor.eat(","):
            found.append(int(self.cursor.take()))
        return tuple(found)

    # ---- one kind of instruction each

    def alloca(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        about = self.cursor.type()
        count: tuple[Value, ...] = ()
        if self.cursor.eat(",") and self.cursor.peek() not in ("align", "addrspace"):
            count = (self.cursor.typed(),)
        return self._made(opcode, POINTER, count, words, about)

    def load(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        type_ = self.cursor.type()
        self.cursor.expect(",")
        return self._made(opcode, type_, (self.cursor.typed(),), words)

    def store(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        return self._made(opcode, VOID, self._operands(), words)

    def getelementptr(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        about = self.cursor.type()
        self.cursor.expect(",")
        operands = self._operands()
        vector = next((o.type for o in operands if o.type.kind == "vector"), None)
        type_ = Type("vector", vector.number, parts=(POINTER,)) if vector else operands[0].type
        return self._made(opcode, type_, operands, words, about)

    def compare(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        operands = self._operands_of_one_type(self.cursor.type())
        compared = operands[0].type
        type_ = Type("vector", compared.number, parts=(BIT,)) if compared.kind == "vector" else BIT
        return self._made(opcode, type_, operands, words)

    def select(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        operands = self._operands()
        return self._made(opcode, operands[1].type, operands, words)

    def phi(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        type_ = self.cursor.type()
        operands, targets = [], []
        while self.cursor.eat("["):
            operands.append(self.cursor.value(type_))
            self.cursor.expect(",")
            targets.append(bare(self.cursor.take()[1:]))
            self.cursor.expect("]")
            self.cursor.eat(",")
        return self._made(opcode, type_, tuple(operands), words, targets=tuple(targets))

    def br(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        if self.cursor.peek() == "label":
            return self._made(opcode, VOID, (), targets=(self._label(),))
        condition = self.cursor.typed()
        self.cursor.expect(",")
        first = self._label()
        self.cursor.expect(",")
        return self._made(opcode, VOID, (condition,), targets=(first, self._label()))

    def switch(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        value = self.cursor.typed()
        self.cursor.expect(",")
        targets, cases = [self._label()], []
        self.cursor.expect("[")
        while not self.cursor.eat("]"):
            self.cursor.type()
            cases.append(int(self.cursor.take()))
            self.cursor.expect(",")
            targets.append(self._label())
        return self._made(opcode, VOID, (value,), indices=tuple(cases), targets=tuple(targets))

    def indirectbr(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        value = self.cursor.typed()
        self.cursor.expect(",")
        self.cursor.expect("[")
        targets = []
        while not self.cursor.eat("]"):
            targets.append(self._label())
            self.cursor.eat(",")
        return self._made(opcode, VOID, (value,), targets=tuple(targets))

    def ret(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        void = self.cursor.peek() == "void"
        return self._made(opcode, VOID, () if void else (self.cursor.typed(),))

    def nothing(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        return self._made(opcode, VOID, ())

    def landingpad(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        type_, clauses = self.cursor.type(), []
        while token := self.cursor.peek():
            clauses += [token] if token in ("cleanup", "catch", "filter") else []
            self.cursor.take()
        return self._made(opcode, type_, (), tuple(clauses))

    def resume(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        return self._made(opcode, VOID, (self.cursor.typed(),))

    def extractvalue(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        whole = self.cursor.typed()
        indices = self._numbers()
        type_ = whole.type
        for index in indices:
            type_ = self.layouts.element(type_, index)
        return self._made(opcode, type_, (whole,), indices=indices)

    def insertvalue(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        whole = self.cursor.typed()
        self.cursor.expect(",")
        part = self.cursor.typed()
        return self._made(opcode, whole.type, (whole, part), indices=self._numbers())

    def extractelement(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        operands = self._operands()
        return self._made(opcode, operands[0].type.parts[0], operands)

    def insertelement(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        operands = self._operands()
        return self._made(opcode, operands[0].type, operands)

    def shufflevector(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        operands = self._operands()
        return self._made(opcode, Type("vector", operands[2].type.number, parts=operands[0].type.parts), operands)

    def atomic(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        words = self.cursor.words()
        if self.cursor.peek() != "ptr":  # what it does, where constants are computed by that name, too
            words += (self.cursor.take(),)
        operands = self._operands()
        type_ = operands[1].type
        if opcode == "cmpxchg":
            type_ = Type("struct", parts=(type_, BIT))
        return self._made(opcode, type_, operands, words)

    def va_arg(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        operand = self.cursor.typed()
        self.cursor.expect(",")
        return self._made(opcode, self.cursor.type(), (operand,))

    def call(self, opcode: str, tail: tuple[str, ...]) -> Instruction:
        cursor = self.cursor
        words = tail + cursor.words()
        about = cursor.type()
        returns = about.parts[0] if about.kind == "function" else about
        called = cursor.value(POINTER)
        cursor.expect("(")
        operands, attributes = [], []
        while not cursor.eat(")"):
            type_ = cursor.type()
            attributes.append(cursor.attributes())
            operands.append(cursor.value(type_))
            cursor.eat(",")
        promised: list[str] = []
        while (token := cursor.peek()) and (token[0] == "#" or (token[0].isalpha() and token != "to")):
            promised += self.groups.get(cursor.take(), (token,))
        if cursor.peek() == "[":  # operand bundles
            while cursor.peek() not in ("", "to"):
                cursor.take()
        targets: tuple[str, ...] = ()
        if opcode == "invoke":
            cursor.expect("to")
            normal = self._label()
            cursor.expect("unwind")
            targets = (normal, self._label())
        all_ = (*operands, called)
        return self._made(opcode, returns, all_, words, about, (), targets, tuple(attributes), tuple(promised))


_READERS: dict[str, Callable[[_Line, str, tuple[str, ...]], Instruction]] = {
    "alloca": _Line.alloca, "load": _Line.load, "store": _Line.store, "getelementptr": _Line.getelementptr,
    "icmp": _Line.compare, "fcmp": _Line.compare, "select": _Line.select, "phi": _Line.phi, "br": _Line.br,
    "switch": _Line.switch, "indirectbr": _Line.indirectbr, "ret": _Line.ret, "unreachable": _Line.nothing,
    "fence": _Line.nothing, "landingpad": _Line.landingpad, "resume": _Line.resume, "atomicrmw": _Line.atomic,
    "cmpxchg": _Line.atomic, "extractvalue": _Line.extractvalue, "insertvalue": _Line.insertvalue,
    "extractelement": _Line.extractelement, "insertelement": _Line.insertelement,
    "shufflevector": _Line.shufflevector, "va_arg": _Line.va_arg, "call": _Line.call, "invoke": _Line.call,
}  # fmt: skip
