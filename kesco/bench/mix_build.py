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
from kesco.bench.build import NOT_BUILT, Build, Program, rewrite
from kesco.bench.mix_profile import profile_of
from kesco.bench.mixes import FAIR, MERGED, STRATEGIES, Mix
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, ToolchainError
from kesco.ir import kprof
from kesco.merging.specs import parse
from kesco.merging.together import merge
from kesco.options import Options
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run

_Job = tuple[str, str, Path]  # what it is of, which program, and its source


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

    def make(job: _Job) -> Program:
        of, program, source = job
        name = f"{of.lower()}-{program}"
        streams = waits = 0
        if program in MERGED:
            source = _merged(of, MERGED[program], folder / f"{name}.cu")
        elif program != "serial":
            strategy = program if program in STRATEGIES else ""
            options = Options(strategy=strategy, profile=_profile(of) if program == FAIR else None)
            source, streams, waits = rewrite(source, options, folder / f"{name}.cu")
        argv = [str(toolchain.nvcc), *flags, f"-I{workloads / 'mp'}", str(source), "-o", str(folder / name)]
        made = run(argv, timeout=600)
        if made.returncode != 0:
            said = made.stderr.strip().splitlines() or ["nothing said"]
            raise InputError(Diagnostic(NOT_BUILT, Severity.ERROR, f"{name}: nvcc: {said[0]}", help=made.command))
        progress(name)
        return Program(of, "tasks", program, name, max(streams, 1), waits)

    def _profile(of: str) -> str:
        mix = next(one for one in mixes if one.name == of)
        target = folder / f"{of.lower()}.kprof"
        known = costs.read(workloads / "costs.toml")
        target.write_text(kprof.to_json(profile_of(mix, suite.load(workloads), workloads, known)), "utf-8")
        return str(target)

    def _merged(of: str, one_thread: bool, target: Path) -> Path:
        mix = next(one for one in mixes if one.name == of)
        words = [f"{workloads / 'mp' / task.program}.cu={task.priority}" for task in mix.tasks]
        target.write_bytes(merge(parse(words), Options(), one_thread=one_thread).text)
        return target

    with ThreadPoolExecutor(jobs) as pool:
        programs = tuple(pool.map(make, _jobs(mixes, workloads / "mp")))
    made = {"cuda": toolchain.cuda_version or "", "flags": " ".join(flags), "commit": _commit(workloads)}
    text = json.dumps({"made": made, "programs": [asdict(p) for p in programs]}, indent=1)
    (folder / "build.json").write_text(text + "\n", "utf-8")
    return Build(folder, programs, made)


def _jobs(mixes: Sequence[Mix], folder: Path) -> list[_Job]:
    tasks = dict.fromkeys(task.program for mix in mixes for task in mix.tasks)
    found = [(name, program, folder / f"{name}.cu") for name in tasks for program in ("serial", "kesco")]
    return found + [
        (m.name, strategy, folder / f"{m.program}.cu") for m in mixes for strategy in (*STRATEGIES, *MERGED)
    ]


def _commit(folder: Path) -> str:
    head = run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"])
    return head.text.strip() if head.returncode == 0 else "unknown"
