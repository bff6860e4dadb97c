"""``kesco fikit``: share one GPU among processes of different priority. The group, and what needs no GPU.

``show`` and ``merge`` are about profiles of tasks (``*.kfikit``), ``simulate`` and ``synthesize`` about traces.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from kesco.cli.output import Printer, ends_well, writable, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from kesco.fikit.compare import Comparison
    from kesco.ir.kfikit import TaskProfile

KINDS = ("exclusive", "sharing", "strict", "reactive", "mean", "quantile", "clairvoyant")
_json_option = click.option("--json", "as_json", is_flag=True, help="Print plain data instead of a table.")
DONE = click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
QUIET = click.option("--quiet", "-q", is_flag=True, help="Only errors.")


@click.group("fikit")
def fikit_group() -> None:
    """Share one GPU: fill the idle gaps of an urgent process with the kernels of others."""


def tell(text: str, done: Mapping[str, object], as_json: bool, quiet: bool) -> None:
    """What a command did: a line for people, or what programs read."""
    if as_json:
        click.echo(json.dumps(done, indent=2))
    elif not quiet:
        click.echo(text, err=True)


def _print(table: Table) -> None:
    from rich.console import Console

    Console(width=None if sys.stdout.isatty() else 120).print(table)


@fikit_group.command("show")
@click.argument("file", metavar="FILE.kfikit")
@_json_option
def show_command(file: str, as_json: bool) -> None:
    """Say what a profile knows of its tasks' kernels and of the gaps behind them."""
    with ends_well(Printer("json" if as_json else "text", False)):
        from kesco.ir import kfikit

        store = kfikit.read(Path(file))
        if as_json:
            click.echo(kfikit.to_json(store), nl=False)
            return
        click.echo(f"{file}: {len(store.tasks)} tasks on {store.gpu or 'a GPU without a name'}")
        for task in store.tasks:
            _print(_kernels(task))


def _kernels(task: TaskProfile) -> Table:
    from rich.table import Table

    title = f"{task.display} ({task.key})" if task.display and task.display != task.key else task.key
    table = Table(title=title, title_justify="left")
    for name in ("kernel", "launch"):
        table.add_column(name)
    for name in ("runs", "time µs p50", "p95", "longest", "gap µs p10", "p50"):
        table.add_column(name, justify="right")
    for identity, one in task.kernels:
        launch = f"{'×'.join(map(str, one.grid))} {'×'.join(map(str, one.block))}" if one.name else ""
        time = [one.time.median, one.time.quantile(0.95), one.time.longest] if one.time else []
        gap = [one.gap.quantile(0.1), one.gap.median] if one.gap else []
        cells = [*(f"{value / 1000:.1f}" for value in time), *("" for _ in range(3 - len(time)))]
        cells += [*(f"{value / 1000:.1f}" for value in gap), *("" for _ in range(2 - len(gap)))]
        name = one.name or ("before the first launch" if identity == 0 else f"{identity:016x}")
        table.add_row(name, launch, str(one.time.count if one.time else ""), *cells)
    return table


@fikit_group.command("merge")
@click.argument("files", nargs=-1, required=True, metavar="FILE.kfikit...")
@click.option("-o", "--output", required=True, metavar="ALL.kfikit", help="Where the profile of all tasks goes.")
@DONE
@QUIET
def merge_command(files: tuple[str, ...], output: str, as_json: bool, quiet: bool) -> None:
    """Put profiles of one GPU together: runs of the same task add up."""
    with ends_well(Printer("json" if as_json else "text", quiet)):
        from kesco.ir import kfikit

        target = Path(output)
        writable(target)
        stores = [kfikit.read(Path(file)) for file in files]
        for file, one in zip(files, stores, strict=True):
            if why := stores[0].why_not_with(one):
                what = f"{files[0]} and {file} cannot be merged: {why}"
                raise UsageError(Diagnostic("K549", Severity.ERROR, what, help="keep one file for each GPU"))
        found = kfikit.merged(stores)
        write_whole(target, kfikit.to_json(found).encode())
        done = {"output": output, "tasks": [one.key for one in found.tasks]}
        tell(f"{target}: {len(found.tasks)} tasks", done, as_json, quiet)


@fikit_group.command("simulate")
@click.argument("files", nargs=-1, required=True, metavar="TRACE.kftrace...")
@click.option(
    "--policy", "policies", type=click.Choice(KINDS), multiple=True, help="Only this policy (default: all of them)."
)
@click.option("--profile", metavar="FILE.kfikit", help="What is known of the tasks (default: the trace itself).")
@click.option("--set", "chosen", multiple=True, metavar="NAME=VALUE", help="A setting of the policy, such as guard_ns.")
@click.option("--mps", is_flag=True, help="Kernels of several tasks run at once, instead of in time slices.")
@click.option("--slice-us", type=click.IntRange(1), default=2000, show_default=True, help="A time slice of the GPU.")
@click.option(
    "--switch-us", type=click.IntRange(0), default=50, show_default=True, help="From one process to another on the GPU."
)
@_json_option
def simulate_command(
    files: tuple[str, ...], policies: tuple[str, ...], profile: str | None, chosen: tuple[str, ...], mps: bool,
    slice_us: int, switch_us: int, as_json: bool,
) -> None:  # fmt: skip
    """Replay traces, all tasks of them together, under policies, without a GPU, and compare what they cost and give."""
    with ends_well(Printer("json" if as_json else "text", False)):
        from kesco.fikit import compare, trace
        from kesco.fikit.gpu import Machine
        from kesco.fikit.policy import Kind
        from kesco.ir import kfikit

        found = trace.together([trace.read(Path(file)) for file in files])
        store = kfikit.read(Path(profile)) if profile is not None else None
        machine = Machine(mps, slice_us * 1000, switch_us * 1000)
        kinds = [Kind[name.upper()] for name in policies or KINDS]
        result = compare.compare(found, kinds, machine, _settings(chosen), store)
        if as_json:
            click.echo(json.dumps(result.to_json(), indent=1, ensure_ascii=False))
        else:
            _print(_comparison(result))


def _settings(chosen: tuple[str, ...]) -> dict[str, int]:
    from kesco.fikit.policy import Kind, Policy, settings

    found = dict(map(setting, chosen))
    try:
        Policy(settings(Kind.QUANTILE, found)).close()
    except ValueError as problem:
        help_ = "kesco/runtime/fikit/policy.h says what each setting means"
        raise UsageError(Diagnostic("K104", Severity.ERROR, f"--set: {problem}", help=help_)) from None
    return found


def setting(given: str) -> tuple[str, int]:
    """The name and number of a ``--set NAME=NUMBER``; `UsageError` (K104) for what is none, or too large."""
    from kesco.fikit.policy import MOST

    name, _, text = given.partition("=")
    try:
        value = float(text)
        if 0 <= value <= MOST[name]:  # which neither infinity nor what is no number is
            return name, int(text) if text.isdecimal() else int(value)
    except (KeyError, ValueError):
        pass
    what = f"--set {given}: not a setting and its number"
    help_ = f"write NAME=NUMBER, such as guard_ns=2e4; the settings are {', '.join(MOST)}"
    raise UsageError(Diagnostic("K104", Severity.ERROR, what, help=help_))


def _comparison(result: Comparison) -> Table:
    from rich.table import Table

    first = next(iter(result.replays.values()))
    table = Table(title=f"'{first.tasks[0].name}' and {len(first.tasks) - 1} others", title_justify="left")
    table.add_column("policy")
    for number, task in enumerate(first.tasks):
        table.add_column(f"{task.name} ({task.priority})\ntimes as long" if number else f"{task.name}\ntimes as long")
    for name in ("others' work\nbeside it", "gaps\nfilled", "over-\nruns", "late\nms"):
        table.add_column(name, justify="right")
    for kind, one in result.replays.items():
        slower = [f"{result.slowdown(kind, place):.3f}" for place in range(len(one.tasks))]
        cells = (f"{one.beside:.1%}", f"{one.fill:.1%}", str(one.overruns), f"{one.late_ns / 1e6:.1f}")
        table.add_row(kind.name.lower(), *slower, *cells)
    return table


@fikit_group.command("synthesize")
@click.option("-o", "--output", required=True, metavar="TRACE.kftrace", help="Where the trace goes.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="Another number, another trace.")
@click.option("--profile", metavar="FILE.kfikit", help="Also write what measuring each task alone would find.")
@DONE
@QUIET
def synthesize_command(output: str, seed: int, profile: str | None, as_json: bool, quiet: bool) -> None:
    """Write a trace of made-up tasks: an urgent one with gaps, and two that want all of the GPU."""
    with ends_well(Printer("json" if as_json else "text", quiet)):
        from kesco.fikit import compare, synthetic, trace
        from kesco.fikit.gpu import Machine
        from kesco.ir import kfikit

        for target in filter(None, (output, profile)):
            writable(Path(target))
        found = synthetic.trace(seed)
        write_whole(Path(output), trace.to_json(found).encode())
        if profile is not None:
            write_whole(Path(profile), kfikit.to_json(compare.measured(found, Machine())).encode())
        names, launches = [one.name for one in found.tasks], sum(len(one.steps) for one in found.tasks)
        done = {"output": output, "tasks": names, "launches": launches, "profile": profile}
        tell(f"{output}: {len(names)} tasks, {launches} launches", done, as_json, quiet)
