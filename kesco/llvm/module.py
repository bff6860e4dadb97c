"""The text of a module → its functions and variables, read when they are first asked for.

In: text as LLVM prints it (`canonical`). Out: a `Module`. One reader for both sides of a program. What a large module
costs is a walk over its lines: a function's body is read when somebody reaches it, metadata when a place is asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kesco.llvm.instructions import blocks_of
from kesco.llvm.locations import Locations, Place
from kesco.llvm.names import NAME, bare
from kesco.llvm.reading import Cursor, Unreadable
from kesco.llvm.types import Layouts, Type
from kesco.llvm.values import Function, Head, Variable

_NAMED = re.compile(rf"[^@\n]*{NAME}\(")
_SYMBOL = re.compile(r'@("[^"]*"|[-\w.$]+)')
_GROUP = re.compile(r"attributes (#\d+) = \{ (.*) \}")
_ATTRIBUTE = re.compile(r'"[^"]*"(?:="[^"]*")?|[\w]+(?:\([^)]*\))?')
_LAYOUT = re.compile(r'target datalayout = "([^"]*)"')
_NODE = re.compile(r"!(\d+) = (.*)")


class Module:
    """A module that is read as far as it is asked about; see the module's docstring."""

    def __init__(self, text: str) -> None:
        lines = self._lines = text.splitlines()
        self._heads: dict[str, int] = {}  # a function's name → the line that its head is on
        self._ends: dict[str, int] = {}  # of those with a body, the line behind it
        self._variables: dict[str, int] = {}
        self._groups: dict[str, tuple[str, ...]] = {}
        self._nodes: dict[int, str] = {}
        structs: dict[str, int] = {}
        layout = ""
        at = 0
        while at < len(lines):
            line = lines[at]
            first = line[:1]
            if first == "d" and (found := _NAMED.match(line)) is not None:
                name = bare(found[1])
                self._heads[name] = at
                if line.startswith("define"):
                    while lines[at] != "}":
                        at += 1
                    self._ends[name] = at
            elif first == "@":
                self._variables[bare(line[1 : line.index(" = ")])] = at
            elif first == "%":
                structs[bare(line[1 : line.index(" = ")])] = at
            elif first == "a" and (group := _GROUP.match(line)) is not None:
                self._groups[group[1]] = tuple(_ATTRIBUTE.findall(group[2]))
            elif first == "!" and (node := _NODE.match(line)) is not None:
                self._nodes[int(node[1])] = node[2]
            elif first == "t" and (spec := _LAYOUT.match(line)) is not None:
                layout = spec[1]
            at += 1
        self.layouts = Layouts(layout, {name: _struct(lines[line]) for name, line in structs.items()})
        self._locations = Locations(self._nodes)
        self._functions: dict[str, Function | None] = {}
        self._read_heads: dict[str, Head] = {}
        self._read_variables: dict[str, Variable] = {}

    # ---- functions

    def names(self) -> Iterator[str]:
        """Every function that is defined or declared."""
        return iter(self._heads)

    def defined(self) -> Iterator[str]:
        """Every function with a body."""
        return iter(self._ends)

    def weak(self) -> frozenset[str]:
        """Functions and variables that may not be there: their address may be null."""
        every = {**self._heads, **self._variables}
        return frozenset(name for name, line in every.items() if " extern_weak " in self._lines[line])

    def has_body(self, name: str) -> bool:
        """Whether the function's body is here."""
        return name in self._ends

    def head(self, name: str) -> Head | None:
        """What a function's first line says; None if there is no such function."""
        if name not in self._heads:
            return None
        if name not in self._read_heads:
            self._read_heads[name] = Cursor(self._lines[self._heads[name]]).head(self._groups)
        return self._read_heads[name]

    def function(self, name: str) -> Function | None:
        """The function of that name if it has a body here."""
        if name not in self._functions:
            self._functions[name] = self._read(name) if name in self._ends else None
        return self._functions[name]

    def body(self, name: str) -> list[str]:
        """The lines of a function's body, for a question that its text answers."""
        return self._lines[self._heads[name] + 1 : self._ends[name]]

    def mentioned(self, name: str) -> tuple[str, ...]:
        """The functions and variables that a function's body or a variable's line names, without reading it."""
        if name in self._ends:
            lines = self.body(name)
        elif name in self._variables:
            lines = [self._lines[self._variables[name]].partition(" = ")[2]]
        else:
            return ()
        found = dict.fromkeys(bare(one) for line in lines if "@" in line for one in _SYMBOL.findall(line))
        return tuple(one for one in found if one in self._heads or one in self._variables)

    def _read(self, name: str) -> Function:
        head = self.head(name)
        assert head is not None
        entry = str(sum(one.value.name.isdigit() for one in head.parameters))
        return Function(head, blocks_of(self.body(name), entry, self._groups, self.layouts))

    # ---- variables, places

    def variables(self) -> Iterator[str]:
        """Every global variable and alias."""
        return iter(self._variables)

    def variable(self, name: str) -> Variable | None:
        """The global variable or alias of that name, or None."""
        if name not in self._variables:
            return None
        if name not in self._read_variables:
            self._read_variables[name] = Cursor(self._lines[self._variables[name]]).variable()
        return self._read_variables[name]

    def is_unnamed(self, name: str) -> bool:
        """Whether the address of a function or variable means nothing: it may be at the place of an equal one."""
        head, variable = self.head(name), self.variable(name)
        words = head.attributes if head is not None else variable.words if variable is not None else ()
        return "unnamed_addr" in words

    def place(self, number: int) -> Place | None:
        """The place that a ``!dbg`` names."""
        return self._locations.place(number)

    def node(self, number: int) -> str:
        """The text of a numbered metadata node."""
        return self._nodes.get(number, "")


def _struct(line: str) -> Type:
    text = line.split(" = type ", 1)[1]
    if text == "opaque":
        return Type("struct")
    try:
        return Cursor(text).type()
    except Unreadable:
        return Type("other", name=text)
