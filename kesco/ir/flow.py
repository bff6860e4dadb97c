"""Sites and the paths between them: the form in which dependences, schedules and proofs see a function.

A *site* is one operation of the text, or one iteration of it where a loop of known trip count was unrolled. A
`Region` is one function: its sites and the control-flow edges between them. Expressions and statements are gone;
what is left is what each site touches and how it relates to the default stream.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from kesco.ir.access import BY_HOST_IN_CALL, HELD_IN_CALL, RELEASED, Access, AccessMode, may_alias
from kesco.ir.kernels import Kernels
from kesco.ir.scratch import Scratch
from kesco.source import Span

EXCEPTION = "exception"
CAUGHT = "caught"  # in the function itself, behind destructors that have to do with the device
"""The label of the exit by which exceptions leave a function; it has no text."""
SMALL = 65536
"""Bytes up to which a transfer is small: some microseconds, as much as the call that issues it."""


class Role(enum.Enum):
    """How a site takes part in the order of the device's work."""

    ENTRY = "entry"  # where the function begins: everything earlier is joined
    EXIT = "exit"  # a return, a throw or the end of the body: everything must be joined
    MOVABLE = "movable"  # device work that may be put on any stream
    LEGACY = "legacy"  # device work that stays on the legacy default stream: waits for all, all wait for it
    DEVICE_SYNC = "device-sync"  # the host waits here for the whole device
    JOIN = "join"  # something that may look at the default stream or the clock: pending work is joined to it first
    HOST = "host"  # the host itself touches memory that the device can reach; orders nothing
    RECORD = "record"  # an event is recorded on a stream
    WAIT = "wait"  # a stream waits for an event
    STREAM_SYNC = "stream-sync"  # the host waits for a stream
    EVENT_SYNC = "event-sync"  # the host waits for an event
    CAPTURE = "capture"  # what stands from here to the next replay is given to a stream as a whole, maybe as a graph
    REPLAY = "replay"  # where that ends


class SiteKind(enum.Enum):
    """What the operation is, for people and for the emitter."""

    KERNEL = "kernel"
    COPY = "copy"
    MEMSET = "memset"
    PREFETCH = "prefetch"
    ALLOC = "alloc"
    FREE = "free"
    LIBRARY = "library"
    SYNC = "sync"
    CALL = "call"
    HOST_USE = "host-use"
    BOUNDARY = "boundary"


class Held(enum.Enum):
    """Until when a copy keeps the host: it may go on when this is done."""

    SOURCE = "source"  # what the copy reads of the host's memory has been read
    ALL = "all"  # the copy is complete
    LATER = "later"  # it is not kept here: it waits before it next looks at its own memory


HOSTS_SIDE = {Held.SOURCE: AccessMode.READ, Held.ALL: AccessMode.WRITE, Held.LATER: AccessMode.WRITE}
"""How such a copy touches the host's memory."""


class Mark(enum.Enum):
    """Where trips of a loop begin whose counters are followed."""

    ENTERS = "loop"  # control comes to the loop from outside: none of its trips has begun
    TURNS = "trip"  # a trip begins


@dataclass(frozen=True, slots=True)
class Iteration:
    """One fixed value of an unrolled loop: iteration `index` (from 0) of `trips`, loop counter `counter` = `value`."""

    loop: int
    counter: str
    index: int
    trips: int
    value: int
    first: int
    step: int


@dataclass(frozen=True, slots=True)
class Handle:
    """A stream or event object that a program uses.

    `key` is unique in a program. `blocking` tells that a stream takes part in the legacy default stream's barriers.
    `certain` is False when it may be one of several objects (`key` then names the set, and nothing may rely on it).
    """

    key: str
    name: str
    blocking: bool = True
    certain: bool = True


CURRENT = Handle("kesco:current", "kesco_current()")
"""The stream of whoever calls: the default stream, unless a caller says otherwise."""


@dataclass(frozen=True, slots=True)
class Site:
    """One operation.

    `number` is its place in the region's tuple of sites. `operation` identifies the operation in the text (all
    iterations of an unrolled launch share it; it indexes `Program.operations`). `label` is the kernel's or call's
    name, with ``#k`` where it occurs more than once. `note` says why a site that might have moved did not.
    `stream` is the stream the text puts it on, None for the legacy default stream; `event` is the event that a
    record, wait or event-sync names. In a serial program all streams are None and there are no record and wait sites.
    `foreign` marks a join whose callee may use streams that are not seen here: what follows must wait for those too.
    `bytes` is how much a copy or memset moves at most, where that is a constant. `looks` marks a host site that may
    show how far the device is without touching its memory: a clock, output, a query for errors. `added` marks a
    prefetch that is not in the user's text; its `operation` is a number behind those of the text. `acts` is False for
    work that may turn out to be none: a copy of 0 bytes, a launch of 0 blocks (which fails), a refused prefetch.
    `outside` tells that behind it, before the next site, the host may touch memory that its function did not make.
    `mark` and `loop` are of a place that control passes and where nothing happens but that a trip of that loop begins.
    `held` tells until when a movable copy keeps the host, where that is certain. `stuck` marks a copy that stays on the
    default stream in any case: what it would have to wait for has no place in the text. `task` is the name of the task
    that it belongs to, and `priority` that task's; empty where it belongs to none. `failed` marks an exit that is only
    reached where a call of CUDA has failed. `zeroes` is negative but where all that a site of the host, or a memset,
    does is to set the bytes of its one access to zero, and its buffer is one allocation, the only one of that name:
    then it is the operation of the statement or call. `calls` are name and place of the functions of the file that a
    call runs, where nothing else can run there. `holds` tells that there are copies among it that keep the host; then
    `stuck` tells that the call cannot go to a stream with them, and `busy` that there is other work in it. Where such a
    call is `later`, they do not keep it: the host waits before it next looks at its own memory. `takes` tells that the
    call allocates memory that it frees, for which the host waits, too. `does` is what a call runs that is no
    function of the file, as far as that is seen.
    """

    number: int
    operation: int
    label: str
    kind: SiteKind
    role: Role
    span: Span
    iterations: tuple[Iteration, ...] = ()
    accesses: tuple[Access, ...] = ()
    note: str = ""
    priority: int = 1
    stream: Handle | None = None
    event: Handle | None = None
    foreign: bool = False
    bytes: int | None = None
    looks: bool = False
    added: bool = False
    acts: bool = True
    held: Held | None = None
    stuck: bool = False
    task: str = ""
    failed: bool = False
    outside: bool = False
    mark: Mark | None = None
    loop: str = ""
    zeroes: int = -1
    calls: tuple[tuple[str, Span], ...] = ()
    holds: bool = False
    busy: bool = False
    later: bool = False
    takes: bool = False
    does: frozenset[SiteKind] = frozenset()

    @property
    def own(self) -> tuple[Access, ...]:
        """What it touches itself, without what whoever sees its flag may touch."""
        return tuple(a for a in self.accesses if a.why != RELEASED)


_BARRIERS = frozenset({Role.ENTRY, Role.EXIT, Role.JOIN, Role.LEGACY, Role.DEVICE_SYNC})


def is_barrier(site: Site) -> bool:
    """Whether everything before a site is ordered before everything behind it, unless it turns out to be nothing."""
    return site.role in _BARRIERS


def may_be_nothing(site: Site) -> bool:
    """Whether work on the default stream may turn out to be none, which orders nothing (measured for 0 bytes)."""
    return site.role is Role.LEGACY and not site.acts


def is_sure_barrier(site: Site) -> bool:
    """Whether a site is a barrier whatever the sizes: what correctness may rest on."""
    return is_barrier(site) and not may_be_nothing(site)


def is_wait(site: Site) -> bool:
    """Whether all it does is to keep the host until the device has done everything."""
    return site.role is Role.DEVICE_SYNC and site.kind is SiteKind.SYNC


def comes_home(site: Site) -> bool:
    """Whether it is a copy for which the host waits, and that waits for all work before it."""
    return site.kind is SiteKind.COPY and site.role is Role.LEGACY and site.held is Held.ALL and site.acts


def sees_itself(site: Site) -> bool:
    """Whether the host may touch in a call what the call's own work does, of which it does not wait for all then."""
    on_host = [a for a in site.accesses if a.why == BY_HOST_IN_CALL]
    work = [a for a in site.accesses if a.why not in (BY_HOST_IN_CALL, HELD_IN_CALL)]
    return any((a.mode | b.mode) & AccessMode.WRITE and may_alias(a.buffer, b.buffer) for a in on_host for b in work)


@dataclass(frozen=True, slots=True)
class Region:
    """One function as a control-flow graph over its sites; site 0 is its entry.

    `successors[i]` are the numbers of the sites that may be executed next after site *i*, ascending. `guards` names the
    pointer expressions (over parameters and globals, as they are at entry) that the analysis assumed to be distinct
    allocations and that therefore must be compared at run time. `serial_because` is empty, or why the function must be
    left as it is. `open` tells that code which is not seen may call it, with work of its own still running; `fresh`
    that all device memory it knows the allocation of was allocated since it was entered. `members` are name and place
    of the functions whose calls are a part of it, if any; `linked` is the region in which they are. `calling` is the
    region in which the calls of functions that follow their caller's stream are movable, if there are any; and
    `not_followed` says why this one does not follow (see `analysis/following.py`), empty for one that does. `general`
    is what it touches whoever calls it: by the device, and by the host. `trusting` tells that functions which other
    files may call were followed as this file calls them alone, since ``main`` runs no code that is not seen. `kernels`
    says what decides which bytes kernels touch, where loops are marked. `scratch` are the pointers of the file to
    memory that each stream may have for itself, where calls that may be given streams use such.
    """

    function: str
    span: Span
    sites: tuple[Site, ...]
    successors: tuple[tuple[int, ...], ...]
    guards: tuple[str, ...] = ()
    serial_because: str = ""
    open: bool = False
    fresh: bool = False
    members: tuple[tuple[str, Span], ...] = ()
    linked: Region | None = None
    calling: Region | None = None
    not_followed: str = "it launches nothing"
    general: tuple[tuple[Access, ...], tuple[Access, ...]] = ((), ())
    trusting: bool = False
    kernels: Kernels = field(default_factory=Kernels, compare=False)
    scratch: tuple[Scratch, ...] = ()

    @property
    def loops(self) -> tuple[str, ...]:
        """The loops whose trips are marked, in the order of their places."""
        return tuple(dict.fromkeys(s.loop for s in self.sites if s.mark is not None))

    def forward(self) -> tuple[tuple[int, ...], ...]:
        """The successors of each site, without the edges back to a site still open in a depth-first walk."""
        after: list[list[int]] = [[] for _ in self.sites]
        seen, still_open = {0}, {0}
        stack = [(0, iter(self.successors[0]))]
        while stack:
            site, rest = stack[-1]
            following = next(rest, None)
            if following is None:
                still_open.discard(site)
                stack.pop()
            elif following not in still_open:
                after[site].append(following)
                if following not in seen:
                    seen.add(following)
                    still_open.add(following)
                    stack.append((following, iter(self.successors[following])))
        return tuple(map(tuple, after))
