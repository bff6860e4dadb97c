"""One file, from its text to a verdict: what kesco says of it, held against what it does when it runs.

In: a path, flags, ways to run it. Out: a `Judged`. It is what the tests and ``scripts/execution.py`` share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from execution.facts import Told, tell
from execution.happened import Run
from execution.regions import Comparison, compare
from execution.running import Built, How, Unfit, build, execute, refusal
from kesco.analysis.kernel_parameters import kernel_parameters
from kesco.errors import KescoError
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Region
from kesco.options import Options
from kesco.session import Session, host_of


@dataclass(slots=True)
class Judged:
    """How it went: why it could not be run, if so, and what each run showed."""

    path: str
    why_not: str = ""
    steps: int = 0
    launches: int = 0
    threads: int = 1
    ended: bool = True
    runs: list[Comparison] = field(default_factory=list)
    told: list[Told] = field(default_factory=list)

    @property
    def findings(self) -> list[str]:
        ours = {str(one) for run in self.runs for one in run.findings}
        return sorted(ours | {f"host IR: {one}" for told in self.told for one in told.findings})

    @property
    def aside(self) -> list[str]:
        """The same of regions that stay serial, and say why."""
        return sorted({str(one) for run in self.runs if run.serial for one in run.serial.findings})


@dataclass(frozen=True, slots=True)
class Opened:
    """A file, read by kesco and built to be run."""

    path: str
    built: Built
    regions: tuple[Region, ...]
    effects: Mapping[str, KernelEffects]

    def against(self, run: Run, regions: tuple[Region, ...] | None = None) -> Comparison:
        """A run held against the regions, or others in their place."""
        return compare(run, self.regions if regions is None else regions, self.effects)


def opened(path: str, flags: Sequence[str], folder: Path) -> Opened:
    """Read and build one file; `KescoError` or `Unfit` where that does not work."""
    session = Session(path, Options(flags=tuple(flags)))
    sizes = {name: given for text in session.device_code for name, given in kernel_parameters(text).items()}
    built = build(session.toolchain, path, flags, session.effects, sizes, folder)
    return Opened(path, built, session.regions(), session.effects)


def judge(path: str, flags: Sequence[str] = (), ways: Sequence[How] = (How(),)) -> Judged:
    """Compile, run and compare one file."""
    result = Judged(path)
    try:
        with TemporaryDirectory(prefix="kesco-execution-") as name:
            one = opened(path, flags, Path(name))
            facts = host_of(path, Options(flags=tuple(flags)))
            for how in (each for way in ways for each in one.built.ways(way)):
                run = execute(one.built, how)
                result.steps += len(run.steps)
                result.launches += run.launches
                result.threads = max(result.threads, run.threads)
                result.ended = result.ended and run.ended
                if run.threads < 2:  # the record does not say whose what is, and such a file stays serial
                    result.runs.append(one.against(run))
                    result.told.append(tell(run, facts, one.effects))
    except (KescoError, Unfit) as problem:
        result.why_not = refusal(problem)
    return result
