"""What the operations of a program cost: how often each ran, and how long.

An operation of a run is known by its `Identity`: what it is, its shape, and the line of the program that issued it. For
each there may be two distributions of times: how long it took on the device, and how long the device then stood idle
until the next operation of the same task. Either may be unknown; who measures one need not measure the other.

Times are kept in bins whose bounds grow by 2 % (the sketch of Masson, Rim and Lee, "DDSketch", VLDB 2019), so that a
quantile is within 1 % of the true one, the size does not grow with the length of a run, and two profiles merge exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce

_GROWTH = math.log(1.02)
Three = tuple[int, int, int]


def middle(number: int) -> float:
    """Nanoseconds in the middle of a bin of `Times`."""
    return math.exp((number + 0.5) * _GROWTH) if number >= 0 else 0.0


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """One operation as its author wrote it: equal identities are executions of the same thing.

    `kind` is ``kernel``, ``copy`` or ``memset``. `name` is a kernel's mangled name, or for a copy the function called.
    `grid`, `block` (threads) and `shared` (bytes of dynamic shared memory) are a launch's configuration, zeros for
    copies. `at` is ``file:line`` of the call, the file as it was named to the compiler; empty where not known.
    """

    kind: str
    name: str
    grid: Three = (0, 0, 0)
    block: Three = (0, 0, 0)
    shared: int = 0
    at: str = ""

    @property
    def blocks(self) -> int:
        """The number of blocks of the launch."""
        return math.prod(self.grid)

    @property
    def threads(self) -> int:
        """The number of threads of a block."""
        return math.prod(self.block)


@dataclass(frozen=True, slots=True)
class Times:
    """A distribution of times in nanoseconds.

    `bins` are pairs (number, how many), ascending; bin *n* holds the times from 1.02 to the *n* up to the next bound.
    Times below one nanosecond are in bin -1.
    """

    count: int
    total: int
    shortest: int
    longest: int
    bins: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, nanoseconds: Iterable[int]) -> Times:
        """The distribution of some times, at least one; `ValueError` for none, or for a negative one."""
        found = [int(one) for one in nanoseconds]
        if not found or min(found) < 0:
            raise ValueError("times are numbers of nanoseconds, at least one")
        bins: dict[int, int] = {}
        for one in found:
            number = math.floor(math.log(one) / _GROWTH) if one else -1
            bins[number] = bins.get(number, 0) + 1
        return cls(len(found), sum(found), min(found), max(found), tuple(sorted(bins.items())))

    def __add__(self, other: Times) -> Times:
        bins = dict(self.bins)
        for number, many in other.bins:
            bins[number] = bins.get(number, 0) + many
        return Times(
            self.count + other.count, self.total + other.total, min(self.shortest, other.shortest),
            max(self.longest, other.longest), tuple(sorted(bins.items())),
        )  # fmt: skip

    def quantile(self, part: float) -> float:
        """Nanoseconds that this part of the times (0 to 1) do not exceed, within 1 %."""
        wanted, seen = part * (self.count - 1), 0
        for number, many in self.bins:
            seen += many
            if seen > wanted:
                return min(max(middle(number), self.shortest), self.longest)
        return float(self.longest)

    @property
    def median(self) -> float:
        """The middle one, in nanoseconds."""
        return self.quantile(0.5)


@dataclass(frozen=True, slots=True)
class Cost:
    """What is known of one operation: `time` on the device, the idle `gap` behind it, and what a launch occupies.

    `display` is the name for people. `registers` is per thread, `static_shared` bytes per block; `sm` and `memory` are
    the shares (0 to 1) of the SMs' and the memory's throughput that it used alone; `bytes` is what a copy moved. None
    where nobody measured it.
    """

    identity: Identity
    display: str = ""
    time: Times | None = None
    gap: Times | None = None
    registers: int | None = None
    static_shared: int | None = None
    sm: float | None = None
    memory: float | None = None
    bytes: int | None = None

    def __add__(self, other: Cost) -> Cost:
        """Both measured; of the facts that have one value that of `other` stays."""
        known = {
            name: getattr(self if getattr(other, name) is None else other, name)
            for name in ("registers", "static_shared", "sm", "memory", "bytes")
        }
        both = (_sum(self.time, other.time), _sum(self.gap, other.gap))
        return Cost(self.identity, other.display or self.display, *both, **known)


def _sum(one: Times | None, other: Times | None) -> Times | None:
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a profile comes from: the GPU, the versions of driver and CUDA runtime, and the sources by their SHA-256.

    `limits` are the GPU's, by the names of the fields of `kesco.model.gpu.Machine`. `method` says how the times were
    measured.
    """

    gpu: str = ""
    driver: str = ""
    cuda: str = ""
    method: str = ""
    sources: tuple[tuple[str, str], ...] = ()
    limits: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Costs:
    """A profile: the costs of a program's operations, by identity, ascending, and where they come from."""

    origin: Origin = field(default_factory=Origin)
    costs: tuple[Cost, ...] = ()

    @classmethod
    def of(cls, origin: Origin, costs: Iterable[Cost]) -> Costs:
        """A profile; costs of one identity are merged."""
        found: dict[Identity, Cost] = {}
        for one in costs:
            found[one.identity] = found[one.identity] + one if one.identity in found else one
        return cls(origin, tuple(found[key] for key in sorted(found)))

    def why_not_with(self, other: Costs) -> str:
        """Why two profiles must not be merged, or an empty text: another GPU, or another version of a source."""
        if self.origin.gpu != other.origin.gpu:
            return f"one is of '{self.origin.gpu}', the other of '{other.origin.gpu}'"
        if self.origin.method != other.origin.method:
            return f"one was measured by {self.origin.method}, the other by {other.origin.method}"
        theirs = dict(other.origin.sources)
        changed = [file for file, digest in self.origin.sources if theirs.get(file, digest) != digest]
        return f"'{changed[0]}' changed between them" if changed else ""

    def __add__(self, other: Costs) -> Costs:
        """Both runs in one; see `why_not_with`."""
        sources = dict(self.origin.sources) | dict(other.origin.sources)
        origin = replace(other.origin, sources=tuple(sorted(sources.items())))
        return Costs.of(origin, (*self.costs, *other.costs))


def merged(profiles: Iterable[Costs]) -> Costs:
    """Several profiles in one, which must be mergeable."""
    return reduce(lambda one, other: one + other, profiles)


@dataclass(frozen=True, slots=True)
class Expected:
    """What the model expects of rewriting one function, in microseconds.

    `serial` is the function as its author wrote it, `concurrent` with `streams` streams, `critical` the longest chain
    of dependent operations, whose labels are `path`. `measured` of `operations` kernels and copies have a measured
    time. `other` is the time with the strategy ``kesco``, for comparison. `exact`: the profile is of this very text.
    """

    serial: float
    concurrent: float
    critical: float
    path: tuple[str, ...] = ()
    streams: int = 1
    measured: int = 0
    operations: int = 0
    other: float = 0.0
    exact: bool = True

    @property
    def gain(self) -> float:
        """How much faster, as a part: 0.5 is one and a half times as fast."""
        return self.serial / self.concurrent - 1 if self.concurrent > 0 else 0.0

    @property
    def known(self) -> bool:
        """Whether every kernel and copy has a measured time."""
        return 0 < self.operations == self.measured

    def to_json(self) -> Mapping[str, object]:
        """As plain data; times in microseconds."""
        return {
            "serial_us": round(self.serial, 3), "concurrent_us": round(self.concurrent, 3),
            "critical_us": round(self.critical, 3), "critical_path": list(self.path), "streams": self.streams,
            "gain": round(self.gain, 4), "measured": self.measured, "operations": self.operations,
            "kesco_us": round(self.other, 3),
        }  # fmt: skip
