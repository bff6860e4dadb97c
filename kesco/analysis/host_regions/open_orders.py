"""Where in the text the parts of expressions stand that may be evaluated in any order: `OpenOrders`.

In: the parsed file and its module; whether parts met on the paths that were walked (`host.orders`). Out: which parts an
instruction belongs to, and why the file cannot be followed, if two parts met. C++ leaves open in which order arguments
are evaluated: clang has one, the host's compiler may have another.

Some things the paths do not show, and then the text decides: 1. what a part assigns, as the variable may be in a
register; 2. calls without a place of their own in the IR (all that a macro expands to has that of its invocation);
3. destructors of temporary objects of two parts, which run behind both, the last one that was made first.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from operator import itemgetter
from typing import NamedTuple

from kesco.analysis.host.orders import Orders, Part
from kesco.analysis.host_regions.quiet import Quiet
from kesco.analysis.host_regions.refusing import Open, open_orders
from kesco.analysis.host_regions.texts import Texts
from kesco.ir import program as ir
from kesco.llvm.values import Function, Instruction, Local, callee
from kesco.source import Span

_WHY = "the order in which parts of an expression are evaluated is open, and matters"
_DESTRUCTOR = re.compile(r"D[0-2]Ev$")
_Code = tuple[int, Function, Instruction]
"""An instruction, the function that it is in, and its offset in the text."""
_OF_THE_LIBRARY = re.compile(r"_ZN[KVRO]*(?:S[a-z]|9__gnu_cxx)")


class _Place(NamedTuple):
    """Where a part may be: `core` is what it certainly takes of the text, around which others of it may stand.

    What belongs to the expression itself, at `its_own`, is none of its parts'.
    """

    start: int
    end: int
    its_own: int
    core: tuple[int, int] | None

    def has(self, offset: int) -> bool:
        return self.start <= offset < self.end and offset != self.its_own


@dataclass(slots=True)
class OpenOrders:
    """Answers for one file."""

    texts: Texts
    _parts: dict[Span, list[tuple[_Place, Part]]] = field(default_factory=dict)  # by the whole expression
    _lines: list[str] = field(default_factory=list)  # of each expression
    _unseen: str = ""  # the first one that the paths do not show

    def find(self, quiet: Quiet) -> None:
        """Look for such expressions, and for their parts."""
        every: list[_Code] | None = None
        for one in open_orders(self.texts.program, quiet):
            if every is None:
                every = self.texts.code()
            whole, line = one.node.span, ""
            code: list[_Code] = []
            if whole is not None and one.inside.path == self.texts.program.path:
                line = f" (line {whole.line})"
                first, last = (bisect_left(every, at, key=itemgetter(0)) for at in (whole.start, whole.end + 1))
                code = every[first:last]
                if not code and not self.texts.has_code(every, whole):
                    continue  # no code of the host's is made of it
            places = self._places(one) if code else []
            if places and self._are_shown(one.parts, places, code):
                parts = [(where, Part(len(self._lines), at)) for at, where in enumerate(places)]
                assert whole is not None
                self._parts.setdefault(whole, []).extend(parts)
                self._lines.append(line)
            elif one.matters:
                self._unseen = self._unseen or _WHY + line

    def orders(self) -> Orders:
        """What is to be told of the paths."""
        return Orders(self._parts_at) if self._parts else Orders()

    def why(self, orders: Orders) -> str:
        """Why the order matters, or an empty text."""
        met = min(orders.met(), default=None)
        return self._unseen or ("" if met is None else _WHY + self._lines[met])

    def _parts_at(self, at: Instruction) -> frozenset[Part]:
        offset = self.texts.offset(at.place)
        around = (parts for whole, parts in self._parts.items() if whole.start <= offset <= whole.end)
        return frozenset(part for parts in around for where, part in parts if where.has(offset))

    def _places(self, one: Open) -> list[_Place]:
        """Where each part may stand: up to the others, as names of members have no place in the text of their own."""
        whole = one.node.span
        cores = [_core(part) for part in one.parts]
        known = [core for core in cores if core is not None]
        if whole is None or not known or any(a[1] > b[0] for a, b in pairwise(known)):
            return []
        first = self.texts.program.text.find(b"(", whole.start) if isinstance(one.node, ir.Call) else whole.start
        its_own = -1
        if isinstance(one.node, ir.Call) and one.node.name.rpartition("::")[2].startswith("operator"):
            symbol = one.node.name.rpartition("operator")[2].encode()
            its_own = self.texts.program.text.find(symbol, known[0][1], known[-1][0])
            first = whole.start
        found: list[_Place] = []
        for at, core in enumerate(cores):
            before = [one[1] for one in cores[:at] if one is not None]
            behind = [one[0] for one in cores[at + 1 :] if one is not None]
            start = before[-1] if before else core[0] if core is not None else first
            found.append(_Place(start, behind[0] if behind else whole.end + 1, its_own, core))
        return found

    def _are_shown(self, parts: tuple[ir.Expr, ...], places: list[_Place], code: list[_Code]) -> bool:
        """Whether the paths show all that parts do to each other."""
        calls = [offset for offset, _, one in code if one.opcode in ("call", "invoke")]
        for part, where in zip(parts, places, strict=True):
            nodes = list(ir.walk(part))
            if any(isinstance(n, ir.Assign) for n in nodes):
                return False
            acts = any(isinstance(n, (ir.Call, ir.New, ir.Launch)) and not _is_copy(n) for n in nodes)
            if acts and not any(map(where.has, calls)):
                return False
        bodies = {one.name: one for _, one, _ in code}
        return len({where for body in bodies.values() for where in self._makes(body, places)}) < 2

    def _makes(self, body: Function, places: list[_Place]) -> Iterator[_Place]:
        """The parts that make an object whose destructor is the program's, or leads to one."""
        code = [one for block in body.blocks for one in block.instructions]
        own = {one.operands[0] for one in code if self._is_destructor(callee(one)) and one.operands}
        made: set[str] = set()
        for one in code if own else ():
            for operand in one.operands:
                if operand in own and isinstance(operand, Local) and operand.name not in made:
                    made.add(operand.name)
                    offset = self.texts.offset(one.place)
                    yield from (where for where in places if where.has(offset))

    def _is_destructor(self, name: str) -> bool:
        """Whether a function is a destructor of the program's, or one of the library's for classes with such."""
        if _DESTRUCTOR.search(name) is None:
            return False
        if _OF_THE_LIBRARY.match(name) is None:
            return True
        records = (one for one in self.texts.program.records.values() if one.destructor and not one.standard)
        mine = (one.name.rpartition("::")[2].partition("<")[0] for one in records)
        return any(f"{len(one)}{one}" in name for one in mine)


def _is_copy(node: ir.Expr | ir.Stmt) -> bool:
    """Whether it is a constructor that the compiler wrote, of which there may be no call."""
    return isinstance(node, ir.Call) and node.constructs and node.implicit


def _core(part: ir.Expr) -> tuple[int, int] | None:
    """What a part certainly takes of the text; None where nothing in it has a place, as in a constant."""
    spans = [span for n in ir.walk(part) if (span := getattr(n, "span", None)) is not None]
    return (min(one.start for one in spans), max(one.end for one in spans)) if spans else None
