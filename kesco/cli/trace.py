"""``kesco trace`` and ``kesco compare``: what the device did in a run, and in two."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kesco.cli.output import Printer, ends_well, writable, write_whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kesco.ir.activity import Activities
    from kesco.report.page import Table
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
_STREAM_HEADS = ("", "operations", "busy", "idle in between", "copies", "of them beside a kernel")


@click.command("trace", context_settings={"allow_interspersed_args": False})
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGUMENTS]...")
@click.option("-o", "--output", metavar="RUN.json", help="Where the trace goes (default: PROGRAM.trace.json, here).")
@click.option("--html", metavar="OUT.html", help="Also a page that shows the timeline.")
@click.option("--time-limit", "limit", type=click.FloatRange(0.1), metavar="SECONDS", help="End it after this long.")
@click.option("--json", "as_json", is_flag=True, help="Print the numbers as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@click.option("--cuda-path", help="The CUDA toolkit whose CUPTI is used.", metavar="PATH")
def trace_command(
    command: tuple[str, ...], output: str | None, html: str | None, limit: float | None, as_json: bool, quiet: bool,
    cuda_path: str | None,
) -> None:  # fmt: skip
    """Run any CUDA program and record what the device did when, for Perfetto and for 'kesco compare'."""
    printer = Printer("json" if as_json else "text", quiet)
    with ends_well(printer):
        from kesco.toolchain.cuda import find_cuda
        from kesco.toolchain.places import Places
        from kesco.tracing import trace
        from kesco.tracing.overlap import numbers
        from kesco.tracing.perfetto import to_json

        target = Path(output) if output is not None else Path(f"{Path(command[0]).name}.trace.json")
        for one in (target, *([Path(html)] if html is not None else [])):
            writable(one)
        found, said = trace(find_cuda(Places.current(os.environ), cuda_path)[0], command, limit)
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
            _show(_tables([(Path(before).name, one), (Path(after).name, other)]))


def _ratio(before: float, after: float) -> float | None:
    return round(before / after, 4) if after else None


def _summary(found: Numbers) -> str:
    from kesco.report import counted
    from kesco.report.page.timeline_view import duration

    hidden = f", {100 * found.hidden / found.copies:.0f} % of copies beside a kernel" if found.copies else ""
    gaps = f", idle for {duration(found.span - found.busy)} in {counted(found.gaps, 'gap')}" if found.gaps else ""
    what = f"{counted(found.operations, 'operation')} on {counted(len(found.streams), 'stream')}"
    return f"{what} in {duration(found.span)}, {found.overlap:.2f} at once{hidden}{gaps}"


def _tables(runs: Sequence[tuple[str, Numbers]]) -> list[Table]:
    """What one run or two say in numbers, and what each stream of them does."""
    from kesco.report.page.timeline_view import duration

    rows = []
    for words, attribute, is_time in _ROWS:
        values = [getattr(found, attribute) for _, found in runs]
        if is_time:
            cells = [duration(value) for value in values]
        else:
            cells = [f"{value:.2f}" if isinstance(value, float) else str(value) for value in values]
        if len(runs) > 1:
            cells.append(f"{values[1] / values[0]:.2f}" if is_time and values[0] else "")
        rows.append([words, *cells])
    heads = ["", *(name for name, _ in runs), *(["times as long"] if len(runs) > 1 else [])]
    tables: list[Table] = [("Numbers", heads, rows)]
    for name, found in runs:
        lines = [
            [one.name, str(one.operations), duration(one.busy), duration(one.idle), duration(one.copies),
             f"{100 * one.hidden / one.copies:.0f} %" if one.copies else ""]
            for one in found.streams
        ]  # fmt: skip
        tables.append((f"Streams of {name}", _STREAM_HEADS, lines))
    return tables


def _show(tables: Sequence[Table]) -> None:
    """Tables on standard output; plain where it is no terminal."""
    import sys

    from rich.console import Console
    from rich.table import Table as Drawn
    from rich.text import Text

    console = Console(width=None if sys.stdout.isatty() else 160, highlight=False)
    for number, (caption, heads, rows) in enumerate(tables):
        drawn = Drawn(box=None, pad_edge=False)
        for place, head in enumerate(heads):
            drawn.add_column(Text(head if place or not number else caption), justify="right" if place else "left")
        for row in rows:
            drawn.add_row(*map(Text, row))
        if number:
            console.print()
        console.print(drawn)


def _write_page(target: Path, runs: Sequence[tuple[str, Activities]]) -> None:
    from kesco.report.page import timeline_page
    from kesco.report.page.timeline_view import duration
    from kesco.tracing.overlap import numbers, timeline

    tiles = []
    found = [(name, numbers(run)) for name, run in runs]
    for name, one in found:
        tiles += [(duration(one.span), name), (f"{one.overlap:.2f}", "at once")]
    if len(found) > 1 and found[1][1].span:
        tiles.append((f"{found[0][1].span / found[1][1].span:.2f}×", "as fast"))
    title = " and ".join(name for name, _ in runs)
    drawn = [timeline(name, run) for name, run in runs]
    write_whole(target, timeline_page(title, tiles, drawn, _tables(found)).encode())
