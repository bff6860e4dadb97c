"""Hunt kesco's own bugs: thousands of random programs, compiled, proven and run on paper.

    python scripts/hunt.py [--programs 1000] [--from 20000] [--jobs 2] [--json FILE [--resume]]

The programs are those of `tests/property/programs.py`, eight to a file, with every strategy and number of streams in
turn. Each is compiled and proven by kesco; then serial and emitted text run on paper (`property.replay`) with several
inputs, and must issue the same operations, none of them unordered with another that it conflicts with. A program that
fails is cut down and printed as a golden input.

FILE gets one line of JSON for each file of programs; with --resume the files that it has are not done again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from property.oracle import TOGETHER, differences, executions, options_of, programs_of  # noqa: E402
from property.programs import Program, smaller, text_of  # noqa: E402
from property.replay import Parser  # noqa: E402

from kesco.errors import InputError, VerificationError  # noqa: E402
from kesco.options import Options  # noqa: E402
from kesco.pipeline import compile_file  # noqa: E402


def write(line: str) -> None:
    """A line of output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# ---- one file ------------------------------------------------------------------------------------------------------


def failures(
    programs: list[Program], options: Options, folder: Path
) -> tuple[list[tuple[str, str, str]], Counter[str]]:
    """What goes wrong, as (program, kind, words), and what was counted."""
    path = folder / "input.cu"
    path.write_text(text_of(programs))
    try:
        done = compile_file(str(path), options)
    except VerificationError as error:
        return [("", "refused", str(error))], Counter()
    except InputError as error:
        return [("", "input", str(error))], Counter()
    except Exception as error:
        return [("", "crash", f"{type(error).__name__}: {error}")], Counter()
    emitted = done.text.decode()
    try:
        before, after = Parser(done.source.decode()), Parser(emitted)
    except Exception as error:
        return [("", "oracle", f"{type(error).__name__}: {error}")], Counter()
    found = []
    for program in programs:
        try:
            expected = list(executions(before, program.name))
            words = next(differences(expected, executions(after, program.name)), "")
        except Exception as error:
            found.append((program.name, "oracle", f"{type(error).__name__}: {error}"))
            continue
        if words:
            found.append((program.name, "unordered" if "may run before" in words else "different", words))
    counts = Counter(
        programs=len(programs),
        functions=sum(one.rewritten for one in done.functions),
        waits=emitted.count("// kesco: wait for"),
        joins=emitted.count("cudaStreamWaitEvent(cudaStreamLegacy, kesco"),
        unordered=sum(kind == "unordered" for _, kind, _ in found),
        different=sum(kind == "different" for _, kind, _ in found),
    )
    return found, counts


def one_file(file: int) -> dict[str, Any]:
    """Everything about one file of programs."""
    started = time.perf_counter()
    programs, options = programs_of(file), options_of(file)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        found, counts = failures(programs, options, folder)
        if found and not found[0][0]:  # the whole file failed: which of its programs?
            found = [
                (one.name, kind, words) for one in programs for _, kind, words in failures([one], options, folder)[0]
            ] or found
        reports = [(*one, minimised(one, programs, options, folder)) for one in found]
    return {
        "file": file,
        "counts": dict(counts),
        "failures": reports,
        "seconds": round(time.perf_counter() - started, 2),
    }


def minimised(failure: tuple[str, str, str], programs: list[Program], options: Options, folder: Path) -> str:
    """The program at fault, cut down while it fails in the same way, as a golden input."""
    name, kind, _ = failure
    current = next((one for one in programs if one.name == name), None)

    def fails(program: Program) -> bool:
        return any(k == kind for _, k, _ in failures([program], options, folder)[0])

    if current is None or not fails(current):
        return text_of(programs)
    return golden(cut_down(current, fails), options)


def cut_down(program: Program, fails: Any) -> Program:
    """The first smaller program that still fails, again and again."""
    while True:
        less = next((one for one in smaller(program) if fails(one)), None)
        if less is None:
            return program
        program = less


def golden(program: Program, options: Options) -> str:
    """The text of a program with its options, as `tests/golden` wants them."""
    return f"// golden: --streams {options.streams} --strategy {options.strategy}\n{text_of([program])}"


# ---- all of them ---------------------------------------------------------------------------------------------------


def results(files: list[int], jobs: int) -> Iterator[dict[str, Any]]:
    """Each file's result, as it comes."""
    if jobs == 1:
        yield from map(one_file, files)
        return
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=40) as pool:
        yield from pool.imap_unordered(one_file, files)


def hunt(files: list[int], jobs: int, log: Path | None, resume: bool) -> int:
    """Do all files; 1 if anything went wrong."""
    known: dict[int, dict[str, Any]] = {}
    if log is not None and resume and log.exists():
        known = {one["file"]: one for one in map(json.loads, log.read_text().splitlines())}
    elif log is not None:
        log.write_text("")
    started = time.perf_counter()
    done = {file: known[file] for file in files if file in known}
    for result in results([file for file in files if file not in done], jobs):
        done[result["file"]] = result
        if log is not None:
            with log.open("a") as out:
                out.write(json.dumps(result) + "\n")
        for name, kind, words, text in result["failures"]:
            write(f"file {result['file']}, {name or 'all'}: {kind}: {words}\n{text}")
        if len(done) % 10 == 0:
            write(f"{len(done)} of {len(files)} files, {time.perf_counter() - started:.0f} s")
    return table(list(done.values()))


def table(done: list[dict[str, Any]]) -> int:
    """What came of it all, in words."""
    total: Counter[str] = Counter()
    for one in done:
        total.update(one["counts"])
    kinds = Counter(kind for one in done for _, kind, _, _ in one["failures"])
    write(f"{total['programs']} programs in {len(done)} files, {sum(one['seconds'] for one in done):.0f} s of work")
    write(f"  functions rewritten  {total['functions']}")
    write(f"  waits                {total['waits']}")
    write(f"  joins                {total['joins']}")
    write(f"  unordered conflicts  {total['unordered']}")
    write(f"  other operations     {total['different']}")
    for kind in ("refused", "crash", "input", "oracle"):
        write(f"  {kind:20} {kinds[kind]}")
    return 1 if kinds else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--from", type=int, default=20000, dest="first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    first = given.first // TOGETHER
    files = list(range(first, first + -(-given.programs // TOGETHER)))
    sys.exit(hunt(files, given.jobs, given.json, given.resume))


if __name__ == "__main__":
    main()
