"""What the client measured of a task (``kesco/runtime/fikit/measure.cpp``) as a part of a profile.

In: files of samples, one for each process of the task. Out: a `TaskProfile`. A line that was cut off because its
process was ended is left out. A file of another kind is refused, and an empty one: the client empties what it cannot
write whole, as in a full folder.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.fikit.trace import Step, Trace, TracedKernel, TracedTask
from kesco.ir.costs import Times
from kesco.ir.kfikit import Kernel, TaskProfile

NO_SAMPLES = "K541"
_HEAD = "kesco-fikit-samples 1 "


def task_profile(key: str, display: str, files: Iterable[Path]) -> TaskProfile:
    """All samples of a task; `InputError` (K541) where there are none."""
    parts = [_read(key, display, file) for file in sorted(files)]
    whole = reduce(lambda one, other: one + other, parts, TaskProfile(key, (), display))
    if not whole.kernels:
        what = f"'{display}' launched no kernel that could be measured"
        help_ = "it must use the CUDA driver from this process or its children; 'kesco doctor' says what is there"
        raise InputError(Diagnostic(NO_SAMPLES, Severity.ERROR, what, help=help_))
    return whole


def traced(name: str, key: str, priority: int, files: Iterable[Path]) -> Trace:
    """The launches of a task in order, as a trace to replay: of its process that launched most (K541 without any)."""
    best: tuple[list[TracedKernel], list[Step]] = ([], [])
    for file in sorted(files):
        found = _steps(file.read_text("utf-8", "replace").splitlines(keepends=True))
        best = max(best, found, key=lambda one: len(one[1]))
    if not best[1]:
        raise InputError(Diagnostic(NO_SAMPLES, Severity.ERROR, f"'{name}' launched no kernel that could be recorded"))
    return Trace(tuple(best[0]), (TracedTask(name, priority, tuple(best[1]), key=key),))


def _steps(lines: list[str]) -> tuple[list[TracedKernel], list[Step]]:
    kernels: list[TracedKernel] = []
    places: dict[str, int] = {}
    steps = []
    for line in lines:
        words = line.split()
        if not line.endswith("\n") or not words:
            continue
        if words[0] == "K" and len(words) >= 9 and words[1] not in places:
            gx, gy, gz, bx, by, bz, shared = map(int, words[2:9])
            places[words[1]] = len(kernels)
            kernels.append(TracedKernel(int(words[1], 16), " ".join(words[9:]), (gx, gy, gz), (bx, by, bz), shared))
        elif words[0] == "S" and len(words) == 6 and words[1] in places:
            steps.append(Step(int(words[4]), places[words[1]], max(1, int(words[2])), words[5] == "1"))
    return kernels, steps


def _read(key: str, display: str, file: Path) -> TaskProfile:
    lines = file.read_text("utf-8", "replace").splitlines(keepends=True)
    if not lines:
        what = f"what '{display}' took could not be written whole below {file.parent}"
        raise InputError(Diagnostic(NO_SAMPLES, Severity.ERROR, what, help="is it full? set TMPDIR to another folder"))
    if not lines[0].startswith(_HEAD):
        raise InputError(Diagnostic(NO_SAMPLES, Severity.ERROR, f"{file} has no samples of this kesco's form"))
    kernels: dict[int, Kernel] = {}
    times: dict[int, list[int]] = {}
    gaps: dict[int, list[int]] = {}
    for line in lines[1:]:
        words = line.split()
        if not line.endswith("\n") or not words:
            continue
        if words[0] == "K" and len(words) >= 9:
            gx, gy, gz, bx, by, bz, shared = map(int, words[2:9])
            kernels[int(words[1], 16)] = Kernel(" ".join(words[9:]), (gx, gy, gz), (bx, by, bz), shared)
        elif words[0] == "S" and len(words) == 6:
            times.setdefault(int(words[1], 16), []).append(int(words[2]))
            if words[3] != "-":
                gaps.setdefault(int(words[1], 16), []).append(int(words[3]))
    found = []
    for identity, one in sorted(kernels.items()):
        if identity in times:
            gap = Times.of(gaps[identity]) if identity in gaps else None
            found.append((identity, replace(one, time=Times.of(times[identity]), gap=gap)))
    return TaskProfile(key, tuple(found), display)
