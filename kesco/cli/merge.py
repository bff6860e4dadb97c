"""``kesco merge``: several whole programs in one file, each a task with a host thread and streams of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from kesco.cli.flags import in_one_argument
from kesco.cli.output import Printer, ends_well, writable, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.options import Options


@click.command("merge")
@click.argument("programs", nargs=-1, metavar="FILE.cu[:main]=PRIORITY...")
@click.option("-o", "--output", required=True, metavar="OUT.cu", help="Where the result goes ('-': standard output).")
@click.option("--streams", type=click.IntRange(1, 64), help="At most this many streams for each program.")
@click.option(
    "--threads",
    type=click.Choice(("each", "one")),
    default="each",
    help="A host thread for each program, or one that goes to another wherever one waits.",
)
@click.option("--flags", default="", metavar="'FLAGS'", help="Compiler flags for all programs, as one argument.")
@click.option("--diagnostics", type=click.Choice(("text", "json")), default="text", help="Form of the diagnostics.")
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON, with the diagnostics.")
@click.option("--quiet", "-q", is_flag=True, help="Only errors.")
@click.option("--clang", help="The clang to use.", metavar="PATH")
@click.option("--libclang", help="The libclang to use.", metavar="PATH")
@click.option("--cuda-path", help="The CUDA toolkit to use.", metavar="PATH")
@click.option("--arch", help="The GPU architecture, such as sm_90.", metavar="SM")
def merge_command(programs: tuple[str, ...], output: str, as_json: bool, **v: Any) -> None:
    """Make one program of several, each compiled and proven, to run side by side. Priority 9 comes first."""
    printer = Printer("json" if as_json else v["diagnostics"], v["quiet"])
    with ends_well(printer):
        from kesco.merging.specs import parse

        specs = parse(programs)
        target = Path(output)
        if output != "-":
            if target.exists() and any(Path(one.path).exists() and target.samefile(one.path) for one in specs):
                help_ = "give another name with -o; kesco never overwrites its input"
                raise UsageError(Diagnostic("K104", Severity.ERROR, f"{output} is one of the programs", help=help_))
            writable(target)
        elif as_json:
            what = "with -o - the standard output is the program's, not --json's"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="give -o a name"))
        from kesco.emit.prologue import streams_in
        from kesco.merging.together import merge

        options = Options(
            streams=v["streams"] or 0, flags=in_one_argument(v["flags"]), clang=v["clang"],
            libclang=v["libclang"], cuda_path=v["cuda_path"], arch=v["arch"],
        )  # fmt: skip
        merged = merge(specs, options, one_thread=v["threads"] == "one")
        said = [d for one in merged.programs for d in one.diagnostics]
        if not as_json:
            printer(*said)
        if output == "-":
            sys.stdout.buffer.write(merged.text)
        else:
            write_whole(target, merged.text)
        told = [(s, streams_in(p.text), "proven" if p.functions else "as it was") for s, p in merged.tasks]
        if as_json:
            tasks = [{"name": s.name, "file": s.path, "priority": s.priority, "streams": many} for s, many, _ in told]
            said_all = {"output": output, "tasks": tasks, "diagnostics": [d.to_json() for d in said]}
            click.echo(json.dumps(said_all, indent=2))
        elif not v["quiet"] and v["diagnostics"] == "text":
            for spec, streams, done in told:
                how = f"priority {spec.label}, {streams} stream{'s' if streams > 1 else ''}, {done}"
                click.echo(f"{output}: task '{spec.name}' from {spec.path}: {how}", err=True)
