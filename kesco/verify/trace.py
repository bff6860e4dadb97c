"""The record of a run, as the dry-run runtime or the recorder in front of the real one writes it → values.

In: the text of a record. Out: a `Trace`: events in the order in which the host caused them, and the stacks of return
addresses that they name. One event is one line; addresses are hexadecimal, all other numbers decimal.

| line | meaning |
|---|---|
| ``V version base`` | the first line; where the program was loaded (``X`` for ``V``: the record ran out of room) |
| ``J bias low high path`` | a program or library is loaded there; its addresses are `bias` above those in its file |
| ``P stack address…`` | a stack of return addresses, innermost first |
| ``S stream device kind stack`` | a stream: legacy, per-thread, blocking, non-blocking, or inside a graph |
| ``A id kind base size stack stream [name]`` | an allocation; stream -1 where it was not made on one |
| ``F base stack stream device`` | it was freed; stream -1 where the host waits for the device first |
| ``K stream stack name grid block shared (=/?) argument… *id…`` | a kernel, its arguments' bytes, what it can reach |
| ``M stream stack function sync range…`` | a copy or memset, and what the host waits for: 1 before, 2 after, 3 both |
| ``L stream stack`` | a host function |
| ``l stream stack function r/w:address…`` | a call of a library, and in which memory it reads and writes |
| ``N stream stack address size`` | a prefetch of managed memory; in a dry run only |
| ``R event stream stack``, ``W event stream stack`` | an event is recorded, a stream waits for one |
| ``e event`` | an event is destroyed |
| ``B stream stack base size``, ``Y stream stack base`` | a pool of the program's own hands out memory, takes it back |
| ``H d/s/e number stack`` | the host waits for a device, stream or event |
| ``T r/w address stack`` | the host touches memory that the device may touch too |
| ``O handle address mode`` | a texture or surface object and its memory |
| ``Z stack function to from`` | a copy or memset with an address that is in no allocation; it was refused |
| ``U stack function`` | a function that cannot be followed: a dry run ended there, with a GPU it is not in the record |
| ``E stack function number name`` | the real runtime returned this error |
| ``D nanoseconds registers shared local queued`` | how long the operation in front took, -1 where it is not known |
| ``I entry thread caller function call`` | an instrumented function began: by which call of which entry, -1: none |
| ``C entry call`` | that entry is about to make this call of CUDA; both only where the host code says them |
| ``G sms threads blocks registers shared driver runtime name`` | the GPU, its limits of one multiprocessor, versions |
| ``Q`` | the program ended by itself |

It refuses nothing: a record may end anywhere, because programs do; a last line that is cut off is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple


class Range(NamedTuple):
    """Bytes from `low`: `rows` rows of `width`, each `pitch` behind the one before."""

    writes: bool
    low: int
    width: int
    pitch: int = 0
    rows: int = 1

    @property
    def high(self) -> int:
        """The end of the last row."""
        return self.low + (self.rows - 1) * self.pitch + self.width


class StreamMade(NamedTuple):
    """A stream came to be; `kind` is one letter, see the module's docstring."""

    stream: int
    device: int
    kind: str
    stack: int


class Allocated(NamedTuple):
    """Memory came to be; `name` for device symbols."""

    id: int
    kind: str
    base: int
    size: int
    stack: int
    stream: int
    name: str


class Freed(NamedTuple):
    """Memory was freed."""

    base: int
    stack: int
    stream: int
    device: int


class Launched(NamedTuple):
    """A kernel; `arguments` is None where their sizes are not known."""

    stream: int
    stack: int
    name: str
    grid: str
    block: str
    shared: int
    arguments: tuple[bytes, ...] | None
    reached: tuple[int, ...]


class Copied(NamedTuple):
    """A copy or memset."""

    stream: int
    stack: int
    function: str
    before: bool
    after: bool
    ranges: tuple[Range, ...]


class Called(NamedTuple):
    """A library was called; in which memory it reads and writes."""

    stream: int
    stack: int
    function: str
    touched: tuple[tuple[bool, int], ...]


class HostFunction(NamedTuple):
    """A host function on a stream."""

    stream: int
    stack: int


class Prefetched(NamedTuple):
    """Managed memory was prefetched."""

    stream: int
    stack: int
    address: int
    size: int


class Recorded(NamedTuple):
    """An event was recorded."""

    event: int
    stream: int
    stack: int


class Waited(NamedTuple):
    """A stream waits for an event."""

    event: int
    stream: int
    stack: int


class Synchronized(NamedTuple):
    """The host waited for a device (d), stream (s) or event (e)."""

    what: str
    number: int
    stack: int


class Destroyed(NamedTuple):
    """An event is destroyed."""

    event: int


class HandedOut(NamedTuple):
    """A pool of the program's own hands out memory, in the order of a stream."""

    stream: int
    stack: int
    base: int
    size: int


class TakenBack(NamedTuple):
    """It takes that memory back."""

    stream: int
    stack: int
    base: int


class Touched(NamedTuple):
    """The host touched one address."""

    writes: bool
    address: int
    stack: int


class Handle(NamedTuple):
    """A texture or surface object."""

    number: int
    address: int
    writes: bool


class Refused(NamedTuple):
    """A copy or memset whose address is in no allocation."""

    stack: int
    function: str
    addresses: tuple[int, int]


class Unsupported(NamedTuple):
    """A function that cannot be followed: the program ended there, or what it did is not in the record."""

    stack: int
    function: str


class Failed(NamedTuple):
    """A function of the real runtime returned an error."""

    stack: int
    function: str
    error: int
    name: str


class Entered(NamedTuple):
    """A function of an instrumented program began, called by the entry `caller` (-1: by nothing that was seen)."""

    entry: int
    thread: int
    caller: int
    function: int
    call: int


class Marked(NamedTuple):
    """An instrumented program is about to call CUDA; what follows up to the next mark is what that call did."""

    entry: int
    call: int


class Timed(NamedTuple):
    """How long the operation in front took on the device, and what a kernel takes; -1 where that is not known.

    `queued` is whether the device found it in its queue, so that what the host takes to issue it is not in the time.
    """

    nanoseconds: int
    registers: int
    static_shared: int
    local: int
    queued: bool


class Device(NamedTuple):
    """The GPU: how many multiprocessors, what one of them has at most, the versions of driver and runtime."""

    sms: int
    threads_per_sm: int
    blocks_per_sm: int
    registers_per_sm: int
    shared_per_sm: int
    driver: int
    runtime: int
    name: str


Event = (
    StreamMade | Allocated | Freed | Launched | Copied | Called | HostFunction | Prefetched | Recorded | Waited
    | Synchronized | Destroyed | HandedOut | TakenBack | Touched | Handle | Refused | Unsupported | Failed | Entered
    | Marked | Timed | Device
)  # fmt: skip


class Module(NamedTuple):
    """A program or library that is loaded from `low` to `high`, `bias` above where its file says."""

    bias: int
    low: int
    high: int
    path: str


@dataclass(frozen=True, slots=True)
class Trace:
    """A whole record: where the program was loaded, its stacks by number, its events, and whether it ran to its end.

    `full` is whether there was no room for all of it.
    """

    base: int
    stacks: Mapping[int, tuple[int, ...]]
    events: tuple[Event, ...]
    ended: bool
    full: bool = False
    modules: Sequence[Module] = ()


class Recording:
    """A record that is read event by event, so that a long one needs no memory; what else is in it grows meanwhile."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = lines
        self.base, self.ended, self.full = 0, False, False
        self.stacks: dict[int, tuple[int, ...]] = {}
        self.modules: list[Module] = []

    def events(self) -> Iterator[Event]:
        """Each event once."""
        for line in self._lines:
            if not line.endswith("\n"):
                return
            letter, *words = line[:-1].split(" ")
            reader = _READERS.get(letter)
            if reader is not None:
                yield reader(words)
            elif letter == "P":
                self.stacks[int(words[0])] = tuple(int(one, 16) for one in words[1:])
            elif letter == "J":
                bias, low, high = (int(one, 16) for one in words[:3])
                self.modules.append(Module(bias, low, high, " ".join(words[3:])))
            elif letter in ("V", "X"):
                self.base, self.full = int(words[1], 16), letter == "X"
            elif letter == "Q":
                self.ended = True


def read(text: str) -> Trace:
    """A record's text as values."""
    recording = Recording(text.splitlines(keepends=True))
    events = tuple(recording.events())
    return Trace(recording.base, recording.stacks, events, recording.ended, recording.full, recording.modules)


def _launched(words: list[str]) -> Launched:
    stream, stack, name, grid, block, shared, known, *rest = words
    arguments = tuple(bytes.fromhex(one) for one in rest if not one.startswith("*"))
    reached = tuple(int(one[1:]) for one in rest if one.startswith("*"))
    return Launched(
        int(stream), int(stack), name, grid, block, int(shared), arguments if known == "=" else None, reached
    )


def _range(word: str) -> Range:
    mode, low, width, *rows = word.split(":")
    return Range(mode == "w", int(low, 16), int(width), *map(int, rows))


def _copied(words: list[str]) -> Copied:
    stream, stack, function, sync, *ranges = words
    waits = int(sync)
    return Copied(int(stream), int(stack), function, bool(waits & 1), bool(waits & 2), tuple(map(_range, ranges)))


def _allocated(words: list[str]) -> Allocated:
    number, kind, base, size, stack, stream, *name = words
    return Allocated(int(number), kind, int(base, 16), int(size), int(stack), int(stream), " ".join(name))


def _device(words: list[str]) -> Device:
    sms, threads, blocks, registers, shared, driver, runtime, *name = words
    return Device(
        int(sms), int(threads), int(blocks), int(registers), int(shared), int(driver), int(runtime), " ".join(name)
    )


_READERS: dict[str, Callable[[list[str]], Event]] = {
    "S": lambda w: StreamMade(int(w[0]), int(w[1]), w[2], int(w[3])),
    "A": _allocated,
    "F": lambda w: Freed(int(w[0], 16), int(w[1]), int(w[2]), int(w[3])),
    "K": _launched,
    "M": _copied,
    "l": lambda w: Called(int(w[0]), int(w[1]), w[2], tuple((o[0] == "w", int(o[2:], 16)) for o in w[3:])),
    "L": lambda w: HostFunction(int(w[0]), int(w[1])),
    "N": lambda w: Prefetched(int(w[0]), int(w[1]), int(w[2], 16), int(w[3])),
    "R": lambda w: Recorded(int(w[0]), int(w[1]), int(w[2])),
    "W": lambda w: Waited(int(w[0]), int(w[1]), int(w[2])),
    "H": lambda w: Synchronized(w[0], int(w[1]), int(w[2])),
    "e": lambda w: Destroyed(int(w[0])),
    "B": lambda w: HandedOut(int(w[0]), int(w[1]), int(w[2], 16), int(w[3])),
    "Y": lambda w: TakenBack(int(w[0]), int(w[1]), int(w[2], 16)),
    "T": lambda w: Touched(w[0] == "w", int(w[1], 16), int(w[2])),
    "O": lambda w: Handle(int(w[0]), int(w[1], 16), w[2] == "rw"),
    "Z": lambda w: Refused(int(w[0]), w[1], (int(w[2], 16), int(w[3], 16))),
    "U": lambda w: Unsupported(int(w[0]), " ".join(w[1:])),
    "D": lambda w: Timed(int(w[0]), int(w[1]), int(w[2]), int(w[3]), w[4] == "1"),
    "I": lambda w: Entered(*map(int, w)),
    "C": lambda w: Marked(*map(int, w)),
    "G": _device,
    "E": lambda w: Failed(int(w[0]), w[1], int(w[2]), " ".join(w[3:])),
}
