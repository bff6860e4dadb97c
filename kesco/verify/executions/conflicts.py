"""Which two steps touch the same memory, one of them writing, and how sure that is.

In: two steps of an execution, and what tells which bytes a launch touches. Out: a `Conflict`, or None.

1. Buffers that cannot be the same are apart, and so are parts of one of which is known that they do not meet.
2. Launches of which all arguments are known are asked for their bytes. 3. It is *sure* where a byte is in both whatever
memory holds: bytes of both are known and meet, one covers all of the buffer, or both are launches of one kernel with
the same arguments. All else may be apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, may_alias
from kesco.ir.execution import Execution, Launched, Step, StepKind
from kesco.ir.touched import Asked, Bytes, Spans, Touches

_ROOM = 1 << 36  # addresses of a buffer


@dataclass(frozen=True, slots=True)
class Conflict:
    """`kinds` are hazards, such as RAW. `doubt` says why the two may be apart; nothing: they are not."""

    buffer: Buffer
    kinds: tuple[str, ...]
    doubt: str = ""


@dataclass(slots=True)
class Conflicts:
    """Answers for one execution."""

    execution: Execution
    asked: Asked | None = None
    addresses: Mapping[str, int] = field(init=False)
    _touches: dict[Launched, Touches | None] = field(default_factory=dict)
    _known: dict[tuple[int, int], Conflict | None] = field(default_factory=dict)
    _keys: dict[int, tuple[frozenset[str], frozenset[str], bool]] = field(default_factory=dict)
    _spans: dict[tuple[int, str, bool], Bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.addresses = dict(self.execution.addresses)

    def may(self, first: Step, second: Step) -> bool:
        """Whether two steps touch one buffer, one of them writing, whichever parts."""
        (touched, written, anything), (others, theirs, all_) = self._touched(first), self._touched(second)
        return anything or all_ or not (written.isdisjoint(others) and touched.isdisjoint(theirs))

    def _touched(self, step: Step) -> tuple[frozenset[str], frozenset[str], bool]:
        if step.number not in self._keys:
            memory = [one for one in step.accesses if one.buffer.kind is not BufferKind.ORDER]
            written = frozenset(one.buffer.key for one in memory if AccessMode.WRITE in one.mode)
            unknown = any(one.buffer.kind in (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST) for one in memory)
            self._keys[step.number] = frozenset(one.buffer.key for one in memory), written, unknown
        return self._keys[step.number]

    def of(self, first: Step, second: Step) -> Conflict | None:
        """The conflict of an earlier and a later step."""
        key = (first.number, second.number)
        if key not in self._known:
            self._known[key] = self._of(first, second)
        return self._known[key]

    def _of(self, first: Step, second: Step) -> Conflict | None:
        found: dict[Buffer, tuple[set[str], list[str]]] = {}
        for a in first.accesses:
            if a.buffer.key in first.finished:
                continue
            for b in second.accesses:
                kind = _hazard(a.mode, b.mode)
                if not kind or not may_alias(a.buffer, b.buffer) or _apart(a, b):
                    continue
                doubt = self._doubt(first, a, second, b)
                if doubt is None:
                    continue
                kinds, doubts = found.setdefault(a.buffer if a.buffer.key != "?" else b.buffer, (set(), []))
                kinds.add(kind)
                doubts.append(doubt)
        if not found:
            return None
        sure = [buffer for buffer, (_, doubts) in found.items() if "" in doubts]
        buffer = sure[0] if sure else next(iter(found))
        kinds, doubts = found[buffer]
        return Conflict(buffer, tuple(sorted(kinds)), "" if sure else doubts[0])

    def _doubt(self, first: Step, a: Access, second: Step, b: Access) -> str | None:
        """Why two accesses may be apart, nothing where they meet for sure, None where they are apart."""
        if a.buffer != b.buffer or a.buffer.kind is BufferKind.UNKNOWN:
            unknown = first if a.buffer.kind in (BufferKind.UNKNOWN, BufferKind.UNSEEN_HOST) else second
            one = a if unknown is first else b
            return f"'{unknown.name}' is given a pointer that is not known ({one.why})"
        if a.buffer.kind is BufferKind.ORDER:
            return "both print, or allocate on the device"
        key = a.buffer.key
        if not (key in first.certain and key in second.certain) and a.buffer.kind is not BufferKind.SYMBOL:
            return f"a pointer may lead to '{a.buffer.name}' or elsewhere"
        meets = self._meets(first, a, second, b)
        if meets is False:
            return None
        return "" if meets else f"it is not known which parts of '{a.buffer.name}' both touch"

    def _meets(self, first: Step, a: Access, second: Step, b: Access) -> bool | None:
        """Whether a byte is touched by both, one of them writing; None where that is not known."""
        same = first.launched is not None and first.launched == second.launched
        if same and AccessMode.WRITE in a.mode and AccessMode.WRITE in b.mode:
            return True
        sides = []
        for step, access in ((first, a), (second, b)):
            sides.append([self._bytes(step, access, writes) for writes in (False, True)])
        (r1, w1), (r2, w2) = sides
        pairs = [(w1, r2), (w1, w2), (r1, w2)]
        for one, other in pairs:
            if one.surely.meets(other.surely):
                return True
            if (self._covers(one, a.buffer) and other.somewhere) or (self._covers(other, a.buffer) and one.somewhere):
                return True
        limits = [(one.may, other.may) for one, other in pairs]
        if all(x is not None and y is not None and not x.meets(y) for x, y in limits):
            return False
        return None

    def _covers(self, one: Bytes, buffer: Buffer) -> bool:
        base = self.addresses.get(buffer.key, 0)
        return buffer.bytes is not None and buffer.bytes > 0 and one.surely.covers(base, base + buffer.bytes)

    def _bytes(self, step: Step, access: Access, writes: bool) -> Bytes:
        key = (step.number, access.buffer.key, writes)
        if step.kind is StepKind.LAUNCH:
            if key not in self._spans:
                self._spans[key] = self._of_launch(step, access.buffer, writes)
            return self._spans[key]
        wanted = AccessMode.WRITE if writes else AccessMode.READ
        if wanted not in access.mode:
            return Bytes.exactly(Spans.none())
        base = self.addresses.get(access.buffer.key, 0)
        if access.bytes is not None:
            low, high = access.bytes.low.constant, access.bytes.high.constant
            if low is not None and high is not None and low < high:
                return Bytes.exactly(Spans.rows(base + low, high - low))
        if step.kind in (StepKind.FREE, StepKind.ALLOCATION) and access.buffer.bytes:
            return Bytes.exactly(Spans.rows(base, access.buffer.bytes))
        return Bytes(None, Spans.none(), somewhere=step.kind is StepKind.HOST)

    def _of_launch(self, step: Step, buffer: Buffer, writes: bool) -> Bytes:
        """The bytes that a launch reads or writes of a buffer, through whichever pointer."""
        launched = step.launched
        if launched is None or self.asked is None:
            return Bytes.unknown()
        if launched not in self._touches:
            self._touches[launched] = self.asked(launched.kernel, launched.arguments, launched.grid, launched.block)
        touches = self._touches[launched]
        if touches is None or not touches.by:
            return Bytes.unknown()
        if buffer.kind is BufferKind.SYMBOL:
            touch = touches.of(buffer.name)
            return touch.writes if writes else touch.reads
        base = self.addresses.get(buffer.key)
        if base is None or any(isinstance(root, tuple) and root[1] for root in touches.by):
            return Bytes.unknown()
        found = []
        for index, argument in enumerate(launched.arguments):
            value = int.from_bytes(argument, "little") if len(argument) == 8 else 0
            if base <= value < base + _ROOM:
                touch = touches.of((index, 0))
                found.append(touch.writes if writes else touch.reads)
        return Bytes.any_of(found) if found else Bytes.unknown()


def _hazard(first: AccessMode, second: AccessMode) -> str:
    if AccessMode.WRITE in second:
        return "WAW" if AccessMode.WRITE in first else "WAR"
    return "RAW" if AccessMode.WRITE in first and AccessMode.READ in second else ""


def _apart(a: Access, b: Access) -> bool:
    """Whether the parts that both touch at most have no byte in common."""
    if a.bytes is None or b.bytes is None or a.buffer != b.buffer:
        return False
    before = (a.bytes.high - b.bytes.low).constant, (b.bytes.high - a.bytes.low).constant
    return any(one is not None and one <= 0 for one in before)
