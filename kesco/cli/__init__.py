"""The command line: the only place that prints or exits.

In: arguments. Out: files, text, and an exit code (0 done, 2 usage, 3 input not supported, 4 our bug, 5 toolchain
missing). Every error ends here as diagnostics; nothing but the input itself is written before it has been proven, and
then by renaming a finished file.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from kesco import __version__
from kesco.cli.bench import bench_command
from kesco.cli.check import check_command
from kesco.cli.choices import compile_options, options_of
from kesco.cli.doctor import doctor_command
from kesco.cli.fikit_seeing import fikit_group
from kesco.cli.flags import Flagged
from kesco.cli.merge import merge_command
from kesco.cli.output import Printer, beside, ends_well, writable, write_together, write_whole
from kesco.cli.plugin import plugin_command
from kesco.cli.profile import profile_command
from kesco.cli.regress import regress_command
from kesco.cli.report import measured_run, report_target, write_report
from kesco.cli.summary import as_object, summary, tally
from kesco.cli.trace import compare_command, trace_command
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError, VerificationError

if TYPE_CHECKING:
    from kesco.ir.flow import Region
    from kesco.ir.pieces import Copy

_STAGES = ("toolchain", "host", "program", "effects", "regions", "summaries", "functions", "text")


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="kesco")
def main() -> None:
    """Turn serial CUDA into concurrent CUDA, and prove that no dependence was lost."""
    gc.set_threshold(100_000)  # what is built lives to the end: looking for garbage would take a tenth of the time


@main.command("compile", cls=Flagged)
@click.argument("source", metavar="FILE.cu", required=False)
@click.option("-o", "--output", metavar="OUT.cu", help="Where the result goes ('-' for standard output).")
@click.option(
    "-p", "--project", metavar="JSON", help="All CUDA sources of this compile_commands.json, or of its folder."
)
@click.option("-j", "--jobs", type=click.IntRange(1, 1024), help="With -p: so many at a time (default: all cores).")
@click.option(
    "--report", metavar="OUT.html", help="A page that shows what was done, and why. With -p: a folder of them."
)
@click.option("--trace", metavar="RUN.json", help="With --report: a run that 'kesco trace' measured, to show beside.")
@click.option("--dump", type=click.Choice(_STAGES), multiple=True, help="Print a stage's value.")
@click.option("--time", "timed", is_flag=True, help="Print when each stage was done.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, with the diagnostics.")
@compile_options
def compile_command(
    source: str | None, output: str | None, project: str | None, jobs: int | None, dump: tuple[str, ...], timed: bool,
    report: str | None, trace: str | None, as_json: bool, **values: Any,
) -> None:  # fmt: skip
    """Rewrite FILE.cu, or with -p all sources of a project, to use streams. Compiler flags go after '--'."""
    printer = Printer("json" if as_json else values["diagnostics"], values["quiet"])
    if project is not None:
        from kesco.cli.project import compile_project

        if source is not None:  # what stands first after the options may be a flag after '--'
            values["flags"] = (source, *values["flags"])
        with ends_well(printer):
            _only_flags(values["flags"])
            if trace is not None:
                what = "--trace is of one program, and shown in the page of one file"
                raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="give FILE.cu instead of -p"))
            options = replace(options_of(values, {}), page=report is not None)  # each command has nvcc's variables
            sys.exit(compile_project(project, output, jobs or 0, options, printer, report, as_json))
    if source is None:
        raise click.UsageError("Missing argument 'FILE.cu'.")
    from kesco.pipeline import compile_file

    started = time.perf_counter()
    stages: list[tuple[str, float]] = []

    def observe(name: str, value: object) -> None:
        stages.append((name, time.perf_counter() - started))
        if name in dump:
            from kesco.ir.text import dump_text

            click.echo(f"# {name}\n{dump_text(value)}")
        if name == "regions" and "summaries" in dump:  # nothing else asks for them
            from kesco.calling import summaries

            observe("summaries", summaries(cast("tuple[Region, ...]", value)))

    with ends_well(printer):
        target = _target(source, output)
        if target is not None:
            writable(target)
        elif as_json:
            what = "with -o - the standard output is the program's, not --json's"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="give -o a name"))
        shown = report_target(report, source, target) if report is not None else None
        measured = measured_run(trace, shown)
        if "host" in dump:  # nothing else asks for it
            from kesco.session import host_of

            observe("host", host_of(source, options_of(values)))
        try:
            options = options_of(values, headers=target.stem if target is not None else "")  # copies stand beside it
            result = compile_file(source, replace(options, page=shown is not None), observe)
        except VerificationError:  # a bug of ours: the build gets the program as it was
            _write(target, Path(source).read_bytes())
            raise
        if not as_json and (result.diagnostics or printer.form == "json"):
            printer(*result.diagnostics)
        _write(target, result.text, result.headers)
        if shown is not None:
            write_report(shown, result, measured)
        if as_json:
            click.echo(json.dumps(as_object(result, target), indent=2))
        elif not values["quiet"] and printer.form == "text":
            click.echo(f"{summary(result, target)}\n{tally(result)}", err=True)
        if timed:
            for name, at in [*stages, ("written", time.perf_counter() - started)]:
                click.echo(f"{at * 1000:8.0f} ms  {name}", err=True)


def _only_flags(words: tuple[str, ...]) -> None:
    if words and not words[0].startswith("-"):
        raise UsageError(
            Diagnostic(
                "K104",
                Severity.ERROR,
                f"'{words[0]}' stands beside -p",
                help="give a file, or with -p a compilation database; flags for all files go after '--'",
            )
        )


def _write(target: Path | None, text: bytes, headers: Sequence[Copy] = ()) -> None:
    if target is None:
        sys.stdout.buffer.write(text)
    else:
        write_together({**beside(target, headers), target: text})


def _target(source: str, output: str | None) -> Path | None:
    if output == "-":
        return None
    path = Path(output) if output else Path(source).with_name(Path(source).stem + "_async.cu")
    if path.is_dir():
        path = path / Path(source).name
    if Path(source).exists() and path.exists() and path.samefile(source):
        raise UsageError(
            Diagnostic(
                "K104",
                Severity.ERROR,
                f"{path} is the source itself",
                help="give another name with -o; kesco never overwrites its input",
            )
        )
    return path


@main.command("verify", cls=Flagged)
@click.argument("serial", metavar="SERIAL.cu|APP.cu")
@click.argument("concurrent", metavar="[ASYNC.cu]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
@click.option("--strict", is_flag=True, help="APP.cu: what is not known counts like a race.")
@compile_options
def verify_command(serial: str, concurrent: str | None, as_json: bool, strict: bool, **values: Any) -> None:
    """Prove that ASYNC.cu keeps every dependence of SERIAL.cu, or that APP.cu orders all that it does.

    Of one program, the order in which it issues its work is what is meant.
    """
    from kesco.cli.verify import pair, program

    if concurrent is not None and concurrent.startswith(("-", "@")):  # the flags behind '--'
        concurrent, values["flags"] = None, (concurrent, *values["flags"])
    printer = Printer("json" if as_json else values["diagnostics"], values["quiet"])
    with ends_well(printer):
        if concurrent is None:
            program(printer, serial, options_of(values, headers="kesco"), as_json=as_json, strict=strict)
        else:
            pair(printer, serial, concurrent, options_of(values, headers="kesco"), as_json=as_json)


@main.command("explain", cls=Flagged)
@click.argument("source", metavar="FILE.cu")
@click.option("--json", "as_json", is_flag=True, help="Print it as JSON: that of 'graph', with what was lost.")
@compile_options
def explain_command(source: str, as_json: bool, **values: Any) -> None:
    """Say what each operation touches, where it goes, what it waits for and why, and what was lost."""
    from kesco.pipeline import compile_file
    from kesco.report.explain import explain
    from kesco.report.graph import explained_json

    printer = Printer("json" if as_json else values["diagnostics"], values["quiet"])
    with ends_well(printer):
        result = compile_file(source, options_of(values, headers="kesco"))
        click.echo(explained_json(result.functions) if as_json else explain(result))


@main.command("graph", cls=Flagged)
@click.argument("source", metavar="FILE.cu")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="DFG.svg|.dot|.json",
    help="Where the picture goes; its ending says the form.",
)
@click.option("--function", "wanted", metavar="NAME", help="Only this function.")
@click.option("--json", "as_json", is_flag=True, help="Print which functions were drawn as JSON.")
@compile_options
def graph_command(source: str, output: str, wanted: str | None, as_json: bool, **values: Any) -> None:
    """Draw the data-flow graph with streams and waits."""
    from kesco.pipeline import compile_file
    from kesco.report.graph import FORMS, draw

    printer = Printer("json" if as_json else values["diagnostics"], values["quiet"])
    with ends_well(printer):
        form = Path(output).suffix.lstrip(".")
        if form not in FORMS:
            raise UsageError(
                Diagnostic(
                    "K104", Severity.ERROR, f"{output}: unknown form '{form}'", help=f"use one of {', '.join(FORMS)}"
                )
            )
        writable(Path(output))
        result = compile_file(source, options_of(values, headers="kesco"))
        chosen = [f for f in result.functions if wanted in (None, f.region.function)]
        if wanted is not None and not chosen:
            raise UsageError(
                Diagnostic(
                    "K104",
                    Severity.ERROR,
                    f"no function '{wanted}' in {source}",
                    help="see 'kesco explain' for their names",
                )
            )
        write_whole(Path(output), draw(chosen, form).encode())
        if as_json:
            click.echo(json.dumps({"output": output, "functions": [one.region.function for one in chosen]}, indent=2))


@main.command("cmake")
def cmake_command() -> None:
    """Print the folder of find_package(kesco), for cmake -Dkesco_DIR."""
    import kesco

    click.echo(Path(kesco.__file__).resolve().parent / "cmake")


main.add_command(bench_command)
main.add_command(regress_command)
main.add_command(check_command)
main.add_command(doctor_command)
main.add_command(merge_command)
main.add_command(plugin_command)
main.add_command(profile_command)
main.add_command(fikit_group)
main.add_command(trace_command)
main.add_command(compare_command)
