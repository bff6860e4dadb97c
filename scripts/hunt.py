"""Hunt kesco's own bugs: thousands of random programs, compiled, proven, run on paper, and mutated.

    python scripts/hunt.py [--programs 1000] [--from 20000] [--jobs 1] [--json FILE [--resume]]
                           [--check SHARE] [--mutate SHARE [--most 12]] [--ir] [--hosts]
    python scripts/hunt.py --workloads [NAME …]

The programs are those of `tests/property/programs.py`, eight to a file, with every strategy and number of streams in
turn. Each is compiled and proven by kesco; then serial and emitted text run on paper (`property.replay`) with several
inputs, and must issue the same operations, none of them unordered with another that it conflicts with. A program that
fails is cut down and printed as a golden input.

--check: this share of the files runs under `kesco check`, too, which must find no race.
--mutate: in this share of the files, where kesco wrote waits, at most so many mutants of each program are judged:
records, waits and joins, taken away, moved by a statement, or given another event or stream. `verify` must refuse each
that goes wrong on paper; `kesco check`, in files that are checked, each that goes wrong by its rules on all streams.
--ir: kesco goes by what the host's IR says wherever it follows it, not only where the text does not say enough.
--hosts: the programs are those of `tests/property/hosts.py`, two to a file, which use more of C++; they really run, on
a runtime that takes any order which CUDA allows (`property.native`), and must print what the serial program prints.
--workloads: all mutants of what kesco makes of the eight workloads, for `verify` and `kesco check`.

FILE gets one line of JSON for each file of programs; with --resume the files that it has are not done again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from integration.compiled import Compiled, compile_and_keep
from preferring import the_ir
from property import hosts
from property.judged import Judge, Judged
from property.mutations import SELECTOR, batches, mutants, mutated, selectable
from property.native import disagreements
from property.oracle import TOGETHER, differences, executions, options_of, programs_of
from property.programs import Program, smaller, text_of
from property.replay import Parser
from property.runnable import built, dry, observed

from kesco.errors import InputError, VerificationError
from kesco.options import Options

WORKLOADS = ROOT / "workloads"
Failure = tuple[str, str, str]  # program or nothing, kind, words


@dataclass(frozen=True)
class Wanted:
    """What is done beside compiling and running on paper, for which share of the files, to how many mutants."""

    check: float = 0.0
    mutate: float = 0.0
    most: int = 12
    ir: bool = False
    hosts: bool = False

    def of(self, file: int) -> tuple[bool, bool]:
        """Whether a file is checked and mutated; the same each time."""
        drawn = random.Random(file)
        return drawn.random() < self.check, drawn.random() < self.mutate


def write(line: str) -> None:
    """A line of output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


# ---- one file ------------------------------------------------------------------------------------------------------


def compiled(programs: list[Program], options: Options, folder: Path) -> Compiled | Failure:
    """What kesco made of programs, or why it did not."""
    path = folder / "input.cu"
    path.write_text((hosts.text_of if isinstance(programs[0], hosts.Host) else text_of)(programs))
    try:
        return compile_and_keep(path, options)
    except VerificationError as error:
        return "", "refused", str(error)
    except InputError as error:
        return "", "input", str(error)
    except Exception as error:
        return "", "crash", f"{type(error).__name__}: {error}"


def on_paper(programs: list[Program], outcome: Compiled) -> Iterator[Failure]:
    """What goes wrong when serial and emitted programs run on paper, the first thing of each."""
    name = ""
    try:
        before, after = Parser(outcome.result.source.decode()), Parser(outcome.result.text.decode())
        for program in programs:
            name = program.name
            expected = list(executions(before, name))
            if any(one.unordered() for one in expected):
                yield name, "serial", "the serial program is not in order"
            elif words := next(differences(expected, executions(after, name)), ""):
                yield name, "unordered" if "may run before" in words else "different", words
    except Exception as error:
        yield name, "oracle", f"{type(error).__name__}: {error}"


def at_work(programs: list[Program], outcome: Compiled, folder: Path) -> Iterator[Failure]:
    """What serial and emitted programs print when they run in some order, where it is not the same."""
    if not outcome.result.changed:
        return
    names = [one.name for one in programs]
    texts = outcome.result.source.decode(), outcome.result.text.decode()
    for name, words in disagreements(outcome.session.toolchain, *texts, names, folder):
        yield name, "serial" if words.startswith("serial") else "different", words


def judged(programs: list[Program], outcome: Compiled, folder: Path) -> Iterator[Failure]:
    """What goes wrong, in the way that suits the programs."""
    host = isinstance(programs[0], hosts.Host)
    return at_work(programs, outcome, folder) if host else on_paper(programs, outcome)


def in_dry_runs(
    programs: list[Program], outcome: Compiled, seed: int, check: bool, mutate: bool, most: int, folder: Path
) -> tuple[list[Failure], Counter[str]]:
    """What `kesco check` and the mutants show."""
    lines = outcome.lines
    mutate = mutate and any("// kesco: wait for" in line for line in lines)
    chosen = batches(mutants(lines), most, seed) if mutate else []
    names = [one.name for one in programs]
    program = built(dry("\n".join(selectable(lines, chosen)), names), Options(), folder) if check else None
    judge = Judge(outcome, program)
    failures: list[Failure] = []
    counts: Counter[str] = Counter()
    if program is not None:
        report = observed(program)
        failures += [(name, "race", words) for name, words in (judge.reported(-1) or {}).items()]
        counts += Counter({"checked": len(programs), "checked operations": report.operations})
    for number, batch in enumerate(chosen):
        for one in judge.batch(number, batch):
            counts += counted(one)
            if one.missed:
                words = f"{one.missed} missed {one.mutant}: {lines[one.mutant.line].strip()}: {one.wrong}"
                text = "\n".join(mutated(lines, [one.mutant]))
                failures.append((one.mutant.program, f"missed by {one.missed}", f"{words}\n{text}"))
    counts["mutants not compiled"] += len(judge.invalid)
    counts["files mutated"] += bool(chosen)
    return failures, counts


def counted(one: Judged) -> Counter[str]:
    """A judged mutant as numbers."""
    kind = f"{one.mutant.target} {one.mutant.action}"
    facts = {"": True, " wrong": one.wrong, " wrong refused": one.wrong and one.refused, " refused": one.refused}
    if one.reported is not None:
        facts |= {" run": True, " reached": one.reached, " reached reported": one.reached and one.reported}
        facts |= {" reported": one.reported, " possible": one.reported == "possible"}
    return Counter({f"mutants/{kind}/{fact.strip()}": 1 for fact, holds in facts.items() if holds})


def one_file(file: int, wanted: Wanted) -> dict[str, Any]:
    """Everything about one file of programs."""
    started = time.perf_counter()
    programs, options = programs_of(file), options_of(file)
    check, mutate = wanted.of(file)
    if wanted.hosts:
        programs, options = hosts.programs_of(file), hosts.options_of(file)
    counts: Counter[str] = Counter(programs=len(programs))
    failures: list[Failure] = []
    with tempfile.TemporaryDirectory() as name, the_ir() if wanted.ir else nullcontext():
        folder = Path(name)
        outcome = compiled(programs, options, folder)
        if isinstance(outcome, Compiled):
            emitted = outcome.result.text.decode()
            counts["functions"] += len(outcome.rewritten)
            counts["waits"] += emitted.count("// kesco: wait for")
            counts["joins"] += emitted.count("cudaStreamWaitEvent(cudaStreamLegacy, kesco")
            failures += judged(programs, outcome, folder)
            if (check or mutate) and not failures and not wanted.hosts:
                more, found = in_dry_runs(programs, outcome, file, check, mutate, wanted.most, folder)
                failures += more
                counts += found
        else:  # which of its programs?
            alone = {one.name: compiled([one], options, folder) for one in programs}
            failures = [(name, *why[1:]) for name, why in alone.items() if not isinstance(why, Compiled)] or [outcome]
        reports = [(*one, minimised(one, programs, options, folder)) for one in failures]
    seconds = round(time.perf_counter() - started, 2)
    return {"file": file, "counts": dict(counts), "failures": reports, "seconds": seconds}


# ---- smaller programs ----------------------------------------------------------------------------------------------


def minimised(failure: Failure, programs: list[Program], options: Options, folder: Path) -> str:
    """The program at fault, cut down while it fails in the same way, as a golden input."""
    name, kind, _ = failure
    current = next((one for one in programs if one.name == name), None)

    def fails(program: Program) -> bool:
        outcome = compiled([program], options, folder)
        if not isinstance(outcome, Compiled):
            return outcome[1] == kind
        if kind == "race" or kind.startswith("missed"):
            with tempfile.TemporaryDirectory() as place:
                found, _ = in_dry_runs([program], outcome, 0, "verify" not in kind, kind != "race", 1000, Path(place))
                return any(one[1] == kind for one in found)
        return any(one[1] == kind for one in judged([program], outcome, folder))

    if current is None or not fails(current):
        return text_of(programs)
    current = cut_down(current, fails)
    return f"// golden: --streams {options.streams} --strategy {options.strategy}\n{text_of([current])}"


def cut_down(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Smaller programs that still fail, each from where the last one was found, until no smaller one does."""
    found = True
    while found:
        found, at = False, 0
        while less := next(((n, one) for n, one in enumerate(smaller(program)) if n >= at and fails(one)), None):
            at, program = less
            found = True
    return program


# ---- all of them ---------------------------------------------------------------------------------------------------


def hunt(files: list[int], jobs: int, wanted: Wanted, log: Path | None, resume: bool) -> int:
    """Do all files; 1 if anything went wrong."""
    known: dict[int, dict[str, Any]] = {}
    if log is not None and resume and log.exists():
        known = {one["file"]: one for one in map(json.loads, log.read_text().splitlines())}
    elif log is not None:
        log.write_text("")
    started = time.perf_counter()
    done = {file: known[file] for file in files if file in known}
    left = [file for file in files if file not in done]
    work = partial(one_file, wanted=wanted)
    pool = multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=40) if jobs > 1 else None
    for result in pool.imap_unordered(work, left) if pool else (work(file) for file in left):
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
    for name in ("functions", "waits", "joins", "checked", "checked operations"):
        write(f"  {name:20} {total[name]}")
    for name in ("refused", "crash", "input", "serial", "different", "unordered", "oracle", "race"):
        write(f"  {name:20} {kinds[name]}")
    if total["files mutated"]:
        write(f"mutants in {total['files mutated']} files; {total['mutants not compiled']} did not compile")
        mutant_table(total)
    for name, number in kinds.items():
        write(f"FAILED: {number} × {name}")
    return 1 if kinds else 0


def mutant_table(total: Counter[str]) -> None:
    """A row for each kind of mutant, and one for all."""
    facts = ("", "wrong", "wrong refused", "refused", "run", "reached", "reached reported", "reported", "possible")
    rows: dict[str, Counter[str]] = {}
    for name, number in total.items():
        if name.startswith("mutants/"):
            _, kind, fact = name.split("/")
            for row in (kind, "all"):
                rows.setdefault(row, Counter())[fact] += number
    write(f"{'':20} " + " ".join(f"{fact or 'mutants':>16}" for fact in facts))
    for kind in sorted(rows, key=lambda kind: (kind == "all", kind)):
        write(f"{kind:20} " + " ".join(f"{rows[kind][fact]:16}" for fact in facts))


# ---- the workloads -------------------------------------------------------------------------------------------------


def workloads(names: list[str]) -> int:
    """All mutants of the outputs of some workloads, or of all; 1 if `verify` accepts one that `kesco check` reports."""
    manifest = tomllib.loads((WORKLOADS / "manifest.toml").read_text("utf-8"))
    total: Counter[str] = Counter()
    for name, style in ((name, style) for name in names or manifest for style in ("serial", "managed")):
        options = Options(flags=(f"-I{WORKLOADS / name}",))
        outcome = compile_and_keep(WORKLOADS / name / f"{style}.cu", options)
        lines = outcome.lines
        chosen = [[one] for one in mutants(lines)] if outcome.result.changed else []
        with tempfile.TemporaryDirectory() as folder:
            program = built(SELECTOR + "\n".join(selectable(lines, chosen)), options, Path(folder))
            arguments = (*manifest[name]["small"], "--no-check")
            assert observed(program, -1, arguments).diagnostics == ()
            judge = Judge(outcome)
            for number, (one,) in enumerate(chosen):
                refused = judge.refused(mutated(lines, [one]))
                races = observed(program, number, arguments).races
                verdict = "not compiled" if refused is None else "refused" if refused else "accepted"
                total[f"{one.target} {one.action}/{verdict}, {'race' if races else 'silent'}"] += 1
                if verdict == "accepted" or not races:
                    write(f"{name}/{style}: {verdict}, {races} races: {one}: {lines[one.line].strip()}")
        write(f"{name}/{style}: {len(chosen)} mutants")
    for row, number in sorted(total.items()):
        write(f"  {row:50} {number}")
    return 1 if any("accepted, race" in row for row in total) else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--from", type=int, default=20000, dest="first")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--check", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--mutate", type=float, default=0.0, metavar="SHARE")
    parser.add_argument("--most", type=int, default=12, help="mutants of each program")
    parser.add_argument("--ir", action="store_true", help="go by the host's IR where it is followed")
    parser.add_argument("--hosts", action="store_true", help="programs that use more of C++, and really run")
    parser.add_argument("--workloads", nargs="*", metavar="NAME")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--resume", action="store_true")
    given = parser.parse_args()
    if given.workloads is not None:
        sys.exit(workloads(given.workloads))
    together = hosts.TOGETHER if given.hosts else TOGETHER
    first = given.first // together
    files = list(range(first, first + -(-given.programs // together)))
    wanted = Wanted(given.check, given.mutate, given.most, given.ir, given.hosts)
    sys.exit(hunt(files, given.jobs, wanted, given.json, given.resume))


if __name__ == "__main__":
    main()
