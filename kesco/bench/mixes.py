"""Mixes: the tasks that share one GPU, and the schemes by which they do; from ``mp/mixes.toml`` of the workloads."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kesco.bench.suite import NO_WORKLOADS, choose
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError


@dataclass(frozen=True, slots=True)
class Task:
    """One task: its program, its priority (9 comes first), its arguments, and how far its checksum may be off."""

    name: str
    program: str
    priority: int
    arguments: tuple[str, ...]
    tolerance: float


@dataclass(frozen=True, slots=True)
class Mix:
    """Tasks by descending priority; `program` is the one that was made of them by hand."""

    name: str
    title: str
    program: str
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Scheme:
    """One way to run a mix.

    `program` is what is run: ``serial`` or ``kesco``, a process for each task, or the name of a merged program, one
    process for all. `together` is False where the tasks run one after another, each with the GPU for itself. `mps` puts
    NVIDIA's Multi-Process Service between the processes and the GPU.
    """

    name: str
    program: str
    title: str
    together: bool = True
    mps: bool = False


SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("alone", "serial", "each serial program alone", together=False),
        Scheme("alone-kesco", "kesco", "each program of kesco alone", together=False),
        Scheme("baseline", "serial", "serial programs started together"),
        Scheme("mps", "serial", "serial programs with NVIDIA MPS", mps=True),
        Scheme("kesco", "kesco", "kesco's programs started together"),
        Scheme("mps-kesco", "kesco", "kesco's programs with NVIDIA MPS", mps=True),
        Scheme("zones", "zones", "one program, one host thread, stream zones as published"),
        Scheme("zones-fair", "zones-fair", "one program, one host thread, fair zones"),
        Scheme("threads", "threads", "one program, a host thread for each task"),
        Scheme("one-thread", "one-thread", "one program, a host thread that goes from task to task"),
    )
}
STYLE = "tasks"
"""What stands for a memory style in the names of their programs."""
PROCESSES = ("serial", "kesco")
"""The programs of which there is one for each task."""
FAIR = "zones-fair"
STRATEGIES = ("zones", FAIR)
"""The programs of which there is one for each mix, written by hand, and compiled by kesco with this strategy."""

MERGED = {"threads": False, "one-thread": True}
"""The programs of a mix that ``kesco merge`` makes of the tasks' programs, and whether with a single host thread."""
MEASURED = tuple(name for name in SCHEMES if name != "one-thread")
"""Those that can be started together: a single host thread goes to no other task while one waits for the start."""


def load(folder: Path, names: Iterable[str] = ()) -> list[Mix]:
    """The mixes below the workloads' folder, or those named; raises `UsageError` (K520, K521)."""
    path = folder / "mp" / "mixes.toml"
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        help_ = "run in the source tree of kesco, or name the folder with --workloads"
        what = f"cannot read {path}: {error.strerror}"
        raise UsageError(Diagnostic(NO_WORKLOADS, Severity.ERROR, what, help=help_)) from None
    return [_mix(name, found[name]) for name in choose("mix", tuple(names) or tuple(found), found)]


def _mix(name: str, facts: dict[str, object]) -> Mix:
    tasks = facts["tasks"]
    assert isinstance(tasks, list)
    of = tuple(Task(**{**one, "arguments": tuple(one["arguments"])}) for one in tasks)
    return Mix(name, str(facts["title"]), str(facts["program"]), of)
