"""``kesco compile -p``: all CUDA sources of a compilation database, with a progress bar and a table of results."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kesco.cli.output import Printer, beside, refused, writable, write_together, write_whole
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.options import Options
from kesco.project import Outcome, Unit, compile_all, units


def compile_project(
    database: str, output: str | None, jobs: int, options: Options, printer: Printer,
    report: str | None = None, as_json: bool = False,
) -> int:  # fmt: skip
    """Compile all sources and write those that change, and their pages; the exit code is the highest of them."""
    chosen = units(Path(database))
    places = _places(sorted({unit.source for unit in chosen}), output)
    pages = _pages(sorted(places), report) if report is not None else {}
    outcomes: list[Outcome] = []
    for outcome in _shown(chosen, options, jobs or os.cpu_count() or 1, printer.quiet):
        target = places[outcome.source]
        try:
            if outcome.text is not None:
                target.parent.mkdir(parents=True, exist_ok=True)
                write_together({**beside(target, outcome.headers), target: outcome.text})
            if outcome.page:
                pages[outcome.source].parent.mkdir(parents=True, exist_ok=True)
                write_whole(pages[outcome.source], outcome.page.encode())
        except (OSError, UsageError) as problem:  # the others are written all the same
            why = problem.diagnostics if isinstance(problem, UsageError) else (refused(problem),)
            said = (*outcome.diagnostics, *why)
            outcome = replace(outcome, exit_code=3, text=None, page="", headers=(), diagnostics=said)
        outcomes.append(replace(outcome, page=outcome.page and "written"))
    outcomes.sort(key=lambda one: one.source)
    if report is not None:
        write_index(Path(report), Path(database), outcomes, pages)
    diagnostics = [one for outcome in outcomes for one in outcome.diagnostics]
    if as_json:
        click.echo(json.dumps({"files": [_object(one, places) for one in outcomes]}, indent=2))
    elif diagnostics or printer.form == "json":
        printer(*diagnostics)
    if not printer.quiet and printer.form == "text":
        _table(outcomes, places)
    return max(one.exit_code for one in outcomes)


def _object(one: Outcome, places: dict[Path, Path]) -> dict[str, Any]:
    return {
        "source": str(one.source), "output": str(places[one.source]) if one.text is not None else "",
        "exit_code": one.exit_code, "changed": one.text is not None, "functions": one.rewritten,
        "streams": one.streams, "waits": one.waits, "seconds": round(one.seconds, 3),
        "headers": [
            {"source": h.path, "output": str(places[one.source].with_name(h.name))} for h in one.headers
        ],
        "diagnostics": [said.to_json() for said in one.diagnostics],
    }  # fmt: skip


def _places(sources: list[Path], output: str | None) -> dict[Path, Path]:
    """Where each text goes: beside its source, or below a folder as the sources lie below theirs."""
    if output is None:
        return _apart({source: source.with_name(source.stem + "_async" + source.suffix) for source in sources})
    folder = Path(output).resolve()
    if folder.exists() and not folder.is_dir():
        raise UsageError(
            Diagnostic(
                "K104", Severity.ERROR, f"{output} is no folder", help="with -p, -o names a folder, which is made"
            )
        )
    common = Path(os.path.commonpath([source.parent for source in sources]))
    if folder == common:
        raise UsageError(
            Diagnostic("K104", Severity.ERROR, f"{output} is where the sources are", help="name another folder with -o")
        )
    return _apart({source: folder / source.relative_to(common) for source in sources})


def _pages(sources: list[Path], report: str) -> dict[Path, Path]:
    """Where each page goes: below a folder, as the sources lie below theirs."""
    folder = Path(report)
    if folder.suffix == ".html" or (folder.exists() and not folder.is_dir()):
        what = f"--report {report}: a project has a page for each source"
        raise UsageError(
            Diagnostic("K104", Severity.ERROR, what, help="with -p, --report names a folder, which is made")
        )
    folder.mkdir(parents=True, exist_ok=True)
    writable(folder / "index.html")
    common = Path(os.path.commonpath([source.parent for source in sources]))
    return {source: folder / source.relative_to(common).with_name(f"{source.name}.html") for source in sources}


def write_index(folder: Path, database: Path, outcomes: list[Outcome], pages: dict[Path, Path]) -> None:
    """``index.html`` in the folder of pages."""
    from urllib.parse import quote

    from kesco.report.page.index import Entry, index

    here, entries = Path.cwd(), []
    for one in outcomes:
        functions, streams, waits = (
            str(n) if one.text is not None else "" for n in (one.rewritten, one.streams, one.waits)
        )
        result = "failed" if one.exit_code else "unchanged" if one.text is None else "rewritten"
        link = quote(pages[one.source].relative_to(folder).as_posix()) if one.page else ""
        codes = " ".join(sorted({said.code for said in one.diagnostics}))
        entries.append(Entry(_short(one.source, here), link, result, functions, streams, waits, codes))
    project = (database if database.is_dir() else database.parent).resolve()
    write_whole(folder / "index.html", index(project.name or str(project), str(database), entries).encode())


def _apart(places: dict[Path, Path]) -> dict[Path, Path]:
    """The places, none of which is a source of the project; raises `UsageError` otherwise, before the work."""
    for source, place in places.items():
        if place.resolve() in places:
            what = f"the result of {source} would be {place}, which is a source of the project, too"
            raise UsageError(Diagnostic("K104", Severity.ERROR, what, help="name a folder of its own with -o"))
    return places


def _shown(chosen: tuple[Unit, ...], options: Options, jobs: int, quiet: bool) -> Iterator[Outcome]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        console=Console(stderr=True), transient=True, disable=quiet or not sys.stderr.isatty(),
    )  # fmt: skip
    with bar:
        task = bar.add_task("compiling", total=len({unit.source for unit in chosen}))
        for outcome in compile_all(chosen, options, jobs):
            bar.update(task, advance=1, description=outcome.source.name)
            yield outcome


def _table(outcomes: list[Outcome], places: dict[Path, Path]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table("file", "result", "functions", "streams", "waits", "seconds", box=None, pad_edge=False)
    for number in range(2, 6):
        table.columns[number].justify = "right"
    here = Path.cwd()
    for one in outcomes:
        error = next((d for d in one.diagnostics if d.severity is Severity.ERROR), None)
        if one.exit_code:
            result = Text(f"left as it is: {error.code if error else one.exit_code}", style="red")
        elif one.text is not None:
            result = Text(f"→ {_short(places[one.source], here)}", style="green")
        else:
            result = Text("stays as it is")
        numbers = [str(n) if one.text is not None else "" for n in (one.rewritten, one.streams, one.waits)]
        table.add_row(Text(_short(one.source, here)), result, *numbers, f"{one.seconds:.1f}")
    width = None if sys.stderr.isatty() else 200
    Console(stderr=True, width=width, highlight=False).print(table)
    changed, failed = sum(one.text is not None for one in outcomes), sum(one.exit_code > 0 for one in outcomes)
    click.echo(f"{len(outcomes)} files: {changed} rewritten, {failed} failed", err=True)


def _short(path: Path, here: Path) -> str:
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)
