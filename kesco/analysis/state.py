"""The state of the walk over the host program: one path's knowledge, and one function's activation.

Also the two small things that every part of the walk uses: integer arithmetic as C++ does it, and what the names in
kesco's own prologue mean when its output is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kesco.analysis.memory import NOTHING, TOP, Object, ObjectKind, Place, Store, Value, pointer
from kesco.analysis.region import Frontier, RegionBuilder, Seen
from kesco.analysis.zeroes import Part
from kesco.ir import program as ir
from kesco.ir.access import AccessMode, Buffer
from kesco.ir.flow import CURRENT, Handle, Iteration
from kesco.ir.lifetimes import ALLOCATE, FREE, FREED
from kesco.ir.replay import REPLAYS
from kesco.ir.scratch import OWN, OWNED
from kesco.ir.transfers import FETCHED, GIVE_HERE, SENT, SETS, TAKE_HERE, WAIT_HERE
from kesco.ir.turns import GIVE, LANE, PIN, PLACE, TAKE, TURN, TURNED, TURNS
from kesco.source import Span


@dataclass(slots=True)
class State:
    """What is known at one point of one path: the store, and the sites control may have come from."""

    store: Store
    frontier: Frontier

    def fork(self) -> State:
        """An independent copy."""
        return State(self.store.copy(), self.frontier)

    def merge(self, other: State | None) -> State:
        """The state when control may have come along either path."""
        if other is None:
            return self
        return State(self.store.join(other.store), self.frontier | other.frontier)


@dataclass(slots=True)
class Activation:
    """One function being walked: its region so far and where control may leave it."""

    function: ir.Function
    key: str
    builder: RegionBuilder
    generic: bool
    this: frozenset[Place] = frozenset()
    iterations: tuple[Iteration, ...] = ()
    breaks: list[list[State]] = field(default_factory=list)
    continues: list[list[State]] = field(default_factory=list)
    cases: list[State] = field(default_factory=list)
    returns: list[tuple[State, Value]] = field(default_factory=list)
    result: Value = NOTHING
    touches_device: bool = False
    foreign: bool = False
    device_changed: bool = False
    throws: bool = False  # it may, and not only where a call of CUDA has failed
    raises: bool = False  # it may throw, if only where a call of CUDA has failed
    exits: bool = False  # it may end the process, and what runs then may give the device work
    scopes: list[list[ir.Variable]] = field(default_factory=list)
    statement: Span | None = None
    unseen_in: Span | None = None  # the last statement in which code that is not seen ran
    host: dict[Buffer, AccessMode] = field(default_factory=dict)
    zeroing: tuple[int, Part | None] | None = None  # the store to zero since the last site, and where it goes
    seen: set[Seen] = field(default_factory=set)  # what the host has done since the last site
    looked: bool = False
    asked: bool = False  # for errors of the device
    outside: bool = False  # the host has touched memory that the function did not make
    turns: list[str] = field(default_factory=list)  # loops around this place whose trips are marked
    failing: int = 0  # how many branches around this place are taken only where a call of CUDA has failed
    dying: int = 0  # of these, how many end the process


KESCO = Object("kesco", "kesco", ObjectKind.VARIABLE)  # what kesco_streams() of an emitted prologue returns


def is_kesco(name: str) -> bool:
    """Whether a function is one of those that kesco's own prologue defines."""
    return name.rpartition("::")[2] in (
        "kesco_streams",
        "kesco_streams_if_distinct",
        "kesco_stretch",
        "kesco_pace",
        "kesco_paced",
        "kesco_context",
        "kesco_prefetch",
        "kesco_mark",
        "kesco_hold",
        CURRENT.name.removesuffix("()"),
        *SETS,
        *(ALLOCATE, FREE, FREED, SENT, FETCHED),
        *(TURNS, TURN, LANE, TURNED, PLACE, TAKE, GIVE, PIN),
        *(OWN, OWNED, WAIT_HERE, TAKE_HERE, GIVE_HERE),
        *REPLAYS,
    )


_BITS = {
    "bool": (1, False), "char": (8, True), "signed char": (8, True), "unsigned char": (8, False), "short": (16, True),
    "unsigned short": (16, False), "int": (32, True), "unsigned int": (32, False), "long": (64, True),
    "unsigned long": (64, False), "long long": (64, True), "unsigned long long": (64, False),
}  # fmt: skip


def converted(value: int, to: ir.Type | None) -> int | None:
    """An integer after conversion to a type;

    None where the type is not a plain integer (the value is then not followed).
    """
    if to is None or to.shape is ir.Shape.POINTER:
        return value
    bits, signed = _BITS.get(to.spelling.replace("const ", "").replace("volatile ", ""), (0, False))
    if to.shape is not ir.Shape.INTEGER:
        return None
    if not bits:
        return value if 0 <= value < 128 else None  # an enumeration, of whatever size
    if bits == 1:
        return int(value != 0)
    value &= (1 << bits) - 1
    return value - (1 << bits) if signed and value >> (bits - 1) else value


def current_stream() -> Value:
    """What ``kesco_current()`` of an emitted prologue returns."""
    return pointer(Place(Object(CURRENT.key, CURRENT.name, ObjectKind.HANDLE, handle=CURRENT)))


def kesco_handle(place: Place) -> Value:
    """The stream or event at ``kesco.stream[i]`` and the like."""
    if len(place.path) != 2 or not isinstance(place.path[1], int):
        return TOP
    name = f"kesco.{place.path[0]}[{place.path[1]}]"
    handle = Handle(f"kesco:{place.path[0]}:{place.path[1]}", name)
    return pointer(Place(Object(handle.key, name, ObjectKind.HANDLE, handle=handle)))


def fold(operator: str, left: int, right: int) -> int | None:
    """Integer arithmetic as C++ does it on 64-bit integers, or None where it has no value."""
    if operator in ("/", "%"):
        if right == 0:
            return None
        quotient = abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        return quotient if operator == "/" else left - quotient * right
    if operator in ("<<", ">>"):
        if not 0 <= right < 63:
            return None
        return left << right if operator == "<<" else left >> right
    operations = {
        "+": left + right, "-": left - right, "*": left * right, "&": left & right, "|": left | right,
        "^": left ^ right, "<": int(left < right), ">": int(left > right), "<=": int(left <= right),
        ">=": int(left >= right), "==": int(left == right), "!=": int(left != right),
    }  # fmt: skip
    result = operations.get(operator)
    return result if result is not None and -(2**63) <= result < 2**63 else None
