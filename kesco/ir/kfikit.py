"""What is known of tasks that share a GPU, and its file form: JSON, by convention named ``*.kfikit``.

In: what was measured of each task's kernels. Out: one file for a machine's GPU, which grows by merging. A *task* is a
process, known by a key of its executable and arguments; its kernels are known by a 64-bit identity that the running
program can compute (`kesco_kernel_identity`). Readers of the file need nothing but a JSON parser:

    {"format": "kfikit", "version": 1, "gpu": …, "driver": …,
     "tasks": {key: {"display": …, "kernels": {identity, 16 hex digits:
       {"name": …, "grid": [x, y, z], "block": [x, y, z], "shared": bytes, "at": "file:line", "count": …,
        "time_ns": {"count", "total", "shortest", "longest", "median", "bins": [[n, many], …], "mean", "p90", "p99"},
        "gap_ns": the same, "p10" instead of the last two}}}}}

``time_ns`` is the kernel's time on the device, ``gap_ns`` how long the device then stood idle until the task's next
operation; either may be missing. Both are distributions as in ``*.kprof`` (`kesco.ir.costs.Times`); ``count``, ``mean``
and the quantiles are for people and not read. Identity 0 stands for no kernel: its gap is the one before the task's
first launch.

The daemon reads a form without JSON (`to_text`, kesco/runtime/fikit/costs_file.h). A file that is damaged, newer than
this program or of another kind is refused (K540); nothing of it is used.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir.costs import Cost, Costs, Identity, Origin, Three, Times, middle
from kesco.ir.kprof import count_from_json, three_from_json, times_from_json, times_to_json

VERSION = 1
BAD_STORE = "K540"
KNOTS = (0, 1, 2, 5, 10, 20, 30, 40, 50, 60, 70, 80, 90, 95, 99, 100)
"""Of which quantiles, in percent, the policy knows the values in any case (KescoTimes in policy.h)."""
_JUMPS = 8
KNOTS_IN_ALL = len(KNOTS) + 2 * _JUMPS
_WHOLE = 1_000_000
_KEY = re.compile(r"[\w.:+-]{1,200}")


@dataclass(frozen=True, slots=True)
class Kernel:
    """One kernel of a task: its name and launch, where it is launched (``file:line``, or empty), what was measured."""

    name: str = ""
    grid: Three = (0, 0, 0)
    block: Three = (0, 0, 0)
    shared: int = 0
    at: str = ""
    time: Times | None = None
    gap: Times | None = None

    def __add__(self, other: Kernel) -> Kernel:
        """Both measured; the description of `other` stays."""
        return replace(other, time=_sum(self.time, other.time), gap=_sum(self.gap, other.gap))


def _sum(one: Times | None, other: Times | None) -> Times | None:
    return one if other is None else other if one is None else one + other


@dataclass(frozen=True, slots=True)
class TaskProfile:
    """The kernels of one task by identity, ascending. `display` is the program's name, for people."""

    key: str
    kernels: tuple[tuple[int, Kernel], ...] = ()
    display: str = ""

    def __add__(self, other: TaskProfile) -> TaskProfile:
        found = dict(self.kernels)
        for identity, kernel in other.kernels:
            found[identity] = found[identity] + kernel if identity in found else kernel
        return TaskProfile(other.key, tuple(sorted(found.items())), other.display or self.display)

    @property
    def costs(self) -> Costs:
        """As a profile for `kesco compile --profile`; kernels of one place and launch are one there."""
        return Costs.of(Origin(method="fikit"), (_cost(one) for _, one in self.kernels if one.name))


def _cost(one: Kernel) -> Cost:
    identity = Identity("kernel", one.name, one.grid, one.block, one.shared, one.at)
    return Cost(identity, one.name.partition("(")[0], one.time, one.gap)


@dataclass(frozen=True, slots=True)
class Store:
    """The tasks that are known on one GPU, by key, ascending."""

    gpu: str = ""
    driver: str = ""
    tasks: tuple[TaskProfile, ...] = field(default=())

    def task(self, key: str) -> TaskProfile | None:
        """What is known of a task."""
        return next((one for one in self.tasks if one.key == key), None)

    def why_not_with(self, other: Store) -> str:
        """Why two stores must not be merged, or an empty text: times of one GPU say nothing of another."""
        return f"one is of '{self.gpu}', the other of '{other.gpu}'" if self.gpu != other.gpu else ""

    def __add__(self, other: Store) -> Store:
        """Both in one; see `why_not_with`. The later driver's name stays."""
        found = {one.key: one for one in self.tasks}
        for one in other.tasks:
            found[one.key] = found[one.key] + one if one.key in found else one
        return Store(other.gpu, other.driver, tuple(found[key] for key in sorted(found)))

    @property
    def costs(self) -> Costs:
        """All tasks as one profile for `kesco compile --profile`: kernels are found there by name, launch and line."""
        parts = [one.costs for one in self.tasks]
        joined = reduce(lambda one, other: one + other, parts, Costs(Origin(method="fikit")))
        return replace(joined, origin=Origin(self.gpu, self.driver, method="fikit"))


def merged(stores: Iterable[Store]) -> Store:
    """Several stores in one, at least one; they must be mergeable."""
    return reduce(lambda one, other: one + other, stores)


def knots(times: Times) -> tuple[tuple[int, int], ...]:
    """Millionths and the nanoseconds that this part of the times does not exceed, `KNOTS_IN_ALL` of them, ascending.

    The first is the shortest time, the last the longest, what is between is within 1 %. Who reads them draws a line
    from one to the next. So beside the values at `KNOTS` both ends of the jumps are there where such a line would be
    wrong by most: of gaps of microseconds and gaps of milliseconds none is one in between.
    """
    inner = [(percent * _WHOLE // 100, round(times.quantile(percent / 100))) for percent in KNOTS[1:-1]]
    jumps = sorted(_jumps(times), key=lambda jump: -jump[0])[:_JUMPS]
    ends = [(part, value) for _, part, *both in jumps for value in both]
    found = [(0, times.shortest), *sorted([*inner, *ends]), (_WHOLE, times.longest)]
    return (*found, *found[-1:] * (KNOTS_IN_ALL - len(found)))


def _jumps(times: Times) -> Iterator[tuple[int, int, int, int]]:
    """For each two bins in a row: how wrong a line is, the part of the times up to there, and the two values."""
    seen, last = 0, times.count - 1
    for (one, many), (other, _) in pairwise(times.bins):
        seen += many
        part = _WHOLE * seen // last
        low, high = (round(min(max(middle(number), times.shortest), times.longest)) for number in (one, other))
        place = bisect_right(KNOTS, part * 100 // _WHOLE, hi=len(KNOTS) - 1)
        if other > one + 1:
            yield (high - low) * (KNOTS[place] - KNOTS[place - 1]), part, low, high


def to_json(store: Store) -> str:
    """A store as text; the same store always gives the same text."""
    tasks = {one.key: _task_to_json(one) for one in store.tasks}
    found = {"format": "kfikit", "version": VERSION, "gpu": store.gpu, "driver": store.driver, "tasks": tasks}
    text = json.dumps(found, indent=1, ensure_ascii=False)
    return re.sub(r"\[\s+([-\d,\s]+?)\s+\]", lambda m: "[" + " ".join(m[1].split()) + "]", text) + "\n"


def _task_to_json(task: TaskProfile) -> dict[str, object]:
    kernels = {f"{identity:016x}": _kernel_to_json(one) for identity, one in task.kernels}
    return {"display": task.display, "kernels": kernels}


def _kernel_to_json(one: Kernel) -> dict[str, object]:
    found: dict[str, object] = {
        "name": one.name, "grid": list(one.grid), "block": list(one.block), "shared": one.shared, "at": one.at,
        "count": one.time.count if one.time else 0,
    }  # fmt: skip
    for name, times, wanted in (("time_ns", one.time, (90, 99)), ("gap_ns", one.gap, (10,))):
        if times is not None:
            people = {f"p{part}": round(times.quantile(part / 100)) for part in wanted}
            found[name] = times_to_json(times) | {"mean": times.total // times.count} | people
    return found


def to_text(store: Store) -> str:
    """What the daemon reads: a line for the form, then one for each task and each of its kernels.

    ``task KEY`` and ``kernel IDENTITY count mean knots… count mean knots…``, the time's and then the gap's, each knot
    two numbers; zeros where nothing is known.
    """
    lines = ["kesco-fikit-costs 2"]
    for task in store.tasks:
        lines.append(f"task {task.key}")
        for identity, one in task.kernels:
            both = " ".join(_times_to_text(times) for times in (one.time, one.gap))
            lines.append(f"kernel {identity:016x} {both}")
    return "\n".join([*lines, "end", ""])


def _times_to_text(times: Times | None) -> str:
    if times is None:
        return " ".join("0" * (2 + 2 * KNOTS_IN_ALL))
    return " ".join(map(str, (times.count, times.total // times.count, *chain(*knots(times)))))


def read(path: Path) -> Store:
    """The store in a file; raises `UsageError` (K540) with what is wrong with it."""
    again = "measure it again: 'kesco fikit profile'"
    try:
        found = json.loads(path.read_bytes().decode("utf-8"))
    except OSError as error:
        raise _refused(f"cannot read {path}: {error.strerror}", "'kesco fikit profile' writes one") from None
    except (ValueError, RecursionError):
        raise _refused(f"{path} is no profile of tasks: it is not JSON", again) from None
    if not isinstance(found, dict) or found.get("format") != "kfikit":
        raise _refused(f"{path} is no profile of tasks: its 'format' is not 'kfikit'", again)
    version = found.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        what = f"{path} has version {version} of the form; this kesco reads version {VERSION}"
        raise _refused(what, "use the kesco that wrote it, or one that is newer" if newer else again)
    try:
        return from_json(found)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise _refused(f"{path} is damaged: {what}", again) from None


def _refused(what: str, help_: str) -> UsageError:
    return UsageError(Diagnostic(BAD_STORE, Severity.ERROR, what, help=help_))


def from_json(found: dict[str, Any]) -> Store:
    """A store from the file's content, of version `VERSION`; `KeyError`, `TypeError`, `ValueError` if bad."""
    tasks = [_task(str(key), one) for key, one in sorted(found["tasks"].items())]
    return Store(str(found.get("gpu", "")), str(found.get("driver", "")), tuple(tasks))


def _task(key: str, found: dict[str, Any]) -> TaskProfile:
    if not _KEY.fullmatch(key):
        raise ValueError(f"'{key}' cannot be a task's key")
    kernels = ((_identity(text), _kernel(one)) for text, one in found["kernels"].items())
    return TaskProfile(key, tuple(sorted(kernels, key=lambda pair: pair[0])), str(found.get("display", "")))


def _identity(text: str) -> int:
    if not re.fullmatch(r"[0-9a-f]{16}", text):
        raise ValueError(f"'{text}' cannot be a kernel's identity")
    return int(text, 16)


def _kernel(found: dict[str, Any]) -> Kernel:
    time, gap = (times_from_json(found[name]) if name in found else None for name in ("time_ns", "gap_ns"))
    shape = (
        three_from_json(found["grid"]),
        three_from_json(found["block"]),
        count_from_json(found["shared"], "shared"),
    )
    return Kernel(str(found["name"]), *shape, str(found.get("at", "")), time, gap)
