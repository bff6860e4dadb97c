"""Run a program, without a GPU or on one, and look for races: `kesco check`.

In: a source file, arguments for the program, options. Out: a `Report`: diagnostics, and what was seen.

1. `toolchain.dryrun` builds the program against a CUDA runtime that records every call instead of needing a device, or
   `toolchain.recorder` builds it for a GPU, to be run with a recorder in front of the real runtime; meanwhile the
   effects of its kernels, and what steers them, are read from its device code;
2. `kernel_table` tells the recorder which bytes of a launch are arguments;
3. the program runs; `verify.races` reads the record;
4. `places` turns addresses of calls into lines, `messages` and `endings` turn findings into diagnostics.

Nothing here knows how kesco chooses streams, and it serves any CUDA program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.check import endings, messages
from kesco.check.kernels import kernel_table, known_of
from kesco.check.places import Places
from kesco.diagnostics import Diagnostic
from kesco.errors import InputError, ToolchainError
from kesco.ir.effects import KernelEffects, Steering
from kesco.ir.touched import Asked
from kesco.options import Options
from kesco.session import read as source_text
from kesco.toolchain import dryrun, recorder
from kesco.toolchain.compile import architectures
from kesco.toolchain.discover import discover
from kesco.toolchain.model import Toolchain
from kesco.verify.races import Findings, find_races
from kesco.verify.trace import Trace, read

_DEVICE_CODE = (".cu", ".cuh", ".cup")


@dataclass(frozen=True, slots=True)
class Run:
    """How the program is run: its arguments, the limit in seconds, how many devices it sees, other source files.

    `watch` is whether the host's own accesses to pinned and managed memory are looked for. On a GPU neither that nor
    the number of devices is asked: the devices are those that there are. `shown` is whether a command reads and writes
    what this process does.
    """

    arguments: tuple[str, ...] = ()
    limit: float = 60.0
    devices: int = 1
    others: tuple[str, ...] = ()
    watch: bool = True
    shown: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """What a run showed: diagnostics, the number of operations on the device, and of kernels among them."""

    diagnostics: tuple[Diagnostic, ...]
    operations: int
    kernels: int
    streams: int
    processes: int = 1

    @property
    def races(self) -> int:
        """How many of the diagnostics are certain races or uses of freed memory."""
        return sum(one.code in messages.CERTAIN for one in self.diagnostics)

    @property
    def possible(self) -> int:
        """How many are only possible."""
        return sum(one.code == messages.POSSIBLE for one in self.diagnostics)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A program that was built to be run, on a GPU if `gpu`, and what is known of its kernels; it lies in `folder`."""

    source: str
    folder: Path
    effects: Mapping[str, KernelEffects]
    steering: Mapping[str, Steering]
    touches: Asked
    toolchain: Toolchain
    arch: str
    gpu: bool = False


def check(path: str, run: Run, options: Options, gpu: bool = False) -> Report:
    """Build and run a program, and report the races of that run; raises `KescoError` where it cannot be run."""
    with TemporaryDirectory(prefix="kesco-check-") as name:
        return observe(prepare(path, run.others, options, Path(name), gpu), run)


def prepare(path: str, others: Sequence[str], options: Options, folder: Path, gpu: bool = False) -> Prepared:
    """Build a program in a folder, for dry runs or for a GPU; raises `KescoError` where that does not work."""
    sources = (path, *others)
    for source in sources:
        source_text(source)
    toolchain = discover(clang=options.clang, cuda_path=options.cuda_path, arch=options.arch, libclang=options.libclang)
    from kesco.toolchain.compile import device_ir

    with ThreadPoolExecutor(1) as pool:
        building = pool.submit((recorder if gpu else dryrun).build, toolchain, sources, options.flags, folder)
        code = [device_ir(toolchain, one, options.flags) for one in sources if Path(one).suffix in _DEVICE_CODE]
        known = known_of(code)
        building.result()
    (folder / "kernels").write_text(kernel_table(known.effects, known.sizes))
    arch = architectures(toolchain, options.flags)[0]
    return Prepared(path, folder, known.effects, known.steering, known.touches, toolchain, arch, gpu)


def observe(prepared: Prepared, run: Run) -> Report:
    """Run a program once and report what was seen; `InputError` where the run ended too early to say anything."""
    ran, found = record(prepared, run)
    trace = found or read("")
    findings: Findings = find_races(trace.events, prepared.effects, prepared.steering, prepared.touches)
    places = Places.of(prepared.toolchain)
    places.load(trace)
    full = found is None or found.full
    ended = endings.how_it_ended(prepared.source, ran, findings, places, run.limit, full, prepared.gpu)
    if any(one.code == endings.NO_GPU for one in ended):
        raise ToolchainError(*ended)
    diagnostics = (*messages.races(findings, places), *messages.stale(findings, places), *ended)
    if any(one.code in endings.FATAL for one in ended) and not any(d.code in messages.CERTAIN for d in diagnostics):
        raise InputError(*diagnostics)
    return Report(diagnostics, findings.operations, findings.kernels, len(findings.streams))


def record(prepared: Prepared, run: Run) -> tuple[dryrun.Ran, Trace | None]:
    """Run a program once: how it ended, and what it did, or None where it ended before there was a record."""
    program, kept, kernels = (prepared.folder / name for name in ("program", "record", "kernels"))
    kept.unlink(missing_ok=True)
    if prepared.gpu:
        ran = recorder.run_program(prepared.toolchain, program, run.arguments, kept, kernels, run.limit)
    else:
        rest = (run.limit, run.devices, run.watch, prepared.arch)
        ran = dryrun.run_program(program, run.arguments, kept, kernels, *rest)
    if not kept.exists():
        return ran, None
    return ran, read(kept.read_bytes().rstrip(b"\0").decode("utf-8", "replace"))
