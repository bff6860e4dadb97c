"""Make the programs of mixes: each task's serial program and kesco's, and the merged ones.

In: mixes and a folder. Out: programs in that folder and ``build.json``, as `build` writes it. Fair zones are compiled
with a profile (`mix_profile`). The programs are linked with a
static CUDA runtime, so that they can be carried to a machine without compilers.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from kesco.bench import costs, suite
from kesco.bench.build import NOT_BUILT, Build, Program, rewrite, written
from kesco.bench.mix_profile import profile_of
from kesco.bench.mixes import FAIR, MERGED, STRATEGIES, STYLE, Mix
from kesco.bench.plans import Planned, described, together
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, ToolchainError
from kesco.ir import kprof
from kesco.merging.specs import parse
from kesco.merging.together import Merged, merge
from kesco.options import Options
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run

Job = tuple[str, str, Path]  # what it is of, which program, and its source


def build_mixes(
    mixes: Sequence[Mix],
    workloads: Path,
    folder: Path,
    toolchain: Toolchain,
    progress: Callable[[str], None] = lambda name: None,
    jobs: int = 2,
) -> Build:
    """All programs of the mixes; raises `ToolchainError` without nvcc, `InputError` (K522) where one fails."""
    if toolchain.nvcc is None:
        raise ToolchainError(Diagnostic("K503", Severity.ERROR, "no nvcc found", help="see 'kesco doctor'"))
    folder.mkdir(parents=True, exist_ok=True)
    include = [part for one in toolchain.cuda_include for part in ("-isystem", str(one))]
    flags = [f"-arch={toolchain.arch}", "-std=c++17", "-O2", *include]

    def make(job: Job) -> Program:
        of, program, source = job
        name = f"{of.lower()}-{program}"
        plan = None
        if program in MERGED:
            target = folder / f"{name}.cu"
            done = merge_tasks(next(one for one in mixes if one.name == of), workloads, MERGED[program])
            target.write_bytes(done.text)
            source, plan = target, plan_of(done)
        elif program != "serial":
            mix = next((one for one in mixes if one.name == of), None)
            source, plan = rewrite(source, options_of(mix, program, workloads, folder), folder / f"{name}.cu")
        argv = [str(toolchain.nvcc), *flags, f"-I{workloads / 'mp'}", str(source), "-o", str(folder / name)]
        made = run(argv, timeout=600)
        if made.returncode != 0:
            said = made.stderr.strip().splitlines() or ["nothing said"]
            raise InputError(Diagnostic(NOT_BUILT, Severity.ERROR, f"{name}: nvcc: {said[0]}", help=made.command))
        progress(name)
        return written(Program(of, STYLE, program, name), plan)

    with ThreadPoolExecutor(jobs) as pool:
        programs = tuple(pool.map(make, jobs_of(mixes, workloads / "mp")))
    made = {"cuda": toolchain.cuda_version or "", "flags": " ".join(flags), "commit": _commit(workloads)}
    text = json.dumps({"made": made, "programs": [asdict(p) for p in programs]}, indent=1)
    (folder / "build.json").write_text(text + "\n", "utf-8")
    return Build(folder, programs, made)


def jobs_of(mixes: Sequence[Mix], folder: Path) -> list[Job]:
    """All programs of the mixes; a merged one has no source of its own."""
    tasks = dict.fromkeys(task.program for mix in mixes for task in mix.tasks)
    found = [(name, program, folder / f"{name}.cu") for name in tasks for program in ("serial", "kesco")]
    return found + [
        (m.name, strategy, folder / f"{m.program}.cu") for m in mixes for strategy in (*STRATEGIES, *MERGED)
    ]


def options_of(mix: Mix | None, program: str, workloads: Path, folder: Path) -> Options:
    """How kesco compiles a task, or a mix by hand: the profile for fair zones is written into the folder."""
    if program not in STRATEGIES or mix is None:
        return Options()
    if program != FAIR:
        return Options(strategy=program)
    target = folder / f"{mix.name.lower()}.kprof"
    known = costs.read(workloads / "costs.toml")
    target.write_text(kprof.to_json(profile_of(mix, suite.load(workloads), workloads, known)), "utf-8")
    return Options(strategy=program, profile=str(target))


def merge_tasks(mix: Mix, workloads: Path, one_thread: bool) -> Merged:
    """The programs of a mix in one."""
    words = [f"{workloads / 'mp' / task.program}.cu={task.priority}" for task in mix.tasks]
    return merge(parse(words), Options(), one_thread=one_thread)


def plan_of(merged: Merged) -> Planned:
    """What the tasks do, each in its part of the text."""
    return together([(f"task of priority {s.priority}", described(p.text)) for s, p in merged.tasks])


def _commit(folder: Path) -> str:
    head = run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"])
    return head.text.strip() if head.returncode == 0 else "unknown"
