"""``kesco verify``: of a pair of programs, or of one.

In: the names of files. Out: what was proven on standard output, what was not on standard error, and the exit code.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from kesco.cli.output import Printer
from kesco.errors import VerificationError
from kesco.options import Options

if TYPE_CHECKING:
    from kesco.proving.executions import Found


def pair(printer: Printer, serial: str, concurrent: str, options: Options, *, as_json: bool) -> None:
    """Prove a concurrent program beside the serial one."""
    from kesco.proving import verify_files

    verdicts = verify_files(serial, concurrent, options)
    problems = [d for v in verdicts for d in v.problems]
    if as_json:
        told = [{"function": v.function, "pairs": v.pairs, "unchanged": v.unchanged} for v in verdicts]
        found = {"proven": not problems, "functions": told, "diagnostics": [d.to_json() for d in problems]}
        click.echo(json.dumps(found, indent=2))
        sys.exit(VerificationError.exit_code if problems else 0)
    if problems:
        raise VerificationError(*problems)
    for one in verdicts if not printer.quiet else ():
        how = f"unchanged, and cannot be followed: {one.unchanged}"
        click.echo(f"'{one.function}': {how if one.unchanged else f'{one.pairs} conflicting pairs, all ordered'}")


def program(printer: Printer, path: str, options: Options, *, as_json: bool, strict: bool) -> None:
    """Say of one program what is ordered, what races, and what is not known."""
    from kesco.proving.executions import verify_alone

    found = verify_alone(path, options)
    if as_json:
        counts = {"races": found.races, "unknown": found.unknown, "silenced": found.silenced}
        told = [one.to_json() for one in found.diagnostics]
        ordered = {"pairs": found.pairs, "ordered": found.ordered}
        click.echo(json.dumps({**counts, "operations": found.work, **ordered, "diagnostics": told}, indent=2))
    else:
        printer(*found.diagnostics)
        if not printer.quiet:
            click.echo(_summary(path, found))
    if found.races or (strict and found.unknown):
        sys.exit(1)


def _summary(path: str, found: Found) -> str:
    by = ", ".join(f"{n} by {_BY[how]}" for how, n in sorted(found.ordered.items()))
    races = f"{found.races} race{'' if found.races == 1 else 's'}" if found.races else "no race"
    unknown = f", {found.unknown} not known" if found.unknown else ""
    silenced = f", {found.silenced} ordered as the program says" if found.silenced else ""
    return f"{path}: {found.pairs} conflicting pairs ordered{f' ({by})' if by else ''}, {races}{unknown}{silenced}"


_BY = {"stream": "a stream", "event": "an event", "host": "the host"}
