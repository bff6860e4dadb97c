"""``kesco check``: run a program, without a GPU or on one, and report what nothing orders."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kesco.cli.flags import in_one_argument
from kesco.cli.output import Printer, ends_well
from kesco.options import Options

_SOURCES = frozenset({".cu", ".cup", ".cuh", ".cpp", ".cc", ".cxx", ".c++", ".C", ".c"})


@click.command("check")
@click.argument("source", metavar="FILE.cu|PROGRAM")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGUMENTS]")
@click.option("--gpu", is_flag=True, help="Run it on the GPU of this machine: kernels run, results are real.")
@click.option("--flags", default="", metavar="'FLAGS'", help="Compiler flags, as one argument.")
@click.option("--with", "others", multiple=True, metavar="FILE", help="Another source file of the program.")
@click.option("--time-limit", "limit", type=click.FloatRange(0.1), default=60.0, show_default=True, metavar="SECONDS")
@click.option("--devices", type=click.IntRange(1, 64), default=1, show_default=True, help="GPUs a dry run shows.")
@click.option("--no-host", is_flag=True, help="Do not look for the host's own accesses to pinned and managed memory.")
@click.option("--show", is_flag=True, help="PROGRAM reads and writes as it does alone.")
@click.option("--strict", is_flag=True, help="A possible race counts like a race.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@click.option("--clang", help="The clang to use.", metavar="PATH")
@click.option("--libclang", help="The libclang to use.", metavar="PATH")
@click.option("--cuda-path", help="The CUDA toolkit to use.", metavar="PATH")
@click.option("--arch", help="The GPU architecture, such as sm_90.", metavar="SM")
def check_command(source: str, arguments: tuple[str, ...], as_json: bool, quiet: bool, strict: bool, **v: Any) -> None:
    """Run a program and report races between streams, and with the host. No GPU is needed.

    FILE.cu is built and run; its arguments go after '--'. Otherwise ('kesco check -- ./app ARGUMENTS') it is a program
    that was built by kesco-nvcc with KESCO=check, or that runs one: mpirun, python.
    """
    printer = Printer("json" if as_json else "text", quiet)
    with ends_well(printer):
        from kesco.check import Run, check

        options = Options(
            flags=in_one_argument(v["flags"]), clang=v["clang"], libclang=v["libclang"],
            cuda_path=v["cuda_path"], arch=v["arch"],
        )  # fmt: skip
        run = Run(arguments, v["limit"], v["devices"], v["others"], not v["no_host"], v["show"])
        if Path(source).suffix in _SOURCES:
            report = check(source, run, options, v["gpu"])
        else:
            from kesco.check.programs import check_command

            report = check_command((source, *arguments), run, options, v["gpu"])
        bad = report.races + (report.possible if strict else 0)
        if as_json:
            counts = {"operations": report.operations, "kernels": report.kernels, "streams": report.streams}
            found = [one.to_json() for one in report.diagnostics]
            result = {"races": report.races, "possible": report.possible, **counts, "diagnostics": found}
            click.echo(json.dumps(result, indent=2))
        else:
            printer(*report.diagnostics)
            if not quiet:
                click.echo(_summary(source, report, v["gpu"]), err=True)
        if bad:
            sys.exit(1)


def _summary(source: str, report: Any, gpu: bool) -> str:
    from kesco.check.messages import count

    operations, streams = count(report.operations, "operation"), count(report.streams, "stream")
    where = (" of a GPU" if gpu else "") + (f" in {report.processes} processes" if report.processes > 1 else "")
    found = count(report.races, "race") if report.races else "no race"
    possible = f", {report.possible} possible" if report.possible else ""
    return (
        f"{source}: {operations} on {streams}{where}, {count(report.kernels, 'kernel')} among them: {found}{possible}"
    )
