"""Run any CUDA program and record what the device did when: `kesco trace`.

In: a program with its arguments. Out: its `Activities`. Nothing of the program is rebuilt: the driver itself loads a
library (kesco/runtime/tracer) that asks CUPTI for activities, and kernels run side by side as without it.

1. The library is built for this machine's CUPTI; 2. the program runs, with the terminal as if nobody looked;
3. the records are read (`record`), one for each process that used the device.

It measures nothing itself, and it cannot see into a program for which CUPTI sees nothing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.ir.activity import Activities
from kesco.toolchain.cuda import Cuda
from kesco.toolchain.process import run
from kesco.toolchain.tracer import tracer_library
from kesco.tracing.record import joined, read

NOTHING, LOST, FAILED = "K551", "K552", "K553"
_HELP = "docs/report.md says what is needed: a GPU, its driver, and the right to use its counters"


def trace(
    cuda: Cuda, command: Sequence[str], limit: float | None, environ: Mapping[str, str] = os.environ
) -> tuple[Activities, tuple[Diagnostic, ...]]:
    """What the device did while a program ran, and what should be said of the run.

    Raises `ToolchainError` where CUPTI is missing (K550) or the program cannot be started, and `InputError` (K551)
    where nothing was recorded.
    """
    with TemporaryDirectory(prefix="kesco-trace-") as name:
        library, record = tracer_library(cuda, Path(name), environ), Path(name) / "record"
        with_tracer = {**environ, "CUDA_INJECTION64_PATH": str(library), "CUDA_TRACE_RECORD": str(record)}
        finished = run(command, timeout=limit, env=with_tracer, through=True)
        files = sorted(Path(name).glob("record.*"), key=lambda path: int(path.suffix[1:]))
        runs = [read(path.read_text("utf-8", "replace")) for path in files]
    activities = joined(Path(command[0]).name, runs)
    said = []
    if finished.returncode:
        what = f"'{command[0]}' ended with code {finished.returncode}: what it did until then is in the trace"
        said.append(
            Diagnostic(FAILED, Severity.WARNING, what, help="run it without 'kesco trace' to see whether it does")
        )
    if not activities.work:
        raise InputError(*said, _nothing(command[0], [one.failed for one in runs]))
    if activities.lost:
        what = f"{activities.lost} activities were not recorded: the trace has gaps that were none"
        said.append(Diagnostic(LOST, Severity.WARNING, what, help="trace a shorter run"))
    return activities, tuple(said)


def _nothing(program: str, failed: Sequence[Sequence[str]]) -> Diagnostic:
    calls = [call for one in failed for call in one]
    if calls:
        what = f"nothing of '{program}' could be recorded: CUPTI refused {calls[0]}"
    elif failed:
        what = f"'{program}' gave the device nothing to do"
    else:
        what = f"'{program}' did not load the CUDA driver, so nothing was recorded"
    return Diagnostic(NOTHING, Severity.ERROR, what, help=_HELP)
