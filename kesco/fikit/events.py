"""What a daemon recorded (`kesco fikit serve --record`), as holds and busy times: for explain and for Perfetto.

In: the file's lines; their form says ``kesco/runtime/fikit/recorder.h``. Out: `Recorded`, and from that JSON in the
"Trace Event Format" (Google, 2016) that Perfetto opens. A line that was cut off is left out; a file of another kind is
refused (K545). Times are nanoseconds of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.fikit.policy import Held, Reason

BAD_EVENTS = "K545"
_HEAD = "kesco-fikit-events 1"


@dataclass(frozen=True, slots=True)
class Hold:
    """One launch that stopped; `reason` is None where the client's own deadline let it go."""

    task: str
    kernel: str
    begin: int
    end: int
    held: Held
    reason: Reason | None
    predicted_ns: int
    gap_left_ns: int


@dataclass(frozen=True, slots=True)
class Busy:
    """From a launch on an empty GPU until all that the task had launched was known to be done."""

    task: str
    begin: int
    end: int
    launches: int


@dataclass(frozen=True, slots=True)
class Recorded:
    """All that a daemon saw; tasks by their names, which are made unique, with the highest priority first."""

    tasks: tuple[str, ...]
    holds: tuple[Hold, ...]
    busy: tuple[Busy, ...]


@dataclass(slots=True)
class _Task:
    name: str
    priority: int
    kernels: dict[int, str] = field(default_factory=dict)
    waiting: dict[int, tuple[int, int]] = field(default_factory=dict)  # ticket to when and which kernel
    launched: int = 0
    done: int = 0
    since: int = 0
    before: int = 0


class _Reader:
    def __init__(self) -> None:
        self.present: dict[int, _Task] = {}
        self.all: list[_Task] = []
        self.names: dict[int, dict[int, str]] = {}
        self.holds: list[Hold] = []
        self.busy: list[Busy] = []

    def line(self, words: list[str]) -> None:
        kind, task, *rest = words[0], int(words[1 if words[0] == "K" else 2]), *words[3:]
        if kind == "T":
            made = _Task(f"{' '.join(rest[2:])} (pid {rest[1]}, priority {rest[0]})", int(rest[0]))
            self.present[task] = made
            self.all.append(made)
        elif (one := self.present.get(task)) is None:
            return
        elif kind == "K":
            one.kernels[int(words[2], 16)] = " ".join(words[3:])
        else:
            self._happened(kind, int(words[1]), one, rest)
            if kind == "L":
                del self.present[task]

    def _happened(self, kind: str, time: int, one: _Task, rest: list[str]) -> None:
        if kind == "W":
            one.waiting[int(rest[0])] = (time, int(rest[1], 16))
        elif kind in "GA":
            begin, kernel = one.waiting.pop(int(rest[0]), (time, 0))
            held, reason = (Held(int(rest[2])), Reason(int(rest[1]))) if kind == "G" else (Held.NOT_HELD, None)
            said = (int(rest[3]), int(rest[4])) if kind == "G" else (0, 0)
            name = one.kernels.get(kernel, f"{kernel:016x}")
            self.holds.append(Hold(one.name, name, begin, max(begin, time), held, reason, *said))
        if kind in "PGAC":
            if one.launched == one.done:
                one.since, one.before = time, one.launched
            one.launched += 1
        elif kind == "B" and one.launched == one.done + 1:
            one.since = time  # it slept until now
        elif kind in "DL":
            done = one.launched if kind == "L" else min(int(rest[0]), one.launched)
            if done == one.launched and one.done < done:
                self.busy.append(Busy(one.name, one.since, max(one.since, time), done - one.before))
            one.done = max(done, one.done)


def read(path: Path) -> Recorded:
    """The record in a file; raises `UsageError` (K545) with what is wrong with it."""
    try:
        lines = path.read_text("utf-8", "replace").splitlines()
    except OSError as error:
        raise _refused(f"cannot read {path}: {error.strerror}") from None
    if not lines or lines[0] != _HEAD:
        raise _refused(f"{path} is no record of a daemon")
    reader = _Reader()
    for number, line in enumerate(lines[1:], 2):
        try:
            reader.line(line.split())
        except (IndexError, ValueError):
            if number < len(lines):
                raise _refused(f"{path}:{number}: damaged") from None
    ranked = sorted(reader.all, key=lambda one: -one.priority)
    return Recorded(tuple(one.name for one in ranked), tuple(reader.holds), tuple(reader.busy))


def _refused(what: str) -> UsageError:
    help_ = "'kesco fikit serve --record FILE' writes one"
    return UsageError(Diagnostic(BAD_EVENTS, Severity.ERROR, what, help=help_))


def to_perfetto(found: Recorded) -> str:
    """A process for each task, with a line for what it has on the GPU and one for its holds."""
    events: list[dict[str, Any]] = []
    number = {name: place + 1 for place, name in enumerate(found.tasks)}
    first = min([*(one.begin for one in found.holds), *(one.begin for one in found.busy)], default=0)
    for name, pid in number.items():
        events.append({"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": name}})
        events.append({"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}})
        for tid, what in ((1, "on the GPU, as reported"), (2, "held")):
            events.append({"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": {"name": what}})

    def slice_of(one: Busy | Hold, tid: int, name: str, args: dict[str, object]) -> None:
        times = {"ts": (one.begin - first) / 1000, "dur": (one.end - one.begin) / 1000}
        events.append({"ph": "X", "name": name, "pid": number[one.task], "tid": tid, **times, "args": args})

    for busy in found.busy:
        slice_of(busy, 1, f"{busy.launches} launches", {})
    for hold in found.holds:
        granted = hold.reason.name.lower() if hold.reason is not None else "own deadline"
        said: dict[str, object] = {"because": hold.held.name.lower(), "let go": granted}
        said |= {"predicted_ns": hold.predicted_ns, "gap_left_ns": hold.gap_left_ns}
        slice_of(hold, 2, hold.kernel, said)
    about = {"format": "kesco-fikit-events", "version": 1}
    return json.dumps({"displayTimeUnit": "ns", "otherData": about, "traceEvents": events}, indent=0) + "\n"
