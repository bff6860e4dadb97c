"""Whole projects: the CUDA sources of a compilation database, compiled side by side.

In: ``compile_commands.json``, as CMake, Meson and others write it, and options. Out: an `Outcome` for each source.
Each source is compiled as `kesco compile` would with the flags of its command, in the folder of its command, in a
process of its own. Nothing is written here. A source that several commands name is rewritten only where all of them
lead to the same text.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from multiprocessing import active_children
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, KescoError, UsageError
from kesco.ir.pieces import Copy
from kesco.options import Options
from kesco.wrapper.commandline import Table, load_table, parse


@dataclass(frozen=True, slots=True)
class Unit:
    """One source with the flags of one command: an absolute path, and the folder where the command runs.

    `unclear` says why it is not known what the command means, if that is so.
    """

    source: Path
    folder: Path
    flags: tuple[str, ...]
    unclear: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a source: `text` is None where it stays as it is; `exit_code` is that of `kesco compile`.

    `page` is its report, where that is wanted and the source could be read. `headers` are the copies that the text
    includes.
    """

    source: Path
    exit_code: int
    text: bytes | None
    rewritten: int
    streams: int
    waits: int
    diagnostics: tuple[Diagnostic, ...]
    seconds: float
    page: str = ""
    headers: tuple[Copy, ...] = ()


def units(database: Path) -> tuple[Unit, ...]:
    """The CUDA sources of a database, or of the one in a folder; raises `KescoError` where there are none."""
    path = database / "compile_commands.json" if database.is_dir() else database
    try:
        entries = json.loads(path.read_bytes())
        found = dict.fromkeys(unit for entry in entries for unit in _units(entry, path.parent))
    except OSError as error:
        raise _wrong("K102", f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _wrong("K102", f"{path} is no compilation database: {type(error).__name__} {error}") from None
    if not found:
        raise UsageError(
            Diagnostic(
                "K104", Severity.ERROR, f"{path} names no CUDA source", help="configure with the CUDA language on"
            )
        )
    return tuple(found)


def _wrong(code: str, what: str) -> InputError:
    return InputError(
        Diagnostic(code, Severity.ERROR, what, help="cmake -DCMAKE_EXPORT_COMPILE_COMMANDS=ON and Meson write one")
    )


def _units(entry: dict[str, object], beside: Path) -> Iterator[Unit]:
    given = entry.get("arguments") or shlex.split(str(entry["command"]))
    words = [str(word) for word in given] if isinstance(given, list) else []
    folder = (beside / str(entry["directory"])).resolve()
    source = (folder / str(entry["file"])).resolve()
    while words and not _is_compiler(words[0]):  # a launcher such as ccache
        words = words[1:]
    if not words:
        return
    table = _table("clang" if "clang" in Path(words[0]).name else "nvcc")
    command = parse(words[1:], table, os.environ, str(folder))
    why = command.unclear or (f"{command.passed[1:]} cannot be read" if command.passed.startswith("@") else "")
    if any((folder / one).resolve() == source for one in command.sources):
        yield Unit(source, folder, tuple(command.flags), why)


def _is_compiler(word: str) -> bool:
    return any(name in Path(word).name for name in ("nvcc", "clang"))


def _table(name: str) -> Table:
    home = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return load_table(name, str(Path(home) / "kesco" / "build"))


def compile_all(chosen: Sequence[Unit], options: Options, jobs: int) -> Iterator[Outcome]:
    """The outcomes of all sources, in the order in which they are ready, `jobs` at a time."""
    left: dict[Path, int] = {}
    for unit in chosen:
        left[unit.source] = left.get(unit.source, 0) + 1
    ready: dict[Path, list[Outcome]] = {}
    with ProcessPoolExecutor(jobs, initializer=signal.signal, initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
        futures = {pool.submit(compile_unit, unit, options): unit for unit in chosen}
        try:
            for future in as_completed(futures):
                outcome = _outcome(future, futures[future])
                ready.setdefault(outcome.source, []).append(outcome)
                if len(ready[outcome.source]) == left[outcome.source]:
                    yield _merged(ready.pop(outcome.source))
        except BaseException:  # an interrupt: nobody waits for what is left
            pool.shutdown(wait=False, cancel_futures=True)
            for child in active_children():
                child.terminate()
            raise


def _outcome(future: Future[Outcome], unit: Unit) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        what = f"{unit.source}: the process that compiled it or another was lost"
        step = "compile this file alone; if memory is short, use fewer --jobs"
        lost = Diagnostic("K108", Severity.ERROR, what, help=step)
        return Outcome(unit.source, 3, None, 0, 0, 0, (lost,), 0.0)


def _merged(outcomes: list[Outcome]) -> Outcome:
    """One outcome for a source that several commands compile."""
    worst = max(outcomes, key=lambda one: one.exit_code)
    if worst.exit_code or len({(one.text, *((h.name, h.text) for h in one.headers)) for one in outcomes}) == 1:
        return worst
    what = f"{worst.source}: its commands lead to different texts, so it stays as it is"
    differ = Diagnostic("K109", Severity.WARNING, what, help="build with kesco-nvcc, which rewrites for each command")
    return replace(worst, text=None, rewritten=0, streams=0, waits=0, diagnostics=(differ,), page="", headers=())


def compile_unit(unit: Unit, options: Options) -> Outcome:
    """Compile one source in its folder; errors are part of the outcome."""
    from kesco.pipeline import compile_file
    from kesco.report.page import page

    if unit.unclear:
        step = "configure the build first, so that its files of options are there; or compile this file alone"
        what = f"{unit.source}: its command is not understood: {unit.unclear}"
        return Outcome(unit.source, 3, None, 0, 0, 0, (Diagnostic("K111", Severity.ERROR, what, help=step),), 0.0)
    began = time.perf_counter()
    try:
        os.chdir(unit.folder)
        asked = replace(options, flags=(*unit.flags, *options.flags), headers=f"{unit.source.stem}_async")
        result = compile_file(str(unit.source), asked)
    except KescoError as error:
        return Outcome(unit.source, error.exit_code, None, 0, 0, 0, error.diagnostics, time.perf_counter() - began)
    except OSError as error:
        failed = Diagnostic("K103", Severity.ERROR, f"{error.filename or unit.source}: {error.strerror}")
        return Outcome(unit.source, 3, None, 0, 0, 0, (failed,), time.perf_counter() - began)
    done = [one for one in result.functions if one.rewritten]
    return Outcome(
        unit.source, 0, result.text if result.changed else None, len(done),
        max((one.schedule.streams for one in done), default=0), sum(len(one.plan.waits) for one in done),
        result.diagnostics, time.perf_counter() - began, page(result) if options.page else "",
        result.headers,
    )  # fmt: skip
