"""What there is to measure: workloads, memory styles and variants, from the workloads' folder and its manifest."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError

BAD_CHOICE = "K520"
NO_WORKLOADS = "K521"


@dataclass(frozen=True, slots=True)
class Style:
    """How the data is held: which serial program, which macro for the hand-written ones, and what is timed.

    `insert` tells that kesco puts prefetches in, which the serial program then has none of; `copies` is what it does
    with copies from and to pageable memory. `experts` are the hand-written programs that there are.
    """

    name: str
    serial: str
    serial_flags: tuple[str, ...]
    expert_flags: tuple[str, ...]
    title: str
    insert: bool = False
    copies: str = "keep"
    experts: tuple[str, ...] = ("async", "graph")


_WHOLE = "allocate, copy in, compute, copy out, free"
STYLES = {
    style.name: style
    for style in (
        Style("device", "serial.cu", (), (), "explicit device memory, kernels only"),
        Style("pinned", "pinned.cu", (), ("-DPINNED",), "explicit copies from and to pinned memory, copies included"),
        Style("managed", "managed.cu", (), ("-DMANAGED",), "managed memory without prefetch"),
        Style("inserted", "managed.cu", (), ("-DPREFETCH",), "managed memory, prefetched by kesco and by hand", True),
        Style("whole", "whole.cu", (), ("-DWHOLE",), _WHOLE, False, "move", ("async",)),
        Style("prefetch", "managed.cu", ("-DPREFETCH",), ("-DPREFETCH",), "managed memory, prefetched by hand"),
    )
}


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to run a workload: which program, in which environment."""

    name: str
    program: str
    environment: tuple[tuple[str, str], ...]
    title: str


VARIANTS = {
    variant.name: variant
    for variant in (
        Variant("serial", "serial", (), "serial, one synchronize at the end"),
        Variant("serial-again", "serial", (), "serial once more: what two of the same differ by"),
        Variant("sync", "serial", (("CUDA_LAUNCH_BLOCKING", "1"),), "serial, synchronized after every kernel"),
        Variant("kesco", "kesco", (), "what kesco makes of it"),
        Variant("kesco-at-once", "kesco", (("KESCO_COPIES", "move"),), "the same, memory pinned at once"),
        Variant("kesco-1", "kesco", (("KESCO_STREAMS", "1"),), "the same on one stream"),
        Variant("async", "async", (), "streams and events by hand"),
        Variant("graph", "graph", (), "CUDA graph by hand"),
        Variant("kesco-graph", "kesco-graph", (), "what kesco makes of it with --emit graph"),
        Variant("kesco-auto", "kesco-auto", (), "what kesco makes of it with --emit auto"),
    )
}
PROGRAMS = ("serial", "kesco", "async", "graph")
FORMS = {"kesco": "streams", "kesco-graph": "graph", "kesco-auto": "auto"}
"""The programs that kesco writes, and their ``--emit``."""
CONTROL = "serial-again"
"""A second serial program, beside which a difference is a difference."""
USUAL = tuple(n for n, one in VARIANTS.items() if one.program in PROGRAMS and n not in (CONTROL, "kesco-at-once"))
"""The variants that are measured unless others are asked for."""


@dataclass(frozen=True, slots=True)
class Workload:
    """One folder of the suite; `sizes` are values of ``--n`` by name, `grid` is blocks per launch."""

    name: str
    title: str
    folder: Path
    sizes: dict[str, int]
    grid: int
    tolerance: float

    def source(self, style: Style, program: str) -> tuple[Path, tuple[str, ...]] | None:
        """The file of a program, and the flags that choose the memory style; kesco starts from the serial one."""
        if program == "serial" or program in FORMS:
            return self.folder / style.serial, style.serial_flags
        if program not in style.experts:
            return None
        return self.folder / f"{program}.cu", style.expert_flags


def load(folder: Path, names: Iterable[str] = ()) -> list[Workload]:
    """The workloads of a folder, or those named; raises `UsageError` (K520, K521)."""
    try:
        manifest = tomllib.loads((folder / "manifest.toml").read_text("utf-8"))
    except OSError as error:
        raise UsageError(
            Diagnostic(
                NO_WORKLOADS,
                Severity.ERROR,
                f"cannot read {folder / 'manifest.toml'}: {error.strerror}",
                help="run in the source tree of kesco, or name the folder with --workloads",
            )
        ) from None
    chosen = choose("workload", tuple(names) or tuple(manifest), manifest)
    return [
        Workload(name, facts["title"], folder / name, facts["sizes"], facts["grid"], facts["tolerance"])
        for name, facts in ((name, manifest[name]) for name in chosen)
    ]


def choose(what: str, wanted: Iterable[str], known: Iterable[str]) -> list[str]:
    """The wanted names in their order, each once; raises `UsageError` (K520) for one that is not known."""
    there = tuple(known)
    names = list(dict.fromkeys(wanted))
    for name in names:
        if name not in there:
            near = get_close_matches(name.lower(), there, 1)
            meant = f"did you mean '{near[0]}'? " if near else ""
            help_ = f"{meant}there are: {', '.join(there)}"
            raise UsageError(Diagnostic(BAD_CHOICE, Severity.ERROR, f"no {what} '{name}'", help=help_))
    return names
