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
from kesco.check.places import Places
from kesco.diagnostics import Diagnostic
from kesco.errors import InputError, ToolchainError
from kesco.ir.access import AccessMode
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
    the number of devices is asked: the devices are those that there are.
    """

    arguments: tuple[str, ...] = ()
    limit: float = 60.0
    devices: int = 1
    others: tuple[str, ...] = ()
    watch: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """What a run showed: diagnostics, the number of operations on the device, and of kernels among them."""

    diagnostics: tuple[Diagnostic, ...]
    operations: int
    kernels: int
    streams: int

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
    with ThreadPoolExecutor(1) as pool:
        building = pool.submit((recorder if gpu else dryrun).build, toolchain, sources, options.flags, folder)
        effects, steering, touches, sizes = _kernels(toolchain, sources, options.flags)
        building.result()
    (folder / "kernels").write_text(kernel_table(effects, sizes))
    arch = architectures(toolchain, options.flags)[0]
    return Prepared(path, folder, effects, steering, touches, toolchain, arch, gpu)


def observe(prepared: Prepared, run: Run) -> Report:
    """Run a program once and report what was seen; `InputError` where the run ended too early to say anything."""
    program = prepared.folder / "program"
    ran, found = record(prepared, run)
    trace = found or read("")
    findings: Findings = find_races(trace, prepared.effects, prepared.steering, prepared.touches)
    places = Places.of(program, prepared.toolchain)
    places.load(trace)
    ended = endings.how_it_ended(prepared.source, ran, findings, places, run.limit, found, prepared.gpu)
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


def _kernels(
    toolchain: Toolchain, sources: Sequence[str], flags: Sequence[str]
) -> tuple[dict[str, KernelEffects], dict[str, Steering], Asked, dict[str, tuple[int, ...]]]:
    """Of the kernels in all files: their effects, what steers them, what launches touch, their parameters' sizes."""
    from kesco.analysis.device_steering import kernel_steering
    from kesco.analysis.device_touches import KernelTouches
    from kesco.analysis.effects import kernel_effects
    from kesco.analysis.kernel_parameters import kernel_parameters
    from kesco.toolchain.compile import device_ir

    effects: dict[str, KernelEffects] = {}
    steering: dict[str, Steering] = {}
    sizes: dict[str, tuple[int, ...]] = {}
    texts = []
    for source in sources:
        if Path(source).suffix in _DEVICE_CODE:
            text = device_ir(toolchain, source, flags)
            texts.append(text)
            sizes |= kernel_parameters(text)
            for name, one in kernel_steering(text).items():
                steering[name] = one if steering.get(name, one) == one else {}
            for effect in kernel_effects(text):
                effects[effect.name] = effects[effect.name] | effect if effect.name in effects else effect
    return effects, steering, KernelTouches(texts), sizes


def kernel_table(effects: Mapping[str, KernelEffects], sizes: Mapping[str, tuple[int, ...]]) -> str:
    """What the recorder must know of each kernel, a line each.

    First the name, then the size of each parameter; ``*parameter:offset`` for each pointer behind which it follows
    other pointers, and ``@symbol`` for device symbols of that kind; ``!parameter:offset`` for pointers that it writes
    through. The first line has ``@`` and all symbols.
    """
    lines = [" ".join(["@", *sorted({name for one in effects.values() for name, _ in one.symbols})])]
    for name, known in sorted(sizes.items()):
        effect = effects.get(name)
        words = [name, *map(str, known)]
        if effect is not None:
            fields = [(p.index, offset, root) for p in effect.params for offset, root in p.fields]
            words += [f"*{index}:{offset}" for index, offset, root in fields if root.deep]
            written = ((i, offset) for i, offset, root in fields if AccessMode.WRITE in root.direct and offset >= 0)
            words += [f"!{index}:{offset}" for index, offset in written]
            words += [f"@{symbol}" for symbol, root in effect.symbols if root.deep]
        lines.append(" ".join(words))
    return "\n".join([*lines, ""])
