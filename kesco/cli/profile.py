"""``kesco profile``: run a program on a GPU and write what each of its operations takes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from kesco.cli.flags import in_one_argument
from kesco.cli.output import Printer, ends_well, writable, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.options import Options


@click.command("profile")
@click.argument("source", metavar="FILE.cu")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]")
@click.option("-o", "--output", metavar="RUN.kprof", help="Where the profile goes (default: FILE.kprof).")
@click.option("--merge", is_flag=True, help="Add this run to the profile that is there.")
@click.option("--flags", default="", metavar="'FLAGS'", help="Compiler flags, as one argument.")
@click.option("--with", "others", multiple=True, metavar="FILE", help="Another source file of the program.")
@click.option("--time-limit", "limit", type=click.FloatRange(0.1), default=600.0, show_default=True, metavar="SECONDS")
@click.option("--diagnostics", type=click.Choice(("text", "json")), default="text", help="Form of the diagnostics.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, with the diagnostics.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@click.option("--clang", help="The clang to use.", metavar="PATH")
@click.option("--libclang", help="The libclang to use.", metavar="PATH")
@click.option("--cuda-path", help="The CUDA toolkit to use.", metavar="PATH")
@click.option("--arch", help="The GPU architecture, such as sm_90.", metavar="SM")
def profile_command(
    source: str,
    arguments: tuple[str, ...],
    output: str | None,
    merge: bool,
    diagnostics: str,
    quiet: bool,
    as_json: bool,
    **v: Any,
) -> None:
    """Build FILE.cu, run it on this machine's GPU, and write how long its operations take. Arguments go after '--'."""
    printer = Printer("json" if as_json else diagnostics, quiet)
    with ends_well(printer):
        from kesco.check import Run
        from kesco.ir import kprof
        from kesco.profiling import profile

        target = Path(output) if output is not None else Path(source).with_suffix(".kprof")
        if target.is_dir():
            target = target / Path(source).with_suffix(".kprof").name
        if target.exists() and Path(source).exists() and target.samefile(source):
            what = f"{target} is the source itself"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="give another name with -o"))
        writable(target)
        before = kprof.read(target) if merge and target.exists() else None
        options = Options(
            flags=in_one_argument(v["flags"]), clang=v["clang"], libclang=v["libclang"],
            cuda_path=v["cuda_path"], arch=v["arch"],
        )  # fmt: skip
        found, said = profile(source, Run(arguments, v["limit"], others=v["others"]), options)
        if before is not None:
            if why := before.why_not_with(found):
                what = f"{target} cannot take this run: {why}"
                help_ = "write another file with -o, or leave --merge out to begin anew"
                raise UsageError(Diagnostic("K533", Severity.ERROR, what, help=help_))
            found = before + found
        if not as_json and (said or diagnostics == "json"):
            printer(*said)
        write_whole(target, kprof.to_json(found).encode())
        runs = sum(one.time.count for one in found.costs if one.time is not None)
        if as_json:
            counts = {
                "output": str(target),
                "operations": len(found.costs),
                "executions": runs,
                "gpu": found.origin.gpu,
            }
            click.echo(json.dumps({**counts, "diagnostics": [one.to_json() for one in said]}, indent=2))
        elif not quiet and diagnostics == "text":
            where = found.origin.gpu or "a device without a name"
            click.echo(f"{target}: {len(found.costs)} operations, {runs} executions, on {where}", err=True)
