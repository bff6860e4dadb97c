"""CPUs of their own for those that run at one time, so that what they do beside each other does not slow them down.

In: the CPUs that this process may use, and which of them are one core, as Linux says. Out: for each role its CPUs, or
none for any where there are too few. A role has whole cores, two of them where PyTorch is (it has threads that help).
Processes that take turns have the same role and so the same cores: they never run at once, and are the more alike. One
core at least is left to the rest, the first one, which the system uses itself.
"""
# ruff: noqa: D102

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROLES = {"high": 2, "low": 2, "daemon": 1, "mps": 1}
"""How many cores each has. What is measured alone is `high`."""
_TOPOLOGY = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


def listed(text: str) -> frozenset[int]:
    """The CPUs of a list as Linux writes it: `0-2,8`."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def siblings(cpu: int) -> frozenset[int]:
    """The CPUs of the core that one is of; it alone where nothing tells."""
    try:
        return listed(Path(_TOPOLOGY.format(cpu)).read_text()) | {cpu}
    except (OSError, ValueError):
        return frozenset((cpu,))


@dataclass(frozen=True, slots=True)
class Places:
    """The CPUs of each role; empty where there are too few, or nobody wants it."""

    roles: dict[str, frozenset[int]]
    cores: int

    def to_json(self) -> dict[str, object]:
        return {"cores": self.cores, "own": {role: sorted(cpus) for role, cpus in self.roles.items()}}

    @contextlib.contextmanager
    def begun_in(self, role: str) -> Iterator[None]:
        """What is started meanwhile runs there, and whatever it starts."""
        before = os.sched_getaffinity(0)
        try:
            if role in self.roles:
                os.sched_setaffinity(0, self.roles[role])
            yield
        finally:
            os.sched_setaffinity(0, before)

    def put(self, process: int, role: str) -> None:
        """Moves a process with all its threads; those that it starts later are there, too."""
        moved: set[int] = set()
        while role in self.roles and (new := _threads(process) - moved):
            for thread in new:
                with contextlib.suppress(ProcessLookupError):
                    os.sched_setaffinity(thread, self.roles[role])
            moved |= new


def _threads(process: int) -> set[int]:
    with contextlib.suppress(FileNotFoundError):
        return set(map(int, os.listdir(f"/proc/{process}/task")))
    return set()


def nowhere() -> Places:
    """Nobody has CPUs of its own."""
    return Places({}, 0)


def places(allowed: Iterable[int] | None = None, core_of: Callable[[int], frozenset[int]] = siblings) -> Places:
    """Cores for every role, in the order of their numbers."""
    usable = frozenset(os.sched_getaffinity(0) if allowed is None else allowed)
    cores = sorted({core_of(cpu) & usable for cpu in usable}, key=min)
    roles: dict[str, frozenset[int]] = {}
    if len(cores) > sum(ROLES.values()):
        rest = iter(cores[1:])
        for role, count in ROLES.items():
            roles[role] = frozenset[int]().union(*(next(rest) for _ in range(count)))
    return Places(roles, len(cores))
