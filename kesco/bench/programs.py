"""Every program of the source tree that kesco compiles, each compiled once: ``compiled(root)`` → `Made`, one by one.

In: the root of a source tree. Out: for each program its name, what became of its functions, and the plan. The names are
those of a benchmark's programs (``vec/device/kesco``), and paths for what is in no benchmark.

1. The workloads in each memory style, as `build` compiles them; with explicit memory also as graphs, and with no option
at all. 2. The tasks, and the mixes by hand under each strategy, as `mix_build` does. 3. The merged programs. One with
a single host thread has the same plan, and is not made again. 4. The examples, without those that need headers of
CUDA's libraries, which not everybody has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.bench import mixes
from kesco.bench.build import options_of
from kesco.bench.mix_build import merge_tasks, plan_of
from kesco.bench.mix_build import options_of as options_of_mix
from kesco.bench.model import INNER
from kesco.bench.plans import Planned, described
from kesco.bench.suite import FORMS, STYLES, load
from kesco.options import Options
from kesco.pipeline import FunctionResult, compile_file

EXPLICIT = "device"
_LIBRARIES = re.compile(r"#include <cu(?:blas|fft|rand|sparse|solver)")
_PRICED = "1gb/32"
"""At which size and with how many threads the model looks at a workload."""


@dataclass(frozen=True, slots=True)
class Made:
    """What kesco made of a program; the model takes the costs of `setting`, and its loops run so often."""

    name: str
    functions: tuple[FunctionResult, ...]
    plan: Planned
    setting: str = ""
    passes: int = 1


def compiled(root: Path, taken: Callable[[str], bool] = lambda _: True) -> Iterator[Made]:
    """Those of them whose names are taken; raises `KescoError` where one does not compile."""
    folder = root / "workloads"
    for workload in load(folder):
        setting, passes = f"{workload.name}/{_PRICED}", INNER.get(workload.name, 1)
        for style in STYLES.values():
            for program in FORMS if style.name == EXPLICIT else ("kesco",):
                if taken(name := f"{workload.name}/{style.name}/{program}"):
                    yield of(name, workload.folder / style.serial, options_of(style, program), setting, passes)
        path = workload.folder / STYLES[EXPLICIT].serial
        if taken(name := str(path.relative_to(root))):
            yield of(name, path, Options(), setting, passes)
    yield from _mixes(folder, taken)
    for path in examples(root):
        if taken(name := str(path.relative_to(root))):
            yield of(name, path, Options())


def examples(root: Path) -> list[Path]:
    """The examples that every toolchain compiles."""
    every = sorted((root / "examples").glob("*/*.cu"))
    return [path for path in every if not _LIBRARIES.search(path.read_text("utf-8"))]


def of(name: str, path: Path, options: Options, setting: str = "", passes: int = 1) -> Made:
    """One program."""
    done = compile_file(str(path), options)
    return Made(name, done.functions, described(done.text), setting, passes)


def _mixes(folder: Path, taken: Callable[[str], bool]) -> Iterator[Made]:
    chosen = mixes.load(folder)
    for task in dict.fromkeys(task.program for mix in chosen for task in mix.tasks):
        if taken(name := f"{task}/{mixes.STYLE}/kesco"):
            yield of(name, folder / "mp" / f"{task}.cu", Options())
    for mix in chosen:
        with TemporaryDirectory(prefix="kesco-") as scratch:
            for strategy in mixes.STRATEGIES:
                if taken(name := f"{mix.name}/{mixes.STYLE}/{strategy}"):
                    options = options_of_mix(mix, strategy, folder, Path(scratch))
                    yield of(name, folder / "mp" / f"{mix.program}.cu", options)
        names = [name for one in mixes.MERGED if taken(name := f"{mix.name}/{mixes.STYLE}/{one}")]
        if not names:
            continue
        merged = merge_tasks(mix, folder, one_thread=False)
        functions = tuple(f for one in merged.programs for f in one.functions)
        for name in names:
            yield Made(name, functions, plan_of(merged))
