"""Run a program on a GPU and measure what each of its operations takes: `kesco profile`.

In: source files, arguments for the program, options. Out: a `Costs`, and what should be said about the run.

1. `check.prepare` builds the program with nvcc as `kesco check --gpu` does, and the recorder that goes in front of the
   CUDA runtime; 2. the program runs with ``CUDA_RECORDER_TIMES``: the recorder puts events around each operation
   (kesco/runtime/recorder/stopwatch.cpp) and writes what they measured behind the operation's line of the record;
3. `costs_of` gathers the times by identity.

Each operation runs alone, since the recorder waits for it: what one takes beside others is not measured, and neither
are idle gaps, nor work inside CUDA graphs. Nothing is ever estimated here: what has no time is left out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.check import Prepared, Run, endings, prepare
from kesco.check.places import Places
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, ToolchainError
from kesco.ir.costs import Cost, Costs, Identity, Origin, Three, Times
from kesco.llvm.names import display_name
from kesco.options import Options
from kesco.toolchain import recorder
from kesco.verify.races import Findings
from kesco.verify.trace import Copied, Device, Failed, Launched, Timed, Trace, Unsupported, read

NOTHING, NOT_ALL = "K534", "K535"
_NO_GPU_HELP = "run it on a machine with a GPU: nothing can be measured without one"
QUEUED, UNQUEUED = "events, queued", "events, with the host's launch in the times"
_LIMITS = ("sms", "threads_per_sm", "blocks_per_sm", "registers_per_sm", "shared_per_sm")


def profile(path: str, run: Run, options: Options) -> tuple[Costs, tuple[Diagnostic, ...]]:
    """The costs of a program's operations in one run; raises `KescoError` where it cannot be built, run or measured."""
    with TemporaryDirectory(prefix="kesco-profile-") as name:
        prepared = prepare(path, run.others, options, Path(name), gpu=True)
        return measure(prepared, run, os.environ)


def measure(prepared: Prepared, run: Run, environ: Mapping[str, str]) -> tuple[Costs, tuple[Diagnostic, ...]]:
    """Run a program that `check.prepare` built for a GPU, and read what was measured."""
    program, record, kernels = (prepared.folder / name for name in ("program", "record", "names"))
    record.unlink(missing_ok=True)
    kernels.write_text("@\n" + "".join(f"{name}\n" for name in sorted(prepared.effects)))  # arguments are not asked for
    with_times = {**environ, "CUDA_RECORDER_TIMES": "1"}
    ran = recorder.run_program(prepared.toolchain, program, run.arguments, record, kernels, run.limit, with_times)
    there = record.exists()
    trace = read(record.read_bytes().rstrip(b"\0").decode("utf-8", "replace") if there else "")
    places = Places.of(prepared.toolchain)
    places.load(trace)
    full = trace.full or not there
    ended = endings.how_it_ended(prepared.source, ran, _findings(trace), places, run.limit, full, gpu=True)
    if any(one.code == endings.NO_GPU for one in ended):
        raise ToolchainError(*(replace(one, help=_NO_GPU_HELP) for one in ended))
    if any(one.code in endings.FATAL for one in ended):
        raise InputError(*ended)
    costs = costs_of(trace, places, (prepared.source, *run.others))
    if not costs.costs:
        what = f"no operation of {prepared.source} could be measured"
        help_ = "give the arguments with which it uses the GPU after '--'; work inside CUDA graphs is not measured"
        raise InputError(*ended, Diagnostic(NOTHING, Severity.ERROR, what, help=help_))
    missed, all_ = _missed(trace)
    if missed:
        what = f"{missed} of {all_} operations could not be measured and are not in the profile"
        help_ = "docs/profile.md says what cannot be measured"
        ended.append(Diagnostic(NOT_ALL, Severity.WARNING, what, help=help_))
    return costs, tuple(ended)


def _findings(trace: Trace) -> Findings:
    """What is asked of a run that is not checked."""
    operations = sum(isinstance(one, Launched | Copied) for one in trace.events)
    kernels = sum(isinstance(one, Launched) for one in trace.events)
    unsupported = tuple(dict.fromkeys(one for one in trace.events if isinstance(one, Unsupported)))
    failed = tuple(dict.fromkeys(one for one in trace.events if isinstance(one, Failed)))
    return Findings(operations=operations, kernels=kernels, unsupported=unsupported, failed=failed)


def _missed(trace: Trace) -> tuple[int, int]:
    """How many operations of the record have no time, and how many there are."""
    works = [n for n, one in enumerate(trace.events) if isinstance(one, Launched | Copied)]
    timed = sum(_time_of(trace, number) is not None for number in works)
    return len(works) - timed, len(works)


def _time_of(trace: Trace, number: int) -> Timed | None:
    """The time of the operation that is event `number`, where it was measured."""
    behind = trace.events[number + 1] if number + 1 < len(trace.events) else None
    return behind if isinstance(behind, Timed) and behind.nanoseconds >= 0 else None


def costs_of(trace: Trace, places: Places, sources: Sequence[str]) -> Costs:
    """The times of a record by identity; `sources` are the files that the program was built from."""
    found: dict[Identity, tuple[list[int], Cost]] = {}
    device = next((one for one in trace.events if isinstance(one, Device)), None)
    queued = True
    for number, event in enumerate(trace.events):
        timed = _time_of(trace, number) if isinstance(event, Launched | Copied) else None
        if timed is None or not isinstance(event, Launched | Copied):
            continue
        queued = queued and timed.queued
        cost = _cost(event, timed, places)
        found.setdefault(cost.identity, ([], cost))[0].append(timed.nanoseconds)
    costs = [replace(cost, time=Times.of(times)) for times, cost in found.values()]
    return Costs.of(_origin(device, sources, QUEUED if queued else UNQUEUED), costs)


def _cost(event: Launched | Copied, timed: Timed, places: Places) -> Cost:
    span = places.of_stack(event.stack)
    at = f"{span.path}:{span.line}" if span else ""
    if isinstance(event, Copied):
        kind = "memset" if "Memset" in event.function else "copy"
        written = sum(one.width * one.rows for one in event.ranges if one.writes)
        return Cost(Identity(kind, event.function, at=at), event.function, bytes=written)
    identity = Identity("kernel", event.name, _three(event.grid), _three(event.block), event.shared, at)
    known = (None if value < 0 else value for value in (timed.registers, timed.static_shared))
    return Cost(identity, display_name(event.name), None, None, *known)


def _three(text: str) -> Three:
    x, y, z = map(int, text.split(","))
    return x, y, z


def _origin(device: Device | None, sources: Sequence[str], method: str) -> Origin:
    digests = tuple(sorted((one, hashlib.sha256(Path(one).read_bytes()).hexdigest()) for one in sources))
    if device is None:
        return Origin(method=method, sources=digests)
    limits = tuple((name, value) for name in _LIMITS if (value := getattr(device, name)) > 0)
    driver, runtime = (f"{one // 1000}.{one % 1000 // 10}" for one in (device.driver, device.runtime))
    return Origin(device.name, driver, runtime, method, digests, tuple(sorted(limits)))
