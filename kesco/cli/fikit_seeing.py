"""``kesco fikit``: what is going on under a daemon, what happened, and what is on this machine."""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import click

from kesco.cli.fikit import DONE, QUIET, fikit_group, tell
from kesco.cli.fikit_runtime import GPU, OF
from kesco.cli.output import Printer, ends_well, writable, write_whole

__all__ = ["fikit_group"]  # with all its commands


@fikit_group.command("top")
@GPU
@OF
@click.option("--every", type=click.FloatRange(0.1), metavar="SECONDS", help="Again and again, until it is ended.")
@click.option("--form", type=click.Choice(("text", "json", "prometheus")), default="text", show_default=True)
@click.option("--json", "form", flag_value="json", help="The same as --form json; errors are JSON, too.")
def top_command(gpu: str, owner: str, every: float | None, form: str) -> None:
    """Show the tasks of a GPU and what became of their launches."""
    printer = Printer("json" if form == "json" else "text", False)
    with ends_well(printer):
        from kesco.fikit import metrics
        from kesco.fikit.places import gpu_name, reached
        from kesco.fikit.serving import status
        from kesco.fikit.telling import table

        path = reached(gpu_name(gpu), owner)
        while True:
            found = status(path)
            if form == "json":
                click.echo(json.dumps(found))
            else:
                said = metrics.text(partial(dict, found)) if form == "prometheus" else table(found)
                if every is not None and sys.stdout.isatty() and form == "text":
                    click.clear()
                click.echo(said, nl=False)
            if every is None:
                return
            sys.stdout.flush()
            time.sleep(every)


@fikit_group.command("metrics")
@GPU
@OF
@click.option("--listen", default="127.0.0.1:9410", show_default=True, metavar="ADDRESS:PORT", help="Where to answer.")
@QUIET
def metrics_command(gpu: str, owner: str, listen: str, quiet: bool) -> None:
    """Serve a daemon's counters to Prometheus, until it is ended. Asks the daemon at each scrape."""
    with ends_well(Printer("text", quiet)):
        from kesco.diagnostics import Diagnostic, Severity
        from kesco.errors import UsageError
        from kesco.fikit import metrics
        from kesco.fikit.places import gpu_name, reached
        from kesco.fikit.serving import status

        address, _, port = listen.rpartition(":")
        if not port.isdecimal() or int(port) > 65535:
            what = f"--listen {listen}: not an address and a port"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="such as 127.0.0.1:9410"))
        path = reached(gpu_name(gpu), owner)
        try:
            thread = metrics.serve(lambda: status(path), address, int(port))
        except OSError as error:
            what = f"--listen {listen}: {error.strerror or error}"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="take another port")) from None
        if not quiet:
            click.echo(f"http://{listen}/metrics", err=True)
        thread.join()


@fikit_group.command("explain")
@GPU
@OF
@click.option("--record", metavar="FILE", help="What 'serve --record' wrote: name its longest holds instead.")
@click.option("--longest", type=click.IntRange(1), default=10, show_default=True, help="So many of them.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the holds of a record, or each task with its words, as JSON."
)
def explain_command(gpu: str, owner: str, record: str | None, longest: int, as_json: bool) -> None:
    """Say of each task why it is held, what it was granted and why, and what it cost others."""
    with ends_well(Printer("json" if as_json else "text", False)):
        from dataclasses import asdict

        from kesco.fikit import events
        from kesco.fikit.places import gpu_name, reached
        from kesco.fikit.serving import status
        from kesco.fikit.telling import explain, longest_first, longest_holds

        if record is not None:
            seen = events.read(Path(record))
            holds = [asdict(one) | {"held": one.held.name, "reason": one.reason and one.reason.name}
                     for one in longest_first(seen, longest)]  # fmt: skip
            click.echo(json.dumps(holds, indent=1) + "\n" if as_json else longest_holds(seen, longest), nl=False)
            return
        found: dict[str, Any] = status(reached(gpu_name(gpu), owner))
        said = explain(found)
        click.echo(json.dumps(found | {"said": said.splitlines()}, indent=1) + "\n" if as_json else said, nl=False)


@fikit_group.command("timeline")
@click.argument("record", metavar="FILE")
@click.option("-o", "--output", required=True, metavar="TRACE.json", help="Where it goes; Perfetto opens it.")
@DONE
@QUIET
def timeline_command(record: str, output: str, as_json: bool, quiet: bool) -> None:
    """Draw what 'serve --record' wrote: each task's work and holds, for Perfetto."""
    with ends_well(Printer("json" if as_json else "text", quiet)):
        from kesco.fikit import events

        writable(Path(output))
        found = events.read(Path(record))
        write_whole(Path(output), events.to_perfetto(found).encode())
        done = {"output": output, "tasks": list(found.tasks), "holds": len(found.holds)}
        tell(f"{output}: {len(found.tasks)} tasks, {len(found.holds)} holds", done, as_json, quiet)


@fikit_group.command("doctor")
@GPU
@OF
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
def doctor_command(gpu: str, owner: str, as_json: bool) -> None:
    """Say what on this machine helps or hinders: GPUs, MIG, MPS, the socket, the daemon. Exit code 5 for a problem."""
    from dataclasses import asdict

    from kesco.fikit.examine import examine

    found = examine(gpu, owner)
    if as_json:
        click.echo(json.dumps([asdict(one) for one in found], indent=1))
    for one in () if as_json else found:
        click.echo(f"{one.level:8} {one.part}: {one.found}" + (f"\n{'':9}{one.advice}" if one.advice else ""))
    sys.exit(5 if any(one.level == "problem" for one in found) else 0)
