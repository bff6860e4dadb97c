"""A record of several tasks on one GPU, to be replayed: what each launched, when, and how long it took.

In: a file, by convention ``*.kftrace``. Out: a frozen `Trace`, and back. It is the host's side that is kept (how long
the program computed between two launches, whether it then waited for the GPU), since that stays the same whoever else
is on the GPU; gaps and waiting times come out of the replay. JSON:

    {"format": "kftrace", "version": 1, "gpu": …,
     "kernels": [{"identity": 16 hex digits, "name": …, "grid": [x, y, z], "block": [x, y, z], "shared": bytes,
                  "share": 0 to 1}, …],
     "tasks": [{"name": …, "key": …, "priority": 0 to 9, "arrives_ns": …, "ends_ns": …,
                "steps": [[gap_ns, kernel, time_ns, waits], …]}, …]}

A step is one launch. ``gap_ns`` is the host's own time before it: since the last launch returned, or, where the host
waited for it (``waits`` is 1), since that was done. ``kernel`` is a place in the list of kernels, ``time_ns`` how long
it took on the GPU alone. ``ends_ns`` is the host's time behind the last one, for which it always waits. ``share``
says how much of the GPU a kernel can use (1 where it is missing); it matters where kernels of several tasks run at
once.

A file that is damaged or newer than this program is refused (K548).
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir.costs import Three
from kesco.ir.kprof import count_from_json, three_from_json

VERSION = 1
BAD_TRACE = "K548"


@dataclass(frozen=True, slots=True)
class TracedKernel:
    """A kernel of a trace, as programs know it; `share` is how much of the GPU it can use, above 0, at most 1."""

    identity: int
    name: str = ""
    grid: Three = (1, 1, 1)
    block: Three = (1, 1, 1)
    shared: int = 0
    share: float = 1.0


@dataclass(frozen=True, slots=True)
class Step:
    """One launch: the host's time before it, which kernel, its time on the GPU; whether the host waits for its end."""

    gap_ns: int
    kernel: int
    time_ns: int
    waits: bool


@dataclass(frozen=True, slots=True)
class TracedTask:
    """One process: when it comes, its launches in order, and the host's time behind the last one. 9 is most urgent."""

    name: str
    priority: int
    steps: tuple[Step, ...]
    arrives_ns: int = 0
    ends_ns: int = 0
    key: str = ""


@dataclass(frozen=True, slots=True)
class Trace:
    """Several tasks and the kernels that they share."""

    kernels: tuple[TracedKernel, ...]
    tasks: tuple[TracedTask, ...]
    gpu: str = ""


def to_json(trace: Trace) -> str:
    """A trace as text, a line for each kernel and each step; the same trace always gives the same text."""
    head = json.dumps({"format": "kftrace", "version": VERSION, "gpu": trace.gpu}, ensure_ascii=False)[:-1]
    kernels = ",\n  ".join(json.dumps(_kernel_to_json(one), ensure_ascii=False) for one in trace.kernels)
    tasks = ",\n  ".join(_task_to_json(one) for one in trace.tasks)
    return f'{head},\n "kernels": [\n  {kernels}],\n "tasks": [\n  {tasks}]}}\n'


def _kernel_to_json(one: TracedKernel) -> dict[str, object]:
    return {
        "identity": f"{one.identity:016x}", "name": one.name, "grid": list(one.grid), "block": list(one.block),
        "shared": one.shared, "share": one.share,
    }  # fmt: skip


def _task_to_json(one: TracedTask) -> str:
    head = {
        "name": one.name, "key": one.key, "priority": one.priority, "arrives_ns": one.arrives_ns,
        "ends_ns": one.ends_ns,
    }  # fmt: skip
    steps = ",\n    ".join(f"[{s.gap_ns}, {s.kernel}, {s.time_ns}, {int(s.waits)}]" for s in one.steps)
    return f'{json.dumps(head, ensure_ascii=False)[:-1]},\n   "steps": [\n    {steps}]}}'


def read(path: Path) -> Trace:
    """The trace in a file; raises `UsageError` (K548) with what is wrong with it."""
    again = "docs/fikit.md describes the form; 'kesco fikit synthesize' writes an example"
    try:
        found = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise _refused(f"cannot read {path}: {error.strerror}", again) from None
    except (ValueError, RecursionError):
        raise _refused(f"{path} is no trace: it is not JSON", again) from None
    if not isinstance(found, dict) or found.get("format") != "kftrace":
        raise _refused(f"{path} is no trace: its 'format' is not 'kftrace'", again)
    if found.get("version") != VERSION:
        what = f"{path} has version {found.get('version')} of the form; this kesco reads version {VERSION}"
        raise _refused(what, "use the kesco that wrote it")
    try:
        return from_json(found)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise _refused(f"{path} is damaged: {what}", again) from None


def _refused(what: str, help_: str) -> UsageError:
    return UsageError(Diagnostic(BAD_TRACE, Severity.ERROR, what, help=help_))


def from_json(found: dict[str, Any]) -> Trace:
    """A trace from the file's content, of version `VERSION`; `KeyError`, `TypeError`, `ValueError` if bad."""
    kernels = tuple(_kernel(one) for one in found["kernels"])
    tasks = tuple(_task(one, len(kernels)) for one in found["tasks"])
    if not tasks:
        raise ValueError("it has no tasks")
    if len({one.name for one in tasks}) < len(tasks):
        raise ValueError("two of its tasks have the same name")
    return Trace(kernels, tasks, str(found.get("gpu", "")))


def together(traces: Sequence[Trace]) -> Trace:
    """Traces of single tasks, or of several, as one; a name that is there already gets a number behind it."""
    kernels: list[TracedKernel] = []
    tasks: list[TracedTask] = []
    for one in traces:
        offset = len(kernels)
        kernels += one.kernels
        for task in one.tasks:
            steps = tuple(replace(step, kernel=step.kernel + offset) for step in task.steps)
            taken, name, number = {known.name for known in tasks}, task.name, 2
            while name in taken:
                name, number = f"{task.name} {number}", number + 1
            tasks.append(replace(task, name=name, steps=steps))
    return Trace(tuple(kernels), tuple(tasks), traces[0].gpu)


def _kernel(found: dict[str, Any]) -> TracedKernel:
    if not re.fullmatch(r"[0-9a-f]{16}", found["identity"]):
        raise ValueError(f"'{found['identity']}' cannot be a kernel's identity")
    share = found.get("share", 1.0)
    if isinstance(share, bool) or not isinstance(share, int | float) or not 0 < share <= 1:
        raise ValueError("'share' is not above 0 and at most 1")
    grid, block = three_from_json(found["grid"]), three_from_json(found["block"])
    shared = count_from_json(found["shared"], "shared")
    return TracedKernel(int(found["identity"], 16), str(found["name"]), grid, block, shared, float(share))


def _task(found: dict[str, Any], kernels: int) -> TracedTask:
    priority = count_from_json(found["priority"], "priority")
    if priority > 9:
        raise ValueError("a priority is at most 9")
    steps = tuple(_step(one, kernels) for one in found["steps"])
    if not steps:
        raise ValueError(f"task '{found['name']}' launches nothing")
    arrives, ends = (_time(found.get(name, 0), name) for name in ("arrives_ns", "ends_ns"))
    return TracedTask(str(found["name"]), priority, steps, arrives, ends, str(found.get("key", "")))


def _step(found: Any, kernels: int) -> Step:
    gap, kernel, time, waits = found
    if not 0 <= count_from_json(kernel, "kernel") < kernels:
        raise ValueError(f"a step launches kernel {kernel}, which is not there")
    if waits not in (0, 1):
        raise ValueError("whether a step waits is 0 or 1")
    return Step(_time(gap, "gap_ns"), kernel, _time(time, "time_ns"), bool(waits))


def _time(value: Any, name: str) -> int:
    if count_from_json(value, name) >= 1 << 50:
        raise ValueError(f"'{name}' is more than ten days")
    return int(value)
