"""Where in the text the parts of expressions stand that may be evaluated in any order: `OpenOrders`.

In: the parsed file and its module; whether parts met on the paths that were walked (`host.orders`). Out: which parts an
instruction belongs to, and why the file cannot be followed, if two parts met. C++ leaves open in which order arguments
are evaluated: clang has one, the host's compiler may have another.

The IR says whether a part changes anything. Some things the paths do not show, and then the text decides: 1. what a
part assigns, as the variable may be in a register; 2. calls without a place of their own in the IR (all that a macro
expands to has that of its invocation); 3. default arguments, which stand elsewhere.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import accumulate, pairwise
from operator import itemgetter
from typing import NamedTuple

from kesco.analysis.evaluation_order import drawn, runs_defaults
from kesco.analysis.host.orders import Orders, Part, Site
from kesco.analysis.host_regions.quiet import Quiet
from kesco.analysis.host_regions.refusing import Open, OrdersOfText, assigns
from kesco.analysis.host_regions.texts import Texts
from kesco.ir import program as ir
from kesco.llvm.values import Function, Instruction, Local, callee
from kesco.source import Span

_WHY = "the order in which parts of an expression are evaluated is open, and matters"
_DESTRUCTOR = re.compile(r"D[0-2]Ev$")
_Code = tuple[int, Function, Instruction]
"""An instruction, the function that it is in, and its offset in the text."""
_BLOCK = 256  # bytes of the text
_FIXED = (ir.Constant, ir.Literal, ir.FunctionName, ir.Cast, ir.Decay, ir.AddressOf)
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
    _near: dict[int, list[Span]] = field(default_factory=dict)  # the expressions around a place of the text, roughly
    _ends: dict[int, frozenset[Part]] = field(default_factory=dict)  # of each destructor's call, whose object it ends
    _lines: list[str] = field(default_factory=list)  # of each expression
    _drawn: dict[Part, object] = field(default_factory=dict)  # what parts call that do no more
    _loose: dict[int, set[Site]] = field(default_factory=dict)  # objects of which nothing is told, by expression
    _unseen: str = ""  # the first one that the paths do not show

    def find(self, quiet: Quiet) -> None:
        """Look for such expressions, and for their parts."""
        program, said = self.texts.program, OrdersOfText(self.texts.program, quiet)
        every = self.texts.code()
        hidden = list(accumulate((quiet.hides(one) for _, _, one in every), initial=0))
        if said.expands_calls():
            self._unseen = _WHY
        for one in said.every():
            whole = one.node.span
            if said.acts_unseen(one):
                self._unseen = self._unseen or _WHY
            if whole is None or one.inside.path != program.path:
                self._as_said(one, said)
                continue
            first, last = (bisect_left(every, at, key=itemgetter(0)) for at in (whole.start, whole.end + 1))
            if first == last:
                if self.texts.has_code(every, whole):  # else no code of the host's is made of it
                    self._as_said(one, said)
            elif (
                hidden[first] < hidden[last]
                or any(assigns(n) or runs_defaults(n) for a in one.parts for n in ir.walk(a))
                or said.changes(one) is not None
            ):
                self._with_code(one, whole, every[first:last], said)

    def _with_code(self, one: Open, whole: Span, code: list[_Code], said: OrdersOfText) -> None:
        places = self._places(one)
        if not places or not self._are_shown(one.parts, places, code):
            self._as_said(one, said)
            return
        stores = [sum(where.has(offset) and _goes_out(body, e) for offset, body, e in code) for where in places]
        some = any(assigns(n) for a in one.parts for n in ir.walk(a))
        changes = said.changes(one) is not None
        if some and said.meet_by_name(one, stores):
            self._unseen = self._unseen or f"{_WHY} (line {whole.line})"
            return
        parts = [(where, Part(len(self._lines), at)) for at, where in enumerate(places)]
        ends = self._destructors({id(body): body for _, body, _ in code}.values(), whole, parts)
        hidden = {
            at for at, where in enumerate(places) for offset, _, e in code if said.quiet.hides(e) and where.has(offset)
        }
        if not (changes or hidden or len(set(ends.values())) > 1):
            return
        if said.has_more(one):
            self._unseen = self._unseen or f"{_WHY} (line {whole.line})"
        if whole not in self._parts:
            for block in range(whole.start // _BLOCK, whole.end // _BLOCK + 1):
                self._near.setdefault(block, []).append(whole)
        self._parts.setdefault(whole, []).extend(parts)
        self._drawn |= {part: drawn(text) for (_, part), text in zip(parts, one.parts, strict=True)}
        self._lines.append(f" (line {whole.line})")
        for number, mine in ends.items():
            self._ends[number] = self._ends.get(number, frozenset()) | mine

    def _as_said(self, one: Open, said: OrdersOfText) -> None:
        """The paths do not show what the parts do to each other."""
        if said.matters(one) or (said.has_more(one) and said.changes(one) is not None):
            here = one.node.span is not None and one.inside.path == self.texts.program.path
            line = f" (line {one.node.span.line})" if here and one.node.span is not None else ""
            self._unseen = self._unseen or _WHY + line

    def orders(self) -> Orders:
        """What is to be told of the paths."""
        return Orders(self._parts_at, drawn=self._drawn, loose=self._loose) if self._parts else Orders()

    def loosens(self, orders: Orders) -> bool:
        """Whether no part meets another where nothing is told of some more objects."""
        found = orders.meeting() if not self._unseen else None
        more = {one: sites - self._loose.get(one, set()) for one, sites in (found or {}).items()}
        for one, sites in more.items():
            self._loose.setdefault(one, set()).update(sites)
        return bool(more) and all(more.values())

    def why(self, orders: Orders) -> str:
        """Why the order matters, or an empty text."""
        met = min(orders.met(), default=None)
        return self._unseen or ("" if met is None else _WHY + self._lines[met])

    def _parts_at(self, at: Instruction) -> frozenset[Part]:
        offset = self.texts.offset(at.place)
        around = (one for one in self._near.get(offset // _BLOCK, ()) if one.start <= offset <= one.end)
        found = frozenset(part for one in around for where, part in self._parts[one] if where.has(offset))
        return found | self._ends.get(id(at), frozenset())

    def _places(self, one: Open) -> list[_Place]:
        """Where each part may stand: up to the others, as names of members have no place in the text of their own."""
        whole = one.node.span
        cores = [_core(part) for part in one.parts]
        known = [core for core in cores if core is not None]
        if whole is None or not known or any(a[1] > b[0] for a, b in pairwise(known)):
            return []
        if isinstance(one.node, ir.Assign):
            return (
                [_Place(*known[0], -1, cores[0]), _Place(known[-1][0], whole.end + 1, -1, cores[1])]
                if all(cores)
                else []
            )
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
            if core is None and all(isinstance(n, _FIXED) for n in ir.walk(one.parts[at])):
                found.append(_Place(0, 0, -1, None))  # what code is made of it is the same in any order
                continue
            start = before[-1] if before else core[0] if core is not None else first
            found.append(_Place(start, behind[0] if behind else whole.end + 1, its_own, core))
        return found

    def _are_shown(self, parts: tuple[ir.Expr, ...], places: list[_Place], code: list[_Code]) -> bool:
        """Whether all that parts call stands in them: what a macro expands to has its invocation's place."""
        calls = [offset for offset, _, one in code if one.opcode in ("call", "invoke")]
        for part, where in zip(parts, places, strict=True):
            nodes = list(ir.walk(part))
            if any(map(runs_defaults, nodes)):
                return False
            acts = any(isinstance(n, (ir.Call, ir.New, ir.Launch)) and not _is_copy(n) for n in nodes)
            if acts and not any(map(where.has, calls)):
                return False
        return True

    def _destructors(
        self, bodies: Iterable[Function], whole: Span, parts: list[tuple[_Place, Part]]
    ) -> dict[int, frozenset[Part]]:
        """The ends of temporary objects, each with the part that makes it: the last one that was made ends first."""
        found: dict[int, frozenset[Part]] = {}
        for body in bodies:
            code = [one for block in body.blocks for one in block.instructions]
            ends: dict[str, list[Instruction]] = {}
            uses: dict[str, list[int]] = {}
            for one in code:
                first = one.operands[0] if one.operands else None
                if isinstance(first, Local) and self._is_destructor(callee(one)):
                    ends.setdefault(first.name, []).append(one)
            for one in code if ends else ():
                if not callee(one).startswith(("llvm.lifetime", "llvm.dbg")) and not self._is_destructor(callee(one)):
                    offset = self.texts.offset(one.place)
                    for name in {each.name for each in one.operands if isinstance(each, Local)} & set(ends):
                        uses.setdefault(name, []).append(offset)
            for name, offsets in uses.items():
                mine = frozenset(part for where, part in parts if any(map(where.has, offsets)))
                temporary = all(whole.start <= offset <= whole.end for offset in offsets if offset >= 0)
                found |= {id(end): mine for end in ends[name] if mine and temporary}
        return found

    def _is_destructor(self, name: str) -> bool:
        """Whether a function is a destructor of the program's, or one of the library's for classes with such."""
        if _DESTRUCTOR.search(name) is None:
            return False
        if _OF_THE_LIBRARY.match(name) is None:
            return True
        records = (one for one in self.texts.program.records.values() if one.destructor and not one.standard)
        mine = (one.name.rpartition("::")[2].partition("<")[0] for one in records)
        return any(f"{len(one)}{one}" in name for one in mine)


def _goes_out(body: Function, one: Instruction) -> bool:
    """Whether it stores to memory that is neither a variable of its function nor made there."""
    if one.opcode != "store":
        return False
    made = {e.result.name: e for block in body.blocks for e in block.instructions if e.result is not None}
    pointer: object = one.operands[-1]
    while isinstance(pointer, Local) and pointer.name in made:
        source = made[pointer.name]
        if source.opcode not in ("getelementptr", "bitcast"):
            return source.opcode != "alloca" and not callee(source).startswith(("_Zn", "malloc", "calloc"))
        pointer = source.operands[0]
    return True


def _is_copy(node: ir.Expr | ir.Stmt) -> bool:
    """Whether it is a constructor that the compiler wrote, of which there may be no call."""
    return isinstance(node, ir.Call) and node.constructs and node.implicit


def _core(part: ir.Expr) -> tuple[int, int] | None:
    """What a part certainly takes of the text; None where nothing in it has a place, as in a constant."""
    spans = [span for n in ir.walk(part) if (span := getattr(n, "span", None)) is not None]
    return (min(one.start for one in spans), max(one.end for one in spans)) if spans else None
