"""``kesco doctor``: what is on this machine."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Any

import click


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print what was found as JSON.")
@click.option("--quiet", "-q", is_flag=True, help="Print nothing: the exit code says whether kesco can work.")
@click.option("--clang", help="The clang to use.", metavar="PATH")
@click.option("--libclang", help="The libclang to use.", metavar="PATH")
@click.option("--cuda-path", help="The CUDA toolkit to use.", metavar="PATH")
@click.option("--arch", help="The GPU architecture, such as sm_90.", metavar="SM")
def doctor_command(as_json: bool, quiet: bool, **values: Any) -> None:
    """Say which tools were found, which are used and why, and how to get what is missing."""
    from kesco.toolchain.doctor import examine

    report = examine(**values)
    if as_json:
        click.echo(json.dumps({"ready": report.ready, "parts": [asdict(row) for row in report.rows]}, indent=2))
    elif not quiet:
        _table(report)
        click.echo("ready" if report.ready else "not ready: see the missing parts above")
    sys.exit(0 if report.ready else 5)


def _table(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("part", "", "what is used", "why, and how to get what is missing", show_lines=True)
    colours = {"ok": "green", "optional": "yellow", "missing": "red"}
    for row in report.rows:
        said = [f"from {row.origin}" if row.origin else "", row.why, row.how_to_get and f"get it: {row.how_to_get}"]
        status = "absent" if row.status == "optional" and not row.value else row.status
        notes = "\n".join(t for t in said if t)
        table.add_row(row.component, Text(status, style=colours[row.status]), Text(row.value), Text(notes))
    Console(width=None if sys.stdout.isatty() else 140, soft_wrap=False).print(table)
