"""``kesco compile --report``: the page beside the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kesco.cli.output import writable, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

if TYPE_CHECKING:
    from kesco.ir.compilation import Compilation
    from kesco.ir.timeline import Timeline


def report_target(name: str, source: str, target: Path | None) -> Path:
    """Where the page goes, before anything is done; raises `UsageError` where it cannot go there."""
    path = Path(name)
    if path.is_dir():
        path = path / f"{Path(source).stem}.html"
    for other in (Path(source), target):
        if other is not None and (path == other or (path.exists() and other.exists() and path.samefile(other))):
            what = f"{path} is the program itself"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="give --report a name such as out.html"))
    writable(path)
    return path


def measured_run(trace: str | None, shown: Path | None) -> tuple[Timeline, ...]:
    """The timeline of a trace; raises `UsageError` where it cannot be read, or no page would show it."""
    if trace is None:
        return ()
    if shown is None:
        what = "--trace is shown in the page of --report"
        raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="give --report OUT.html, too"))
    from kesco.tracing.overlap import timeline
    from kesco.tracing.perfetto import read

    return (timeline(Path(trace).name, read(Path(trace))),)


def write_report(path: Path, result: Compilation, measured: tuple[Timeline, ...] = ()) -> None:
    """Write the page whole or not at all."""
    from kesco.report.page import page

    write_whole(path, page(result, measured).encode())
