"""``kesco regress``: fail where a program's schedule got worse since the baseline was written."""

from __future__ import annotations

import json
import sys
from itertools import chain
from pathlib import Path

import click

from kesco.cli.flags import in_one_argument
from kesco.cli.output import Printer, ends_well, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.options import Options


@click.command("regress")
@click.argument("files", nargs=-1, metavar="[FILE.cu]...", type=click.Path(path_type=Path))
@click.option("--tree", type=click.Path(file_okay=False, path_type=Path), help="kesco's source tree: all its programs.")
@click.option(
    "--baseline", type=click.Path(dir_okay=False, path_type=Path), required=True, help="What it was, as JSON."
)
@click.option("--update", is_flag=True, help="Write the baseline anew: what is there now is accepted.")
@click.option("--costs", type=click.Path(dir_okay=False, path_type=Path), help="Kernels' costs, for the model.")
@click.option("--setting", default="", metavar="NAME", help="The table of that file to take.")
@click.option("--flags", default="", metavar="'FLAGS'", help="Compiler flags, as one argument.")
@click.option("--diagnostics", type=click.Choice(("text", "json")), default="text", help="Form of the diagnostics.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, with the diagnostics.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors, and what got worse.")
def regress_command(
    files: tuple[Path, ...],
    tree: Path | None,
    baseline: Path,
    update: bool,
    costs: Path | None,
    setting: str,
    flags: str,
    diagnostics: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare the plan and the modelled time of each FILE.cu with a baseline."""
    printer = Printer("json" if as_json else diagnostics, False)
    with ends_well(printer):
        from kesco.bench import costs as prices
        from kesco.bench import programs, regress

        if not files and tree is None:
            what = "nothing to compare"
            raise UsageError(
                Diagnostic("K104", Severity.ERROR, what, help="name files, or the source tree with --tree")
            )
        costs = tree / "workloads/costs.toml" if costs is None and tree is not None else costs
        known = prices.read(costs) if costs is not None else prices.Costs()
        before = {} if update and not baseline.exists() else regress.read(baseline)
        options = Options(flags=in_one_argument(flags))
        named = (programs.of(str(file), file, options, setting) for file in files)
        found = regress.states(chain(named, programs.compiled(tree) if tree is not None else ()), known)
        worse, changed = regress.compare(before, found)
        many = f"{len(found)} program{'s' * (len(found) != 1)}"
        if update:
            write_whole(baseline, regress.to_json(found).encode())
        if as_json:
            told = {"programs": len(found), "worse": len(worse), "changed": len(changed), "updated": update}
            click.echo(json.dumps({**told, "diagnostics": [d.to_json() for d in (*worse, *changed)]}, indent=2))
            sys.exit(1 if worse and not update else 0)
        if update:
            if not quiet:
                click.echo(f"{baseline}: {many}", err=True)
            return
        if quiet:
            changed = []
        if worse or changed or diagnostics == "json":
            printer(*worse, *changed)
        if worse:
            sys.exit(1)
        if diagnostics == "text" and not quiet:
            click.echo(f"{many}, none worse", err=True)
