"""The policy by which processes share a GPU, as Python sees it: ``kesco/runtime/fikit/policy.h`` by way of ctypes.

In: settings, the costs of kernels, events with their times. Out: grants. It is the very library that the daemon uses,
so what the simulator and the tests see is what happens on a GPU. Nothing is decided on this side.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from types import MappingProxyType, TracebackType

from kesco.ir.costs import Times
from kesco.ir.kfikit import KNOTS_IN_ALL, Kernel, knots
from kesco.toolchain.native import policy_library

NEVER = (1 << 64) - 1
_VERSION = 4
_ROOM = 64


class Kind(IntEnum):
    """KescoPolicyKind: how it is decided who may launch."""

    EXCLUSIVE = 0
    SHARING = 1
    STRICT = 2
    REACTIVE = 3
    MEAN = 4
    QUANTILE = 5
    CLAIRVOYANT = 6


class Reason(IntEnum):
    """KescoGrantReason: why a launch may go on."""

    HOLDER = 0
    FREE = 1
    FILL = 2
    AGED = 3
    DEADLINE = 4
    REACT = 5


class Held(IntEnum):
    """KescoHeldReason: why a launch still waits."""

    NOT_HELD = 0
    BUSY = 1
    NO_GAP = 2
    NO_FIT = 3
    IN_FLIGHT = 4
    HARM = 5
    DRIFT = 6


class Settings(ctypes.Structure):
    """KescoPolicySettings; times in nanoseconds. What each means says ``policy.h``."""

    _fields_ = (
        ("version", ctypes.c_uint32),
        ("kind", ctypes.c_uint32),
        ("threshold_ns", ctypes.c_uint64),
        ("guard_ns", ctypes.c_uint64),
        ("inflight_ns", ctypes.c_uint64),
        ("switch_ns", ctypes.c_uint64),
        ("inflight_launches", ctypes.c_uint32),
        ("time_percent", ctypes.c_uint32),
        ("gap_percent", ctypes.c_uint32),
        ("drift_limit", ctypes.c_uint32),
        ("unknown_ns", ctypes.c_uint64),
        ("away_ns", ctypes.c_uint64),
        ("react_ns", ctypes.c_uint64),
        ("quantum_ns", ctypes.c_uint64),
        ("deadline_ns", ctypes.c_uint64),
        ("age_ns", ctypes.c_uint64),
        ("harm_permille", ctypes.c_uint64),
        ("credit_ns", ctypes.c_uint64),
        ("react_permille", ctypes.c_uint64),
        ("beside_permille", ctypes.c_uint64),
    )


MOST = MappingProxyType({name: (1 << 8 * ctypes.sizeof(kind)) - 1 for name, kind in Settings._fields_[2:]})
"""The settings that a user may change, each with its largest number."""


class _Times(ctypes.Structure):
    _fields_ = (
        ("count", ctypes.c_uint64),
        ("mean", ctypes.c_uint64),
        ("parts", ctypes.c_uint64 * KNOTS_IN_ALL),
        ("knots", ctypes.c_uint64 * KNOTS_IN_ALL),
    )


class _Cost(ctypes.Structure):
    _fields_ = (("time", _Times), ("gap", _Times))


class _Grant(ctypes.Structure):
    _fields_ = (
        ("task", ctypes.c_uint32),
        ("reason", ctypes.c_uint32),
        ("ticket", ctypes.c_uint64),
        ("identity", ctypes.c_uint64),
        ("predicted_ns", ctypes.c_uint64),
        ("gap_left_ns", ctypes.c_uint64),
    )


class Credit(ctypes.Structure):
    """KescoCredit: what a task may launch without asking."""

    _fields_ = (
        ("number", ctypes.c_uint64),
        ("until", ctypes.c_uint64),
        ("flight_ns", ctypes.c_uint64),
        ("flight_launches", ctypes.c_uint64),
        ("unknown_ns", ctypes.c_uint64),
    )


_COUNTERS = (
    *("launched", "done", "passed", "holds"),
    *(f"granted_{reason.name.lower()}" for reason in Reason),
    *(
        "abandoned",
        "waited_ns",
        "longest_ns",
        "filled_ns",
        "overruns",
        "gaps",
        "gap_ns",
        "wide_gaps",
        "wide_ns",
        "promises",
        "broken",
    ),
    *("harms", "harm_ns", "drifted", "unknown", "credited", "fillable_ns", "busy_ns"),
    *("beside", "trials", "beside_ns", "slow_permille"),
)


class TaskState(ctypes.Structure):
    """KescoTaskState: the counters of one task."""

    _fields_ = (
        ("active", ctypes.c_uint32),
        ("priority", ctypes.c_int32),
        ("waiting", ctypes.c_uint32),
        ("held_reason", ctypes.c_uint32),
        *((name, ctypes.c_uint64) for name in _COUNTERS),
    )

    def counters(self) -> dict[str, int]:
        """All counters by name."""
        return {name: int(getattr(self, name)) for name in _COUNTERS}


@dataclass(frozen=True, slots=True)
class Grant:
    """KescoGrant: a ticket that may go on."""

    task: int
    ticket: int
    identity: int
    reason: Reason
    predicted_ns: int
    gap_left_ns: int


@functools.cache
def _library(path: str) -> ctypes.CDLL:
    found = ctypes.CDLL(path)
    policy, number, small = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
    takes: dict[str, tuple[object, ...]] = {
        "defaults": (ctypes.POINTER(Settings), small),
        "new": (ctypes.POINTER(Settings),),
        "free": (policy,),
        "cost": (policy, small, number, ctypes.POINTER(_Cost)),
        "task_arrives": (policy, number, small, ctypes.c_int),
        "task_leaves": (policy, number, small),
        "passed": (policy, number, small, number),
        "waits": (policy, number, small, number, number),
        "begins": (policy, number, small, number),
        "abandoned": (policy, number, small, number),
        "done_late": (policy, number, small, number, number),
        "credited": (policy, number, small, number, number),
        "waited": (policy, number, small, number),
        "credit": (policy, small, ctypes.POINTER(Credit)),
        "predicts": (policy, small, number),
        "tell_return": (policy, small, number),
        "tell_time": (policy, small, number, number),
        "decide": (policy, number, ctypes.POINTER(_Grant), ctypes.c_size_t, ctypes.POINTER(number)),
        "holder": (policy,),
        "acting": (policy,),
        "task": (policy, small),
    }
    gives = {
        "new": policy,
        "free": None,
        "defaults": None,
        "decide": ctypes.c_size_t,
        "predicts": number,
        "task": ctypes.POINTER(TaskState),
    }
    found.kesco_credit_allows.argtypes = (ctypes.POINTER(Credit), number, number, number, number)
    for name, arguments in takes.items():
        function = getattr(found, f"kesco_policy_{name}")
        function.argtypes, function.restype = arguments, gives.get(name, ctypes.c_int)
    return found


def settings(
    kind: Kind, chosen: Mapping[str, int] = MappingProxyType({}), environ: Mapping[str, str] = os.environ
) -> Settings:
    """The library's defaults for a kind of policy, some of them (`MOST`) changed; `ValueError` for another name."""
    found = Settings()
    _library(str(policy_library(environ))).kesco_policy_defaults(ctypes.byref(found), kind)
    for name, value in chosen.items():
        if name not in MOST:
            raise ValueError(f"there is no setting '{name}'")
        setattr(found, name, value)
    return found


class Policy:
    """One policy at work; a context manager. Events return whether they made sense; then nothing has changed."""

    def __init__(self, chosen: Settings, environ: Mapping[str, str] = os.environ) -> None:
        self._library = _library(str(policy_library(environ)))
        self._policy = self._library.kesco_policy_new(ctypes.byref(chosen))
        if not self._policy:
            raise ValueError("these settings make no sense")
        self._grants, self._wake = (_Grant * _ROOM)(), ctypes.c_uint64()

    def __enter__(self) -> Policy:
        return self

    def __exit__(self, kind: type[BaseException] | None, what: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Free it; nothing may be asked of it afterwards."""
        self._library.kesco_policy_free(self._policy)
        self._policy = None

    def cost(self, task: int, identity: int, kernel: Kernel) -> bool:
        """What a profile knows of a kernel of an active task."""
        cost = _Cost(_times(kernel.time), _times(kernel.gap))
        return int(self._library.kesco_policy_cost(self._policy, task, identity, ctypes.byref(cost))) == 0

    def arrives(self, now: int, task: int, priority: int) -> bool:
        """A process attaches."""
        return int(self._library.kesco_policy_task_arrives(self._policy, now, task, priority)) == 0

    def leaves(self, now: int, task: int) -> bool:
        """A process is gone."""
        return int(self._library.kesco_policy_task_leaves(self._policy, now, task)) == 0

    def passed(self, now: int, task: int, identity: int) -> bool:
        """It launched without being held."""
        return int(self._library.kesco_policy_passed(self._policy, now, task, identity)) == 0

    def waits(self, now: int, task: int, identity: int, ticket: int) -> bool:
        """It stopped at a launch."""
        return int(self._library.kesco_policy_waits(self._policy, now, task, identity, ticket)) == 0

    def begins(self, now: int, task: int, ticket: int) -> bool:
        """What was granted is launched only now: its client had to wake up."""
        return int(self._library.kesco_policy_begins(self._policy, now, task, ticket)) == 0

    def abandoned(self, now: int, task: int, ticket: int) -> bool:
        """Its own deadline let it go."""
        return int(self._library.kesco_policy_abandoned(self._policy, now, task, ticket)) == 0

    def done(self, now: int, task: int, launches: int, late: int = 0) -> bool:
        """So many of its launches have ended, the last of them at most `late` nanoseconds before."""
        return int(self._library.kesco_policy_done_late(self._policy, now, task, launches, late)) == 0

    def waited(self, now: int, task: int, nanoseconds: int) -> bool:
        """It has waited so long for all that it launched."""
        return int(self._library.kesco_policy_waited(self._policy, now, task, nanoseconds)) == 0

    def credited(self, now: int, task: int, identity: int, credit: int) -> bool:
        """It launched on a credit."""
        return int(self._library.kesco_policy_credited(self._policy, now, task, identity, credit)) == 0

    def credit(self, task: int) -> Credit | None:
        """What a task may launch without asking, as of the last decision."""
        found = Credit()
        return found if self._library.kesco_policy_credit(self._policy, task, ctypes.byref(found)) else None

    def predicts(self, task: int, identity: int) -> int:
        """Nanoseconds that a kernel is taken for on a credit; 0: it has to ask."""
        return int(self._library.kesco_policy_predicts(self._policy, task, identity))

    def allows(self, credit: Credit, now: int, outstanding: int, launches: int, predicted: int) -> bool:
        """Whether a credit is enough for one more launch: what a client asks itself."""
        words = (now, outstanding, launches, predicted)
        return bool(self._library.kesco_credit_allows(ctypes.byref(credit), *words))

    def tell_return(self, task: int, at: int) -> bool:
        """A simulator knows when an idle task comes back."""
        return int(self._library.kesco_policy_tell_return(self._policy, task, at)) == 0

    def tell_time(self, task: int, ticket: int, time_ns: int) -> bool:
        """A simulator knows how long a waiting kernel takes."""
        return int(self._library.kesco_policy_tell_time(self._policy, task, ticket, time_ns)) == 0

    def decide(self, now: int) -> tuple[list[Grant], int]:
        """All that may go on now, and when to ask again (`NEVER`: after an event)."""
        found: list[Grant] = []
        while True:
            many = self._library.kesco_policy_decide(self._policy, now, self._grants, _ROOM, ctypes.byref(self._wake))
            found += [
                Grant(one.task, one.ticket, one.identity, Reason(one.reason), one.predicted_ns, one.gap_left_ns)
                for one in self._grants[:many]
            ]
            if many < _ROOM:
                return found, self._wake.value

    @property
    def holder(self) -> int:
        """The task whose gate is open; -1: none."""
        return int(self._library.kesco_policy_holder(self._policy))

    @property
    def acting(self) -> int:
        """The task whose gaps are filled; -1: none."""
        return int(self._library.kesco_policy_acting(self._policy))

    def task(self, task: int) -> TaskState | None:
        """The counters of a task, as of now; None if it never arrived."""
        found = self._library.kesco_policy_task(self._policy, task)
        return TaskState.from_buffer_copy(found.contents) if found else None


def _times(times: Times | None) -> _Times:
    if times is None:
        return _Times()
    parts, values = zip(*knots(times), strict=True)
    many = ctypes.c_uint64 * KNOTS_IN_ALL
    return _Times(times.count, times.total // times.count, many(*parts), many(*values))
