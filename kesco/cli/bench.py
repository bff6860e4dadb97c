"""``kesco bench``: the workloads side by side with the expert, on a GPU or on the model of one."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kesco.cli.output import Printer, ends_well, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

if TYPE_CHECKING:
    from kesco.bench.build import Build
    from kesco.bench.measure import Plan, Row
    from kesco.bench.paired import Turns
    from kesco.bench.results import Results


def _names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...]:
    """A list with commas."""
    return tuple(part.strip() for part in value.split(",") if part.strip()) if value else ()


@click.command("bench")
@click.argument("names", nargs=-1, metavar="[WORKLOAD]...")
@click.option(
    "--styles",
    callback=_names,
    default="device",
    show_default=True,
    help="device,pinned,managed,inserted,prefetch,whole",
)
@click.option("--sizes", callback=_names, default="small,1gb", show_default=True, help="Names of sizes, or numbers.")
@click.option("--blocks", callback=_names, default="32,256", show_default=True, help="Threads per block.")
@click.option("--streams", callback=_names, help="Run kesco's program with these numbers of streams too.")
@click.option(
    "--variants", callback=_names, help="Only these: serial,sync,kesco,kesco-1,async,graph; or kesco-graph,kesco-auto."
)
@click.option("--repeat", type=click.IntRange(1), default=12, show_default=True, help="Repetitions that count.")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, help="Processes they are spread over.")
@click.option(
    "--paired", type=click.IntRange(1), metavar="ROUNDS", help="All variants in one process, in turns, so many each."
)
@click.option("--time-limit", type=click.FloatRange(1), metavar="SECONDS", help="Begin nothing new after this long.")
@click.option("--json", "output", type=click.Path(dir_okay=False, path_type=Path), help="Write the results there.")
@click.option("--quiet", "-q", is_flag=True, help="No progress and no tables: only errors.")
@click.option("--plots", type=click.Path(file_okay=False, path_type=Path), help="Draw them into this folder.")
@click.option("--model", is_flag=True, help="Predict instead of measuring; with --from, compare with those results.")
@click.option(
    "--costs", type=click.Path(path_type=Path), help="What kernels cost, for the model.  [default: costs.toml]"
)
@click.option("--from", "source", type=click.Path(path_type=Path), help="Show these results; measure nothing.")
@click.option("--build-only", type=click.Path(file_okay=False, path_type=Path), help="Make the programs there; end.")
@click.option("--built", type=click.Path(file_okay=False, path_type=Path), help="Run the programs made there.")
@click.option(
    "--workloads", type=click.Path(file_okay=False, path_type=Path), default=Path("workloads"), show_default=True
)
def bench_command(
    names: tuple[str, ...], output: Path | None, plots: Path | None, source: Path | None, **v: Any
) -> None:
    """Measure the workloads in every variant, and compare with the hand-written ones."""
    with ends_well(Printer("text", False)):
        from kesco.bench import results as kept
        from kesco.bench.tables import tables

        if v["model"]:
            found = _predict(names, **v)
        elif source is not None:
            found = kept.read(source)
        else:
            measured = _measure(names, output, **v)
            if measured is None:
                return
            found = measured
        from rich.console import Console

        console = Console(width=None if sys.stdout.isatty() else 140)
        for table in tables(found) if not v["quiet"] else ():
            console.print(table)
        if v["model"] and source is not None and not v["quiet"]:
            from kesco.bench.model import errors
            from kesco.bench.tables import error_table

            console.print(error_table(errors(found, kept.read(source))))
        for row in found.problems:
            where = f"{row.setting.workload} {row.setting.style} {row.setting.size} {row.setting.block} {row.variant}"
            click.echo(f"{where}: {row.problem}", err=True)
        if plots is not None:
            from kesco.bench.plots import plots as draw

            plots.mkdir(parents=True, exist_ok=True)
            for name, text in draw(found):
                write_whole(plots / f"{name}.svg", text.encode())
        if found.problems:
            sys.exit(3)


def _measure(names: tuple[str, ...], output: Path | None, **v: Any) -> Results | None:
    """Build and run; None where only building was asked for."""
    from kesco.bench import build as making
    from kesco.bench import suite
    from kesco.bench.measure import Plan, settings
    from kesco.bench.paired import FIT, Turns

    workloads = suite.load(v["workloads"], names)
    styles = suite.choose("memory style", v["styles"], suite.STYLES)
    asked = (
        ("serial", *v["variants"]) if v["variants"] else suite.USUAL
    )  # the first is what all others are compared with
    variants = suite.choose("variant", asked, suite.VARIANTS)
    sizes = _sizes(v["sizes"], workloads)
    blocks, streams = _numbers("--blocks", v["blocks"], 1024), _numbers("--streams", v["streams"], 64)
    wanted = settings(workloads, styles, sizes, blocks)
    plan: Plan | Turns = Plan(v["repeat"], v["rounds"], variants=tuple(variants), streams=tuple(streams))
    if v["paired"]:
        usual = [name for name in suite.USUAL if name in FIT]
        variants = suite.choose("variant in one process", v["variants"] or usual, FIT)
        plan = Turns(v["paired"], v["repeat"], v["rounds"], variants=tuple(variants), streams=tuple(streams))
    if v["built"] is not None:
        return _run(making.read(v["built"]), wanted, plan, v["time_limit"], output, v["quiet"])
    with _folder(v["build_only"]) as folder:
        from kesco.toolchain.discover import discover

        programs = suite.PROGRAMS + tuple(suite.VARIANTS[name].program for name in variants)
        said = _silent if v["quiet"] else _progress
        build = making.build(workloads, styles, folder, discover(), said, 2, programs, bool(v["paired"]))
        if v["build_only"] is not None:
            return None
        return _run(build, wanted, plan, v["time_limit"], output, v["quiet"])


def _predict(names: tuple[str, ...], **v: Any) -> Results:
    """What the model says for the settings whose costs are known, of the memory styles that it knows."""
    from kesco.bench import costs, model, recorded, suite
    from kesco.bench.results import Results

    workloads = suite.load(v["workloads"], names)
    known = costs.read(v["costs"] or v["workloads"] / "costs.toml")
    blocks, sizes = _numbers("--blocks", v["blocks"], 1024), _sizes(v["sizes"], workloads)
    variants = suite.choose("variant of the model", v["variants"] or model.VARIANTS, model.VARIANTS)
    rows: list[Row] = []
    for style in suite.choose("memory style of the model", v["styles"], recorded.KNOWN_STYLES):
        read = [name for name in ("serial", "kesco", "async") if name in variants]
        if style == "device":
            static = model.predicted(workloads, known, sizes, blocks).rows
            rows += [row for row in static if row.variant in ("serial", *variants)]
            read = [name for name in read if name == "async"]
        rows += recorded.rows(workloads, style, read, known, sizes, blocks)
    return Results(tuple(rows), {"gpu": "a model of an NVIDIA H200"})


def _progress(name: str) -> None:
    click.echo(name, err=True)


def _silent(name: str) -> None:
    """Nothing: the command is quiet."""


def _run(
    build: Build, wanted: Any, plan: Plan | Turns, limit: float | None, output: Path | None, quiet: bool = False
) -> Results:
    """Measure with a progress bar; what is there is written after every setting, so that an end costs one of them."""
    from rich.progress import Progress

    from kesco.bench import paired
    from kesco.bench.measure import Plan, measure
    from kesco.bench.results import Results, to_json

    environment = _environment(build, plan)
    rows: list[Row] = []
    results = Results((), environment, build.plans())
    until = time.monotonic() + limit if limit else float("inf")
    with Progress(disable=quiet or not sys.stderr.isatty()) as bar:
        task = bar.add_task("measuring", total=len(wanted))
        done = set()

        def progress(setting: Any) -> None:
            bar.update(task, description=f"{setting.workload} {setting.style} {setting.size} {setting.block}")
            if not quiet and not sys.stderr.isatty():
                click.echo(f"{setting.workload} {setting.style} {setting.size} {setting.block}", err=True)

        rest = (progress, until)
        found = (
            measure(build, wanted, plan, *rest)
            if isinstance(plan, Plan)
            else paired.measure(build, wanted, plan, *rest)
        )
        for row in found:
            rows.append(row)
            results = Results(tuple(rows), environment, build.plans())
            if row.setting not in done:
                done.add(row.setting)
                bar.advance(task)
            if output is not None:
                write_whole(output, to_json(results).encode())
    if len(done) < len(wanted):
        click.echo(f"time limit: {len(wanted) - len(done)} of {len(wanted)} settings were not begun", err=True)
    return results


def _environment(build: Build, plan: Plan | Turns) -> dict[str, str]:
    from kesco import __version__
    from kesco.bench.measure import Plan
    from kesco.bench.pairs import ROUNDS
    from kesco.toolchain.doctor import gpu
    from kesco.toolchain.places import Places

    found = {
        "gpu": gpu(Places.current(os.environ)).value,
        "cuda": build.made["cuda"],
        "flags": build.made["flags"],
        "commit": build.made["commit"],
        "kesco": __version__,
        "date": date.today().isoformat(),
    }
    if isinstance(plan, Plan):
        often = f"medians of {plan.repeat} in {plan.rounds} processes, {plan.warmup} warm-up repetitions in each"
        return found | {"method": often}
    often = f"{plan.rounds} turns of {plan.repeat} repetitions in each of {plan.processes} processes of all variants"
    return found | {"method": often, ROUNDS: str(plan.rounds)}


def _sizes(wanted: tuple[str, ...], workloads: Any) -> tuple[str, ...]:
    known = list(workloads[0].sizes)
    for one in wanted:
        if one not in known and not (one.isdigit() and int(one)):
            known_sizes = f"one of {', '.join(known)}, or a number"
            raise UsageError(Diagnostic("K520", Severity.ERROR, f"no size '{one}'", help=known_sizes))
    return wanted


def _numbers(option: str, wanted: tuple[str, ...], most: int) -> tuple[int, ...]:
    for one in wanted:
        if not one.isdigit() or not 1 <= int(one) <= most:
            raise UsageError(Diagnostic("K520", Severity.ERROR, f"{option}: '{one}' is not a number from 1 to {most}"))
    return tuple(map(int, wanted))


@contextlib.contextmanager
def _folder(wanted: Path | None) -> Any:
    import tempfile

    if wanted is not None:
        yield wanted
        return
    with tempfile.TemporaryDirectory(prefix="kesco-bench-") as name:
        yield Path(name)
