"""Which statements of a loop's turns an instruction belongs to, and which variables are whose: `Places`.

In: the parsed file and its module, and loops (`kesco.ir.deferred`). Out: parts by instruction, variables by their
places in the text. Apart from what is watched because nothing is executed here.

No variable is in a register: the IR is that which clang prints, so each one is an ``alloca``, whose life begins at the
place of its name in the text. What has no place, and is in a loop, may belong to each of its statements.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kesco.analysis.host.graphs import Graph
from kesco.analysis.host.orders import Part
from kesco.analysis.host_regions.texts import Texts
from kesco.ir.deferred import AROUND, Turn
from kesco.llvm.values import Function, Instruction, Local, Symbol, callee
from kesco.source import Span

TAIL, CLOSE = -2, -3
"""In the place of a statement's number: those behind what is kept; the end of the body, where its objects end."""
_ACTS = ("load", "store", "call", "invoke")
_CALLERS = ("__func__.", "__FUNCTION__.", "__PRETTY_FUNCTION__.")


@dataclass(slots=True)
class Variables:
    """The variables of a loop's function, by their names in the IR.

    `known` by where they are declared; `inner` are those of the kept part, `ending` those that are gone behind a turn,
    or behind the loop.
    """

    known: dict[int, str] = field(default_factory=dict)
    inner: set[str] = field(default_factory=set)
    ending: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Places:
    """Answers for some loops; `covered` are the parts that have code, `why` what speaks against keeping a part."""

    texts: Texts
    turns: Sequence[Turn]
    graph: Callable[[Function], Graph]
    covered: set[Part] = field(default_factory=set)
    why: dict[int, str] = field(default_factory=dict)
    functions: dict[int, str] = field(default_factory=dict)  # of each loop
    variables: list[Variables] = field(default_factory=list)
    _unplaced: dict[int, frozenset[Part]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.variables = [Variables() for _ in self.turns]
        for name in self.texts.module.defined():
            function = self.texts.module.function(name)
            text = self.texts.function(function) if function is not None else None
            mine = [n for n, one in enumerate(self.turns) if text is not None and self._has(text.span.start, one)]
            if function is not None and mine:
                self._place(function, mine)

    def _has(self, begin: int, turn: Turn) -> bool:
        """Whether the innermost function around a loop begins there."""
        around = [f.span.start for f in self.texts.program.functions if f.here and _is_inside(turn.whole.start, f.span)]
        return bool(around) and max(around) == begin

    def _place(self, function: Function, mine: list[int]) -> None:
        """Find the parts of a function's instructions, and its variables."""
        every = frozenset(Part(n, at) for n in mine for at in range(CLOSE, self.turns[n].kept + 1))
        graph, slots = self.graph(function), _slots(function)
        for n in mine:
            self.functions[n] = function.name
        for block in function.blocks:
            for one in block.instructions:
                offset = self.texts.offset(one.place)
                parts = self._at(offset)
                self.covered |= parts
                acts = one.opcode in ("call", "invoke") or _address(one) not in slots
                if acts and one.opcode in _ACTS and offset < 0 and graph.inside.get(block.name):
                    self._unplaced[id(one)] = every
                self._speaks_against(one, parts, entry=block is function.blocks[0])
                if callee(one).startswith("llvm.lifetime"):
                    for n in mine:
                        self._lives(n, one, offset)

    def _speaks_against(self, one: Instruction, parts: frozenset[Part], *, entry: bool) -> None:
        for n in {part.expression for part in parts if part.argument == self.turns[part.expression].kept}:
            if one.opcode == "alloca" and not entry:
                self.why[n] = "what is kept has memory of its function's"
            if any(isinstance(v, Symbol) and v.name.startswith(_CALLERS) for v in one.operands):
                self.why[n] = "what is kept names the function that it is in"

    def _lives(self, number: int, one: Instruction, offset: int) -> None:
        """The life of a variable begins there, or ends."""
        found, turn = self.variables[number], self.turns[number]
        names = {v.name for v in one.operands if isinstance(v, Local)}
        begins, (start, end) = ".start" in callee(one), turn.part
        if begins:  # where several begin, as in one declaration or macro, it is not known which one has which name
            name = next(iter(names), "")
            found.known[offset] = name if found.known.get(offset, name) == name else ""
            found.inner |= names if start <= offset < end else set()
        elif turn.whole.start <= offset <= turn.whole.end:
            found.ending |= names

    def parts_at(self, instruction: Instruction) -> frozenset[Part]:
        """Those that an instruction is in by its own place."""
        return self._unplaced.get(id(instruction)) or self._at(self.texts.offset(instruction.place))

    def _at(self, offset: int) -> frozenset[Part]:
        return frozenset(
            Part(n, number)
            for n, turn in enumerate(self.turns)
            if turn.whole.start <= offset <= turn.whole.end and (number := _statement(turn, offset)) is not None
        )


def _is_inside(offset: int, span: Span) -> bool:
    return span.start <= offset < span.end


def _statement(turn: Turn, offset: int) -> int | None:
    """The statement at an offset; None for one that is kept by itself."""
    if not turn.begin < offset < turn.end:
        return CLOSE if offset == turn.end else AROUND
    if offset > turn.part[1]:
        by_itself = turn.statements[turn.last : turn.beyond]
        return None if by_itself and by_itself[0].start <= offset <= by_itself[-1].end else TAIL
    found = bisect_right([one.start for one in turn.statements], offset) - 1
    return min(found, turn.kept) if found >= 0 else AROUND


def _slots(function: Function) -> set[str]:
    """What the compiler keeps in memory for itself, such as where control goes behind the end of a scope."""
    every = [one for block in function.blocks for one in block.instructions]
    made = {one.result.name for one in every if one.opcode == "alloca" and one.result is not None}
    lives = {
        v.name for one in every if callee(one).startswith("llvm.lifetime") for v in one.operands if isinstance(v, Local)
    }
    given = {one.value.name for one in function.parameters}
    stored = {_address(one) for one in every if one.opcode == "store" and _name(one.operands[0]) in given}
    return made - lives - stored


def _name(value: object) -> str:
    return value.name if isinstance(value, Local) else ""


def _address(one: Instruction) -> str:
    """The name of the variable that an instruction loads or stores."""
    return _name(one.operands[-1]) if one.opcode == "store" else _name(one.operands[0]) if one.operands else ""
