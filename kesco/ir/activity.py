"""What a device did in one run of a program, and when: measured activities.

Times are microseconds from the first activity's beginning.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Activity:
    """One kernel, copy or memset, or one wait of the host.

    `kind` is ``kernel``, ``copy``, ``memset`` or ``wait``; `stream` is the driver's number of the stream, unique within
    a `context` of a `device` (-1: of the whole device). `bytes` is what a copy or memset moved. `detail` is the launch
    configuration, the direction of a copy, or what the host waited for.
    """

    kind: str
    name: str
    start: float
    end: float
    device: int = 0
    context: int = 0
    stream: int = -1
    bytes: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Activities:
    """The activities of one run, by start, of the program `name`; `lost` of them were not recorded."""

    name: str
    all: tuple[Activity, ...]
    lost: int = 0

    @property
    def work(self) -> tuple[Activity, ...]:
        """What the device did: everything but waits of the host."""
        return tuple(one for one in self.all if one.kind != "wait")
