"""Make the programs of a benchmark: kesco writes the concurrent ones, nvcc compiles them all.

In: workloads, styles, a folder. Out: one program for each workload, style and program in that folder, and
``build.json``, which names them and says how they were made; `read` gives it back on the machine that runs them.

Programs that are to take turns in one process are shared objects, and the folder has the program that runs them, too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from kesco.bench.plans import Planned, described
from kesco.bench.suite import FORMS, PROGRAMS, STYLES, Style, Workload
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, ToolchainError, UsageError
from kesco.options import Options
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run

NOT_BUILT = "K522"
NO_BUILD = "K523"
TURNS = "turns"
"""The program that runs others in turns."""
SHARED = ("-fPIC", "-fno-gnu-unique")
"""What the host's compiler is told then: what is static is each program's own."""


@dataclass(frozen=True, slots=True)
class Program:
    """One program: `path` is relative to the folder; `streams` is 1 where kesco left the serial program alone.

    `plan` says what kesco made of it, with a digest (`plans`); it is empty for what is written by hand.
    """

    workload: str
    style: str
    program: str
    path: str
    streams: int = 1
    waits: int = 0
    plan: str = ""

    @property
    def key(self) -> str:
        """Its name in results and baselines."""
        return f"{self.workload}/{self.style}/{self.program}"


@dataclass(frozen=True, slots=True)
class Build:
    """A folder of programs, and how they were made."""

    folder: Path
    programs: tuple[Program, ...]
    made: dict[str, str]

    def find(self, workload: str, style: str, program: str) -> Program | None:
        """One of the programs, or None where it was not built."""
        wanted = (workload, style, program)
        return next((p for p in self.programs if (p.workload, p.style, p.program) == wanted), None)

    def plans(self) -> dict[str, str]:
        """What kesco made of each program that it wrote."""
        return {one.key: one.plan for one in self.programs if one.plan}

    def require(self, in_turns: bool) -> None:
        """Raises `UsageError` (K523) where the programs were built for another way of running them."""
        if (TURNS in self.made) != in_turns:
            how = "in one process, in turns" if TURNS in self.made else "each in a process of its own"
            option = "--paired ROUNDS " if in_turns else ""
            help_ = f"make others with 'kesco bench {option}--build-only FOLDER'"
            what = f"the programs in {self.folder} were made to run {how}"
            raise UsageError(Diagnostic(NO_BUILD, Severity.ERROR, what, help=help_))


def build(
    workloads: Sequence[Workload],
    styles: Iterable[str],
    folder: Path,
    toolchain: Toolchain,
    progress: Callable[[str], None] = lambda name: None,
    jobs: int = 2,
    programs: Iterable[str] = PROGRAMS,
    in_turns: bool = False,
) -> Build:
    """Make these programs of all workloads, to be run by themselves or by turns in one process.

    Raises `ToolchainError` without nvcc, `InputError` (K522) where one does not compile.
    """
    if toolchain.nvcc is None:
        raise ToolchainError(Diagnostic("K503", Severity.ERROR, "no nvcc found", help="see 'kesco doctor'"))
    folder.mkdir(parents=True, exist_ok=True)
    nvcc = str(toolchain.nvcc)
    include = [part for one in toolchain.cuda_include for part in ("-isystem", str(one))]
    flags = [f"-arch={toolchain.arch}", "-std=c++17", "-O2", *include]

    def make(job: tuple[Workload, Style, str]) -> Program:
        workload, style, program = job
        found = workload.source(style, program)
        assert found is not None
        source, macros = found
        name = f"{workload.name}-{style.name}-{program}"
        made_as = (f"{name}.so", "-DTURNS", "-shared", "-Xcompiler", ",".join(SHARED)) if in_turns else (name,)
        plan = None
        if program in FORMS:
            source, plan = rewrite(source, options_of(style, program), folder / f"{name}.cu")
        nvcc_makes(name, [*made_as[1:], *macros, f"-I{workload.folder}", str(source)], made_as[0])
        return written(Program(workload.name, style.name, program, made_as[0]), plan)

    def nvcc_makes(name: str, arguments: Sequence[str], target: str) -> None:
        made = run([nvcc, *flags, *arguments, "-o", str(folder / target)], timeout=600)
        if made.returncode != 0:
            said = made.stderr.strip().splitlines() or ["nothing said"]
            raise InputError(Diagnostic(NOT_BUILT, Severity.ERROR, f"{name}: nvcc: {said[0]}", help=made.command))
        progress(name)

    wanted = tuple(dict.fromkeys(programs))
    jobs_ = [
        (workload, STYLES[style], program)
        for workload in workloads
        for style in styles
        for program in wanted
        if (found := workload.source(STYLES[style], program)) is not None and found[0].exists()
    ]
    with ThreadPoolExecutor(jobs) as pool:
        ready = tuple(pool.map(make, jobs_))
    if in_turns and workloads:
        source = workloads[0].folder.parent / "common/turns.cpp"
        nvcc_makes(TURNS, [str(source), "-Xlinker", "-export-dynamic", "-ldl"], TURNS)
    made = {"cuda": toolchain.cuda_version or "", "flags": " ".join(flags), "commit": _commit(workloads)}
    made |= {TURNS: TURNS} if in_turns else {}
    result = Build(folder, ready, made)
    text = json.dumps({"made": made, "programs": [asdict(p) for p in ready]}, indent=1)
    (folder / "build.json").write_text(text + "\n", "utf-8")
    return result


def read(folder: Path) -> Build:
    """A folder that `build` filled; raises `UsageError` (K523)."""
    try:
        found = json.loads((folder / "build.json").read_text("utf-8"))
        return Build(folder, tuple(Program(**one) for one in found["programs"]), found["made"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            Diagnostic(
                NO_BUILD,
                Severity.ERROR,
                f"{folder} holds no programs: {error}",
                help="make them with 'kesco bench --build-only FOLDER'",
            )
        ) from None


def options_of(style: Style, program: str) -> Options:
    """How kesco compiles a serial program of that style for one of `FORMS`."""
    return Options(flags=style.serial_flags, prefetch=style.insert, emit=FORMS[program], copies=style.copies)


def rewrite(source: Path, options: Options, target: Path) -> tuple[Path, Planned]:
    """What kesco makes of a file: its text in `target`, and the plan."""
    from kesco.pipeline import compile_file

    done = compile_file(str(source), options)
    target.write_bytes(done.text)
    return target, described(done.text)


def written(program: Program, plan: Planned | None) -> Program:
    """The program with its plan, where kesco has written it."""
    return program if plan is None else replace(program, streams=plan.streams, waits=plan.waits, plan=str(plan))


def _commit(workloads: Sequence[Workload]) -> str:
    """The commit of the workloads, with a plus where the tree differs from it."""
    folder = str(workloads[0].folder) if workloads else "."
    head = run(["git", "-C", folder, "rev-parse", "--short", "HEAD"])
    changed = run(["git", "-C", folder, "status", "--porcelain", "-uno"])
    return head.text.strip() + ("+" if changed.text.strip() else "") if head.returncode == 0 else "unknown"
