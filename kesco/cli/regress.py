"""``kesco regress``: fail where a program's schedule got worse since the baseline was written."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from kesco.cli.flags import in_one_argument
from kesco.cli.output import Printer, ends_well, write_whole
from kesco.options import Options


@click.command("regress")
@click.argument("files", nargs=-1, required=True, metavar="FILE.cu...", type=click.Path(path_type=Path))
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
    baseline: Path,
    update: bool,
    costs: Path | None,
    setting: str,
    flags: str,
    diagnostics: str,
    quiet: bool,
    as_json: bool,
) -> None:
    """Compare streams, waits and modelled time of each function of FILE.cu... with a baseline."""
    printer = Printer("json" if as_json else diagnostics, False)
    with ends_well(printer):
        from kesco.bench import costs as prices
        from kesco.bench import regress

        known = prices.read(costs) if costs is not None else prices.Costs()
        before = {} if update and not baseline.exists() else regress.read(baseline)
        settings = {str(file): (setting, 1) for file in files}
        found = regress.states(files, Options(flags=in_one_argument(flags)), known, settings)
        worse, changed = regress.compare(before, found)
        if update:
            write_whole(baseline, regress.to_json(found).encode())
        if as_json:
            told = {"functions": len(found), "worse": len(worse), "changed": len(changed), "updated": update}
            click.echo(json.dumps({**told, "diagnostics": [d.to_json() for d in (*worse, *changed)]}, indent=2))
            sys.exit(1 if worse and not update else 0)
        if update:
            if not quiet:
                click.echo(f"{baseline}: {len(found)} functions", err=True)
            return
        if quiet:
            changed = []
        if worse or changed or diagnostics == "json":
            printer(*worse, *changed)
        if worse:
            sys.exit(1)
        if diagnostics == "text" and not quiet:
            click.echo(f"{len(found)} function{'s' * (len(found) != 1)}, none worse", err=True)
