"""``kesco trace`` and ``kesco compare``: what the device did in a run, and in two."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kesco.cli.output import Printer, ends_well, writable, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kesco.ir.activity import Activities
    from kesco.tracing.overlap import Numbers

_ROWS = (  # what `compare` shows: words, the attribute, whether it is a time
    ("span", "span", True),
    ("busy", "busy", True),
    ("work", "work", True),
    ("overlap (work / busy)", "overlap", False),
    ("copies", "copies", True),
    ("copies beside a kernel", "hidden", True),
    ("gaps", "gaps", False),
    ("longest gap", "longest_gap", True),
    ("host waits", "waiting", True),
    ("operations", "operations", False),
)


@click.command("trace", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
@click.option("-o", "--output", metavar="RUN.json", help="Where the trace goes (default: PROGRAM.trace.json, here).")
@click.option("--html", metavar="OUT.html", help="Also a page that shows the timeline.")
@click.option("--time-limit", "limit", type=click.FloatRange(0.1), metavar="SECONDS", help="End it after this long.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@click.option("--clang", help="The clang to use.", metavar="PATH")
@click.option("--libclang", help="The libclang to use.", metavar="PATH")
@click.option("--cuda-path", help="The CUDA toolkit to use.", metavar="PATH")
@click.option("--arch", help="The GPU architecture, such as sm_90.", metavar="SM")
def trace_command(
    command: tuple[str, ...], output: str | None, html: str | None, limit: float | None, as_json: bool, quiet: bool,
    **tools: Any,
) -> None:  # fmt: skip
    """Run any CUDA program and record what the device did when, for Perfetto and for 'kesco compare'."""
    printer = Printer("json" if as_json else "text", quiet)
    with ends_well(printer):
        from kesco.toolchain.discover import discover
        from kesco.tracing import trace
        from kesco.tracing.overlap import numbers
        from kesco.tracing.perfetto import to_json

        target = Path(output) if output is not None else Path(f"{Path(command[0]).name}.trace.json")
        for one in (target, *([Path(html)] if html is not None else [])):
            writable(one)
        found, said = trace(discover(**tools, environ=os.environ), command, limit)
        write_whole(target, to_json(found).encode())
        if html is not None:
            _write_page(Path(html), [(found.name, found)])
        if said:
            printer(*said)
        if as_json:
            click.echo(json.dumps(numbers(found).to_json(), indent=2))
        elif not quiet:
            click.echo(f"{target}: {_summary(numbers(found))}", err=True)


@click.command("compare")
@click.argument("before", metavar="SERIAL.json")
@click.argument("after", metavar="ASYNC.json")
@click.option("--html", metavar="OUT.html", help="A page with both timelines on one scale.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
def compare_command(before: str, after: str, html: str | None, as_json: bool, quiet: bool) -> None:
    """Compare two traces: how long, how much at once, which copies a kernel hid, where the device stood idle."""
    printer = Printer("json" if as_json else "text", quiet)
    with ends_well(printer):
        from kesco.tracing.overlap import numbers
        from kesco.tracing.perfetto import read

        if html is not None:
            writable(Path(html))
        runs = [read(Path(name)) for name in (before, after)]
        one, other = map(numbers, runs)
        if html is not None:
            names = [Path(name).name for name in (before, after)]
            _write_page(Path(html), list(zip(names, runs, strict=True)))
        if as_json:
            both = {"before": one.to_json(), "after": other.to_json(), "speedup": _ratio(one.span, other.span)}
            click.echo(json.dumps(both, indent=2))
        elif not quiet:
            click.echo("\n".join(_table((before, after), one, other)))


def _ratio(before: float, after: float) -> float | None:
    return round(before / after, 4) if after else None


def _summary(found: Numbers) -> str:
    from kesco.report.page.timeline_view import duration

    hidden = f", {100 * found.hidden / found.copies:.0f} % of copies beside a kernel" if found.copies else ""
    gaps = f", idle for {duration(found.span - found.busy)} in {found.gaps} gaps" if found.gaps else ""
    return (
        f"{found.operations} operations on {len(found.streams)} streams in {duration(found.span)}, "
        f"{found.overlap:.2f} at once{hidden}{gaps}"
    )


def _table(names: Sequence[str], one: Numbers, other: Numbers) -> list[str]:
    from kesco.report.page.timeline_view import duration

    lines = [("", *(Path(name).name for name in names), "times as long")]
    for words, attribute, is_time in _ROWS:
        pair = [getattr(of, attribute) for of in (one, other)]
        if is_time:
            ratio = f"{pair[1] / pair[0]:.2f}" if pair[0] else ""
            lines.append((words, *(duration(value) for value in pair), ratio))
        else:
            lines.append((words, *(f"{value:.2f}" if isinstance(value, float) else str(value) for value in pair), ""))
    for title, numbers in ((f"in {Path(names[0]).name}", one), (f"in {Path(names[1]).name}", other)):
        for stream in numbers.streams:
            hidden = f", {duration(stream.hidden)} of its copies beside a kernel" if stream.hidden else ""
            what = f"{stream.operations} operations, busy {duration(stream.busy)}, idle {duration(stream.idle)}{hidden}"
            lines.append((f"{stream.name} {title}", what, "", ""))
    table = [line for line in lines if line[2]]
    widths = [max(len(line[column]) for line in table) for column in range(4)]
    shown = ["  ".join([line[0].ljust(widths[0]), *(t.rjust(w) for t, w in zip(line[1:], widths[1:], strict=True))])
             for line in table]  # fmt: skip
    return [line.rstrip() for line in shown] + [f"{name}: {what}" for name, what, second, _ in lines if not second]


def _write_page(target: Path, runs: Sequence[tuple[str, Activities]]) -> None:
    from kesco.report.page import timeline_page
    from kesco.report.page.timeline_view import duration
    from kesco.tracing.overlap import numbers, timeline

    tiles = []
    for name, run in runs:
        found = numbers(run)
        tiles += [(duration(found.span), name), (f"{found.overlap:.2f}", "at once")]
    title = " and ".join(name for name, _ in runs)
    write_whole(target, timeline_page(title, tiles, [timeline(name, run) for name, run in runs]).encode())
