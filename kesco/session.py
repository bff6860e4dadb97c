"""One file opened for analysis: what both compilers say of it.

In: a path and options. Out: a `Session` with the parsed host side, the device code and the effects of the kernels; it
gives the regions of the file and those of another text in the file's place. It is apart from the pipeline because the
proof of two files opens them in the same way.
"""

from __future__ import annotations

import importlib
import os
import re
import stat
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError, UsageError
from kesco.ir.transfers import COPY
from kesco.nesting import deep
from kesco.options import Options
from kesco.source import Span

if TYPE_CHECKING:  # what is not needed to start the compilers is imported while they run
    from kesco.analysis.host_regions.reading import FirstWalk
    from kesco.frontend.clang import SourceFile
    from kesco.ir.batches import Tells
    from kesco.ir.deferred import Turn, TurnFacts
    from kesco.ir.effects import KernelEffects
    from kesco.ir.flow import Region
    from kesco.ir.host import HostFacts
    from kesco.ir.kernels import Kernels
    from kesco.ir.program import Program
    from kesco.toolchain.model import Toolchain

LARGEST = 64 << 20
"""Bytes of a source file; a larger one is data that somebody named by mistake."""
_STAGES = (
    *("frontend.parse", "analysis.resolve", "transfers", "dataflow", "synchronize", "emit.render", "verify.order"),
    "remarks",
)
_OF_A_PROCESS = re.compile(r"-$|/dev/(?:stdin$|fd/)|/proc/(?:self|\d+)/fd/")
Observer = Callable[[str, object], None]


def silent(name: str, value: object) -> None:
    """The observer that looks at nothing."""


class Session:
    """One file opened for analysis: its parsed host side and the effects of its kernels."""

    def __init__(self, path: str, options: Options, observe: Observer = silent, *, heads: bool = True) -> None:
        """Parse both sides of the file, with `heads` as `parse` takes it; raises `InputError` or `ToolchainError`."""
        self.path, self.options, self.observe, self.heads = path, options, observe, heads
        began = time.time_ns()
        self.source = self.text = read(path)  # and the text with headers in it
        self.wraps = any("-fwrapv" in flag or "-fno-strict-overflow" in flag for flag in options.flags)
        self.toolchain = toolchain_for(options)
        observe("toolchain", self.toolchain)
        from kesco.toolchain.readings import differs, without_curand

        options = replace(options, flags=(*options.flags, *without_curand(path, self.text, options.flags)))
        with ThreadPoolExecutor(2) as pool:
            device = pool.submit(device_ir_of, self.toolchain, path, options)
            from kesco.emit.batches import without_additions
            from kesco.emit.places import has_removable
            from kesco.emit.prologue import to_parse
            from kesco.frontend.clang import SourceFile, load
            from kesco.toolchain.compile import host_arguments

            waits = options.syncs != "keep" and has_removable(self.text)
            self.looks = waits or options.copies != "keep" or COPY.encode() in self.text
            load(str(self.toolchain.libclang))
            self.arguments = host_arguments(self.toolchain, options.flags)
            host = pool.submit(SourceFile, path, to_parse(without_additions(self.text)), self.arguments)
            from kesco.analysis.effects import kernel_effects  # the rest is imported while both compilers run

            for stage in _STAGES:
                importlib.import_module(f"kesco.{stage}")
            self.file = _first_told(host, device)
            from kesco.frontend.parse import own_texts, parse
            from kesco.frontend.standard import is_standard_path
            from kesco.toolchain.generations import architectures_read, further_device_ir

            files = own_texts(self.file, self.arguments)
            own = [one.bare for one in files]
            asked = (self.text, *self.file.user_headers())
            wanted = architectures_read(self.toolchain, options.flags, asked)
            self.unsure = differs(self.toolchain, path, options.flags, own, wanted, is_standard_path)
            self.program: Program = parse(self.file, self.arguments, unsure=self.unsure, heads=self.heads)
            self.includes = self.file.included()
            if options.headers and not options.fikit:  # a hook names a line of the source
                self._put_in({one.name: one.bare for one in files[1:]})
            observe("program", self.program)
            observe("includes", self.includes)
            texts = [device.result(), *further_device_ir(self.toolchain, path, options.flags, wanted[1:])]
        self._same_since(began)
        found: dict[str, KernelEffects] = {}
        for one in (effect for text in texts for effect in kernel_effects(text)):
            found[one.name] = found[one.name] | one if one.name in found else one
        from kesco.analysis.hidden_symbols import with_hidden_symbols

        self.effects: Mapping[str, KernelEffects] = with_hidden_symbols(found, self.program, texts)
        self.device_code = texts
        observe("effects", self.effects)
        self.again = self.program  # what `regions_of` read last
        self.strays = options.prefetch and self.zeroings() > 0
        self.looks = self.looks or self.strays
        self.only_text = options.memory == "reuse" or bool(self.program.tasks)  # these go by what the text says
        self.plain_only = options.emit != "streams" or options.prefetch or bool(self.program.tasks)
        """Calls of libraries are no part of a graph, and of no task."""
        self.rolling = not (self.plain_only or self.only_text)  # loops whose trips are alike are followed as loops
        self.by_ir: frozenset[int] = frozenset()  # the functions of the text whose regions are the IR's
        self.open: dict[int, bool] = {}  # of the others, whether unseen code may have left work running before them
        self.apart: frozenset[tuple[str, Span]] = frozenset()  # functions whose IR is not asked
        self.left: frozenset[tuple[str, Span]] = frozenset()  # those that stay as they are, whatever is found
        self.walked: list[FirstWalk] = []  # of the serial program's IR
        self.turning: frozenset[int] = frozenset()  # loops that are followed as loops, though their trips are known
        self._uncounted: set[int] = set()  # loops of this text; those in headers have these numbers in any other

    def _put_in(self, headers: Mapping[str, bytes]) -> None:
        """Make the headers with functions that may be edited a part of the text, if it can be read so."""
        from kesco.emit.batches import without_additions
        from kesco.emit.places import has_removable
        from kesco.emit.prologue import to_parse
        from kesco.frontend.clang import SourceFile
        from kesco.frontend.headers import with_headers
        from kesco.frontend.parse import parse

        text = with_headers(self.path, self.text, self.arguments, self.program, headers)
        if text == self.text:
            return
        try:
            file = SourceFile(self.path, to_parse(without_additions(text)), self.arguments)
            self.program = parse(file, self.arguments, unsure=self.unsure, heads=self.heads)
            self.file, self.text = file, text
            self.looks = self.looks or (self.options.syncs != "keep" and has_removable(text)) or COPY.encode() in text
        except InputError:  # it comes in by another way, too
            return

    def zeroings(self) -> int:
        """How many stores of zero there are that could be memsets."""
        return sum(one.zeroing is not None for one in self.program.operations)

    def _same_since(self, began: int) -> None:
        """Raise `InputError` if the source or a header of the user's is another one than when reading began.

        Both sides were read by themselves, the device's several times: what they say must be of one program.
        """
        from kesco.frontend.standard import is_standard_path
        from kesco.toolchain.places import cache_folder

        kept = str(cache_folder(os.environ)) + os.sep  # what precompiled headers were made from
        own = (name for name in self.includes if not name.startswith(kept) and not is_standard_path(name))
        changed = next((name for name in own if changed_since(name, began)), "")
        if not changed and read(self.path) != self.source:
            changed = self.path
        if changed:
            what = f"{changed} changed while it was read"
            raise InputError(
                Diagnostic("K102", Severity.ERROR, what, help="run the command again when nobody writes it")
            )

    def regions(self) -> tuple[Region, ...]:
        """The regions of the serial program: where its text does not say enough, its IR is asked."""
        from kesco.analysis.host_regions.better import better, hopeful, is_moving_library

        why = "the proof does not follow it"
        found, self.by_ir, self.open = self.of_text(), frozenset(), {}
        kept = ((r, (r.function, r.span) in self.left) for r in found)
        found = tuple(replace(r, serial_because=why, calling=None, linked=None) if left else r for r, left in kept)
        if self.only_text or not hopeful(self.program, found, self.effects):
            return found
        seen = (replace(r, serial_because=why) if (r.function, r.span) in self.apart else r for r in self.of_ir())
        chosen, by_ir = better(found, tuple(seen))
        if self.plain_only and any(is_moving_library(site) for region in chosen for site in region.sites):
            return found
        self.by_ir = by_ir
        self.open = {n: one.open for n, one in enumerate(chosen) if n not in by_ir}
        return chosen

    def of_text(self) -> tuple[Region, ...]:
        """The regions of the serial program as its text has them."""
        return self._resolved(self.program, self._uncounted, streams=False)

    def of_ir(self) -> tuple[Region, ...]:
        """The same as its host's IR has them, without functions that do not launch; none where it cannot be read."""
        return self._from_ir(self.program, self.text, streams=False)

    def _from_ir(self, program: Program, text: bytes, *, streams: bool) -> tuple[Region, ...]:
        """The regions as the host's IR has them; none where it cannot be read."""
        from kesco.analysis.host_regions.reading import host_regions
        from kesco.emit.batches import without_additions
        from kesco.emit.prologue import sizes_in, stand_in

        openmp = program.has("openmp")
        flags = self.options.flags
        if openmp and "-fopenmp" not in flags:  # the directives are read, and otherwise the same text as in the parse
            flags = (*flags, "-fopenmp", "-U_OPENMP")
        options = replace(self.options, flags=flags)
        try:
            ir_text = host_ir_of(self.toolchain, self.path, options, stand_in(without_additions(text), runs=True))
            sizes = sizes_in(text)
            looks, rolling = self.looks, self.rolling
            found = host_regions(
                program, ir_text, self.effects, streams=streams, looks=looks, sizes=sizes, rolling=rolling,
                turning=self._turning(program), kernels=lambda: self.kernels, known=self.walked,
            )  # fmt: skip
            return tuple(map(self._with_kernels, found))
        except InputError:
            return ()

    def read_again(self, text: bytes) -> Program:
        """Another text for the same file, parsed without its additions."""
        from kesco.emit.batches import without_additions
        from kesco.emit.prologue import stand_in
        from kesco.frontend.parse import parse

        self.file.reparse(stand_in(without_additions(text)))
        self.again = parse(self.file, self.arguments, self.program, self.unsure, self.heads)
        return self.again

    def regions_of(self, text: bytes, *, streams: bool = True) -> tuple[Region, ...]:
        """The regions of another text for the same file, with streams and events included."""
        self.read_again(text)
        found = self._resolved(self.again, set(self._uncounted), streams=streams)
        return self._with_ir(self.again, text, found, self.by_ir, streams=streams)

    def late_problems(self, text: bytes) -> tuple[Tells, ...]:
        """What speaks against the batches of a text for the same file; raises `InputError` if it does not compile."""
        from kesco.analysis.late import late_calls
        from kesco.emit.batches import declared, section_of
        from kesco.emit.prologue import with_events

        if section_of(text) is None:
            return ()
        ir_text = host_ir_of(self.toolchain, self.path, self.options, with_events(declared(text)))
        return late_calls(ir_text, self.path)

    def facts_of(self, program: Program, text: bytes, turns: Sequence[Turn]) -> tuple[TurnFacts, ...]:
        """What the statements of these loops do to each other; `text` is what was parsed, and may have additions."""
        from kesco.analysis.deferring import turn_facts
        from kesco.emit.batches import without_additions
        from kesco.emit.prologue import stand_in

        ir_text = host_ir_of(self.toolchain, self.path, self.options, stand_in(without_additions(text), runs=True))
        prints = any({"printf", "unseen"}.intersection(one.order) for one in self.effects.values())
        return turn_facts(program, ir_text, turns, prints=prints)

    def deferred_problems(self, text: bytes) -> list[tuple[Span, str]]:
        """What speaks against what a text for the same file defers; raises `InputError` if it does not compile."""
        from kesco.emit.deferred import written
        from kesco.verify.deferred import deferred_problems, turn_at

        top = Span(self.path, 0, 1, 1, 1)
        if not (found := written(text)):
            return [] if found is not None else [(top, "the lines that defer work are not as kesco writes them")]
        host_ir_of(self.toolchain, self.path, self.options, text)
        program = self.read_again(text)
        turns = [one for each in found if (one := turn_at(program, each, found)) is not None]
        if len(turns) < len(found):
            return [(top, "the lines that defer work do not stand in a loop as they must")]
        return deferred_problems(list(zip(found, turns, self.facts_of(program, text, turns), strict=True)))

    def of_streams(self, by_ir: Collection[int]) -> tuple[Region, ...]:
        """The regions of this text with streams and events included; `by_ir` are those that the IR is asked for."""
        found = self._resolved(self.program, set(), streams=True)
        return self._with_ir(self.program, self.text, found, by_ir, streams=True)

    def _with_ir(
        self, program: Program, text: bytes, found: tuple[Region, ...], by_ir: Collection[int], *, streams: bool
    ) -> tuple[Region, ...]:
        """The regions of a text, some of them as the host's IR has them."""
        found = tuple(replace(one, open=self.open.get(n, one.open)) for n, one in enumerate(found))
        if not by_ir:
            return found
        seen = {one.span: one for one in self._from_ir(program, text, streams=streams)}
        return tuple(seen.get(one.span, one) if n in by_ir else one for n, one in enumerate(found))

    def _resolved(self, program: Program, uncounted: set[int], *, streams: bool) -> tuple[Region, ...]:
        from kesco.analysis.resolve import resolve

        looks, wraps, strays, turning = self.looks, self.wraps, self.strays, self._turning(program)
        known = uncounted | turning
        found = resolve(
            program, self.effects, streams=streams, looks=looks, wraps=wraps, strays=strays, uncounted=known,
            rolling=self.rolling, kernels=lambda: self.kernels,
        )  # fmt: skip
        uncounted |= known - turning
        return tuple(map(self._with_kernels, found))

    def _turning(self, program: Program) -> frozenset[int]:
        """The loops of a text that are followed as loops in any case: in an output those with turns."""
        from kesco.ir.turns import counterparts, turning

        return turning(program) | (counterparts(self.turning, self.program, program) if self.turning else frozenset())

    def _with_kernels(self, region: Region) -> Region:
        """The region, told what decides which bytes kernels touch where loops are marked."""
        if not region.loops:
            return region
        calling = replace(region.calling, kernels=self.kernels) if region.calling is not None else None
        return replace(region, kernels=self.kernels, calling=calling)

    @cached_property
    def kernels(self) -> Kernels:
        """What decides which bytes the kernels touch, and what they write."""
        from kesco.analysis.device_writes import kernel_writes
        from kesco.analysis.turn_steering import turn_steering
        from kesco.ir.kernels import Kernels

        steering = turn_steering(self.device_code, self.effects)
        return Kernels(steering, kernel_writes(self.device_code, self.effects))


def _first_told(host: Future[SourceFile], device: Future[str]) -> SourceFile:
    """The parsed host side; where libclang only says that it could not read it, the reason is that of the device's."""
    try:
        return host.result()
    except InputError as error:
        reason = device.exception() if error.diagnostics[0].code == "K101" else None
        raise reason if isinstance(reason, InputError) else error from None


def toolchain_for(options: Options) -> Toolchain:
    """The tools that the options and the environment lead to; raises `ToolchainError` where one is missing."""
    from kesco.toolchain.discover import discover

    return discover(
        clang=options.clang,
        cuda_path=options.cuda_path,
        arch=options.arch,
        libclang=options.libclang,
        environ=os.environ,
    )


def device_ir_of(toolchain: Toolchain, path: str, options: Options) -> str:
    """The device IR for the first architecture the user compiles for."""
    from kesco.toolchain.compile import architectures, device_ir

    return device_ir(toolchain, path, options.flags, arch=architectures(toolchain, options.flags)[0])


def host_ir_of(toolchain: Toolchain, path: str, options: Options, text: bytes | None = None) -> str:
    """The host's IR, before any pass, of the file or of a text in its place."""
    from kesco.toolchain.compile import host_ir

    return host_ir(toolchain, path, options.flags, text=text)


def host_of(path: str, options: Options) -> HostFacts:
    """What the host side does with CUDA, from its IR; a compilation does not ask for it."""
    from kesco.analysis.host import host_facts

    read(path)
    text = host_ir_of(toolchain_for(options), path, options)
    return deep(path, lambda: host_facts(text))


def changed_since(path: str, began: int) -> bool:
    """Whether a file changed at this time or later; one that is gone did."""
    try:
        status = Path(path).stat()
    except OSError:
        return True
    # a time of change in the future was unpacked or comes from another clock: the inode's own says when
    return status.st_ctime_ns >= began or began <= status.st_mtime_ns <= time.time_ns()


def read(path: str) -> bytes:
    """The bytes of a source file; raises `InputError` when it cannot be read, or `UsageError` when it is no file."""
    if _OF_A_PROCESS.match(path):
        what = f"'{path}' is no file of its own, and both sides of a program are read by themselves"
        raise UsageError(Diagnostic("K102", Severity.ERROR, what, help="write the program to a file, and name that"))
    try:
        if not stat.S_ISREG((about := Path(path).stat()).st_mode) and not stat.S_ISDIR(about.st_mode):
            what = f"{path} is no regular file"  # it may be without an end, and clang reads it once more
            raise UsageError(Diagnostic("K102", Severity.ERROR, what, help="name a .cu file"))
        if about.st_size > LARGEST:
            what = f"{path} has {about.st_size >> 20} MiB, and no source file is that large"
            raise InputError(Diagnostic("K102", Severity.ERROR, what, help="is it the source, and not its data?"))
        return Path(path).read_bytes()
    except IsADirectoryError:
        raise UsageError(Diagnostic("K102", Severity.ERROR, f"{path} is a directory", help="name a .cu file")) from None
    except OSError as error:
        raise InputError(
            Diagnostic(
                "K102",
                Severity.ERROR,
                f"cannot read {path}: {error.strerror}",
                help="check the path and its permissions",
            )
        ) from None
