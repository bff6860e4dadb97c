"""Between which bounds an integer of a kernel lies, as polynomials over its arguments and its launch's dimensions.

In: a function's control flow (`device_flow`), a value and a block where it is used. Out: lower and upper *bounds*, each
with the conditions under which it holds. A file of its own because it is all the arithmetic there is, and arithmetic
that may wrap around is where such an analysis goes wrong.

1. A value is looked at as signed and as unsigned, apart. The two agree where it is known not to be negative.
2. An instruction that says ``nsw`` or ``nuw`` does not wrap around in that sense, or the program has no meaning. One
   that does not say so gives bounds under the *condition* that its result fits, which the host side must show for each
   launch; where plain numbers show it there is no condition.
3. A comparison that dominates the use is a bound, whatever its operands went through before.
4. A loop's counter is bounded by induction: below by where it starts if its step is not negative, above by the test
   that lets the loop go on.

It refuses everything else: no bound means anything the type holds. ``freeze`` hides what was promised about its
operand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from kesco.analysis.device_bounds import (
    Bound,
    Range,
    all_reach,
    best,
    fitting,
    hull,
    joined,
    not_negative,
    product,
)
from kesco.analysis.device_flow import MIRRORED, Fact, Flow, Node
from kesco.ir.effects import argument, dimension
from kesco.ir.poly import Poly, constant, of
from kesco.llvm.types import BIT
from kesco.llvm.values import Integer, Local, Value, callee

Where = tuple[str] | tuple[str, str]  # a block, or an edge between two
_WORK = 4000  # evaluations for one question
_SREG = re.compile(r"llvm\.nvvm\.read\.ptx\.sreg\.(tid|ntid|ctaid|nctaid)\.([xyz])")
_CALLED = re.compile(r"llvm\.(smin|smax|umin|umax)\.i\d+")
_SIGNED = {"slt": True, "sle": True, "sgt": True, "sge": True, "ult": False, "ule": False, "ugt": False, "uge": False}


class OutOfWork(Exception):
    """A question that takes too long has no answer."""


class Ranges:
    """Answers for one function."""

    def __init__(self, flow: Flow, arguments: dict[Value, tuple[int, int]]) -> None:
        """`arguments`: each integer argument → its index and its width in bits."""
        self._flow, self._arguments = flow, arguments
        self._work = 0
        self._assumed: dict[tuple[Value, bool], Range] = {}
        self._open: set[tuple[Value, bool]] = set()
        self._telling: set[tuple[Value, bool]] = set()
        self._known: dict[tuple[Value, Where, bool], Range] = {}
        self._cuts = 0

    def of(self, value: Value, block: str) -> Range:
        """The bounds of a value as a signed integer where it is used in a block; raises `OutOfWork`."""
        self._work = _WORK
        return self._range(value, (block,), True)

    def _facts(self, where: Where) -> tuple[Fact, ...]:
        return self._flow.facts(*where) if len(where) == 1 else self._flow.facts_on_edge(*where)

    # ---- one value --------------------------------------------------------------------------------------------------

    def _range(self, value: Value, where: Where, signed: bool) -> Range:
        self._work -= 1
        if self._work < 0:
            raise OutOfWork
        bits = _bits(value)
        if not bits:
            return Range()
        if not isinstance(value, Local):
            return _constant(value, bits, signed)
        key = value, where, signed
        known = self._known.get(key)
        if known is not None:
            return known
        cuts = self._cuts
        result = self._seen(value, where, signed)
        if not result.lows or not result.highs or self._is_compared(value, where, not signed):
            result = joined(result, self._seen(value, where, not signed), bits, signed)
        if not signed:
            result = Range(best((*result.lows, Bound(Poly()))), result.highs)
        if cuts == self._cuts:  # nothing was left out, or taken for granted, that another question would not
            self._known[key] = result
        return result

    def _seen(self, value: Value, where: Where, signed: bool) -> Range:
        """What the instruction itself and the facts about it say."""
        key = value, signed
        told: list[tuple[bool, Bound]] = []
        if key in self._open or key in self._assumed:
            self._cuts += 1
            made = self._assumed.get(key, Range())
        else:
            self._open.add(key)
            try:
                made = self._made(value, where, signed)
            finally:
                self._open.discard(key)
        if key in self._telling:
            self._cuts += 1
        else:
            self._telling.add(key)
            try:
                told = list(self._told(value, where, signed))
            finally:
                self._telling.discard(key)
        lows = (*made.lows, *(b for low, b in told if low))
        highs = (*made.highs, *(b for low, b in told if not low))
        return Range(best(lows), best(highs, -1))

    def _is_compared(self, value: Value, where: Where, signed: bool) -> bool:
        return any(
            _SIGNED.get(fact.relation) is signed and value in (fact.left, fact.right) for fact in self._facts(where)
        )

    def _told(self, value: Value, where: Where, signed: bool) -> Iterator[tuple[bool, Bound]]:
        """Bounds from comparisons: whether it is a lower one, and the bound."""
        for fact in self._facts(where):
            relation, other = fact.relation, fact.right
            if fact.left != value:
                if fact.right != value:
                    continue
                relation, other = MIRRORED[fact.relation], fact.left
            if relation == "ne" or (relation != "eq" and _SIGNED[relation] is not signed):
                continue
            there = self._range(other, where, signed)
            step = constant(0 if relation == "eq" or relation[1:] in ("le", "ge") else 1)
            if relation == "eq" or relation[1] == "l":
                yield from ((False, bound.plus(step.times(-1))) for bound in there.highs)
            if relation == "eq" or relation[1] == "g":
                yield from ((True, bound.plus(step)) for bound in there.lows)

    def _made(self, value: Value, where: Where, signed: bool) -> Range:
        bits = _bits(value)
        if value in self._arguments:
            index, width = self._arguments[value]
            exact = (Bound(of(argument(index, width, signed))),)
            return Range(exact, exact)
        node = self._flow.nodes.get(value)
        if node is None:
            return Range()
        if node.opcode == "phi":
            return self._phi(node, signed)
        if node.opcode == "call":
            return self._call(node, where, signed)
        if node.opcode in ("zext", "sext"):
            from_signed = node.opcode == "sext"
            inner = self._range(node.operands[0], where, from_signed)
            if node.opcode == "zext":
                if "nneg" in node.code.words:
                    both = self._range(node.operands[0], where, True)
                    inner = Range(best((*inner.lows, *both.lows)), best((*inner.highs, *both.highs), -1))
                narrow = _bits(node.operands[0])
                highs = inner.highs or (Bound(constant((1 << narrow) - 1)),)
                inner = Range(best((*inner.lows, Bound(Poly()))), highs)
            elif not signed:
                return Range()  # the wider unsigned number is another one where it is negative; `_range` joins them
            return inner
        if node.opcode == "select":
            parts = [self._range(one, where, signed) for one in node.operands[1:]]
            return Range(hull([p.lows for p in parts], False), hull([p.highs for p in parts], True))
        return self._arithmetic(node, bits, where, signed)

    def _call(self, node: Node, where: Where, signed: bool) -> Range:
        found = _SREG.fullmatch(callee(node.code))
        if found is not None:
            name, axis = found[1], found[2]
            if name in ("ntid", "nctaid"):
                size = (Bound(of(dimension(name, axis))),)
                return Range(size, size)
            most = of(dimension("n" + name, axis)) - constant(1)
            return Range((Bound(Poly()),), (Bound(most),))
        called = _CALLED.fullmatch(callee(node.code))
        if called is None or (called[1][0] == "s") is not signed:
            return Range()
        parts = [self._range(one, where, signed) for one in node.operands[:2]]
        lows, highs = [p.lows for p in parts], [p.highs for p in parts]
        if called[1].endswith("min"):
            return Range(hull(lows, False), best((b for one in highs for b in one), -1))
        return Range(best(b for one in lows for b in one), hull(highs, True))

    # ---- arithmetic -------------------------------------------------------------------------------------------------

    def _arithmetic(self, node: Node, bits: int, where: Where, signed: bool) -> Range:
        opcode, flags = node.opcode, node.code.words
        number = _number(node.operands[1]) if len(node.operands) == 2 else None
        if opcode not in ("add", "sub", "mul", "shl", "or", "and", "lshr", "udiv", "urem", "ashr", "sdiv"):
            return Range()
        a = self._range(node.operands[0], where, signed)
        if opcode in ("and", "urem"):
            if number is None or number < 0 or (opcode == "urem" and number == 0):
                return Range()
            most = number if opcode == "and" else number - 1
            return Range((Bound(Poly()),), (Bound(constant(most)),))
        if opcode in ("lshr", "udiv", "ashr", "sdiv"):  # towards 0, of a number that is not negative: it only shrinks
            if not signed and opcode in ("ashr", "sdiv"):  # they see a sign: what is large here is negative for them
                return Range()
            low = not_negative(a)
            if number is None or number < (1 if opcode.endswith("div") else 0) or low is None:
                return Range()
            return Range((Bound(Poly(), low.needs),), tuple(b.plus(Poly(), low.needs) for b in a.highs))
        if opcode == "shl":
            if number is None or not 0 <= number < bits - 1:
                return Range()
            factor = Bound(constant(1 << number))
            result = product(a, Range((factor,), (factor,)))
        else:
            b = self._range(node.operands[1], where, signed)
            if opcode == "or" and "disjoint" not in flags:
                return Range()
            if opcode == "mul":
                result = product(a, b)
            elif opcode == "sub":
                lows = (x.plus(y.at.times(-1), y.needs) for x in a.lows[:2] for y in b.highs[:2])
                highs = (x.plus(y.at.times(-1), y.needs) for x in a.highs[:2] for y in b.lows[:2])
                result = Range(best(lows), best(highs, -1))
            else:
                lows = (x.plus(y.at, y.needs) for x in a.lows[:2] for y in b.lows[:2])
                highs = (x.plus(y.at, y.needs) for x in a.highs[:2] for y in b.highs[:2])
                result = Range(best(lows), best(highs, -1))
        exact = opcode == "or" or ("nsw" if signed else "nuw") in flags
        return result if exact else fitting(result, bits, signed)

    # ---- loops ------------------------------------------------------------------------------------------------------

    def _phi(self, node: Node, signed: bool) -> Range:
        coming = self._flow.incoming(node)
        around = [(v, b) for v, b in coming if self._flow.dominates(node.block, b)]
        before = [(v, b) for v, b in coming if not self._flow.dominates(node.block, b)]
        first = [self._range(v, (b, node.block), signed) for v, b in before]
        lows, highs = hull([one.lows for one in first], False), hull([one.highs for one in first], True)
        if not around:
            return Range(lows, highs)
        assert node.code.result is not None
        key: tuple[Value, bool] = node.code.result, signed
        again = [self._around(key, Range(), v, b, node.block, signed) for v, b in around]
        above = list(hull([highs, *(one.highs for one in again)], True))
        if len(around) == 1:
            above += self._until(node, around[0], highs, signed)
        for high in above:
            for low in lows:
                guess = Range((low,), (high,))
                again = [self._around(key, guess, v, b, node.block, signed) for v, b in around]
                needs = all_reach(low, again)
                if needs is not None:
                    return Range((Bound(low.at, low.needs | needs | high.needs),), best(above, -1))
        return Range((), best(above, -1))

    def _around(
        self, key: tuple[Value, bool], guess: Range, value: Value, source: str, target: str, signed: bool
    ) -> Range:
        """The range of what comes around a loop, if what went in is in the range that was guessed."""
        outer = self._assumed.get(key)
        self._assumed[key] = guess
        try:
            return self._range(value, (source, target), signed)
        finally:
            del self._assumed[key]
            if outer is not None:
                self._assumed[key] = outer

    def _until(self, node: Node, way: tuple[Value, str], first: tuple[Bound, ...], signed: bool) -> Iterator[Bound]:
        """A loop that goes on until a counter with step 1 equals a number that it starts below."""
        value, block = way
        step = self._flow.nodes.get(value)
        if step is None or step.opcode != "add" or ("nsw" if signed else "nuw") not in step.code.words:
            return
        if step.operands[0] != node.code.result or _number(step.operands[1]) != 1:
            return
        for relation, left, right in self._facts((block, node.block)):
            if relation != "ne" or value not in (left, right):
                continue
            end = right if left == value else left
            for _, before in (w for w in self._flow.incoming(node) if w[1] != block):
                there = self._range(end, (before, node.block), signed)
                ends = [h for h in there.highs if any(x.at == h.at and not x.needs for x in there.lows)]
                for start in first:
                    for low in there.lows:
                        if (low.at - constant(1) - start.at).bounds()[0] >= 0:
                            yield from (h.plus(constant(-1), low.needs, start.needs) for h in ends)


def _bits(value: Value) -> int:
    return value.type.number if value.type.kind == "int" else 0


def _number(value: Value) -> int | None:
    return value.value if isinstance(value, Integer) and value.type != BIT else None


def _constant(value: Value, bits: int, signed: bool) -> Range:
    number = _number(value)
    if number is None:
        return Range()
    exact = (Bound(constant(number if signed else number % (1 << bits))),)
    return Range(exact, exact)
