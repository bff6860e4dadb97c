"""Run what a build made, or anything that runs it, and look for races: `kesco check -- COMMAND`.

In: a command: a program, a launcher such as `mpirun`, an interpreter that loads a library. Out: a `Report` over all of
its processes. Apart from the package's own way, which builds one program from its source.

1. A runtime of kesco's is loaded in front of the CUDA runtime of every process: the one that needs no GPU, or the
   recorder. Each process that calls CUDA writes a record of its own.
2. What is known of the kernels stands in the programs and libraries that `kesco-nvcc` made with ``KESCO=check``: ELF
   notes, which the runtime reads for the sizes of arguments, and which are read here for the device code.
3. Each record is read event by event, and its races are found as those of a program of its own; what several processes
   have in common is said once.

A program that has the CUDA runtime linked into it cannot be recorded.
"""

from __future__ import annotations

import mmap
import os
import re
import shutil
import struct
import zlib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from kesco.check import Report, Run, endings, messages
from kesco.check.kernels import Known, known_of
from kesco.check.places import Places, Tables
from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import InputError
from kesco.options import Options
from kesco.toolchain.compile import architectures
from kesco.toolchain.discover import discover
from kesco.toolchain.dryrun import Ran, ran
from kesco.toolchain.model import Toolchain
from kesco.toolchain.runtimes import Kind, runtime_library
from kesco.verify.races import Findings, find_races
from kesco.verify.trace import Recording

NOTE, CODE, FOLDER = b"kesco\0", 2, 3  # as kesco/wrapper/checked.py writes them
_PROGRAM_HEADER = struct.Struct("<IIQQQQQQ")
_NOTES = 4  # the kind of a part of a file that holds notes


def check_command(command: Sequence[str], run: Run, options: Options, gpu: bool = False) -> Report:
    """Run a command, and report the races of all its processes; raises `KescoError` where it cannot be run."""
    name = command[0]
    if shutil.which(name) is None:
        what = f"there is no program '{name}'"
        raise InputError(Diagnostic("K102", Severity.ERROR, what, help="name a source file, or a program to run"))
    toolchain = discover(clang=options.clang, cuda_path=options.cuda_path, arch=options.arch, libclang=options.libclang)
    with TemporaryDirectory(prefix="kesco-check-") as text:
        folder = Path(text)
        ran = _run(command, run, toolchain, folder, gpu)
        return _report(name, ran, sorted(folder.glob("record.*")), toolchain, run.limit, gpu)


def _run(command: Sequence[str], run: Run, toolchain: Toolchain, folder: Path, gpu: bool) -> Ran:
    (folder / "spare").mkdir()
    library = runtime_library(toolchain, folder / "spare", Kind.RECORDER if gpu else Kind.DRY_RUN)
    preloaded = [str(library), *filter(None, [os.environ.get("LD_PRELOAD", "")])]
    environment = {
        "KESCO_COPIES": "move",
        "KESCO_GRAPHS": "plain",
        **os.environ,
        "LD_PRELOAD": " ".join(preloaded),
        f"CUDA_{'RECORDER' if gpu else 'DRY_RUN'}_RECORD": str(folder / "record.%p"),
    }
    if not gpu:
        # Where there is no CUDA runtime at all, a program must find one by its name.
        for major in ("11.0", "12", "13"):
            (folder / f"libcudart.so.{major}").symlink_to(library)
        folders = (os.environ.get("LD_LIBRARY_PATH", ""), str(folder))
        environment |= {
            "LD_LIBRARY_PATH": ":".join(filter(None, folders)),
            "CUDA_DRY_RUN_DEVICES": str(run.devices),
            "CUDA_DRY_RUN_ARCH": re.sub(r"\D", "", architectures(toolchain, ())[0]),
            **({} if run.watch else {"CUDA_DRY_RUN_BLIND": "1"}),
        }
    return ran(command, run.limit, environment, through=run.shown)


def _report(name: str, ran: Ran, records: Sequence[Path], toolchain: Toolchain, limit: float, gpu: bool) -> Report:
    files = _Files()
    tables = Tables(files.folders)
    found: dict[Diagnostic, None] = {}
    seen = Findings()
    full = False
    for path in records:
        recording, findings = _races(path, files)
        places = Places.of(toolchain, tables)
        places.load(recording)
        full = full or recording.full
        said = (*messages.races(findings, places), *messages.stale(findings, places))
        found |= dict.fromkeys([*said, *endings.of_a_process(findings, places, gpu)])
        seen.operations += findings.operations
        seen.kernels += findings.kernels
        seen.streams = {**seen.streams, **{len(seen.streams) + n: s for n, s in enumerate(findings.streams.values())}}
    places = Places.of(toolchain, tables)
    ended = endings.how_it_ended(name, ran, seen, places, limit, full, gpu, command=True)
    diagnostics = (*found, *ended)
    codes = {one.code for one in diagnostics}
    if codes & endings.FATAL and not codes & messages.CERTAIN:
        raise InputError(*diagnostics)
    return Report(diagnostics, seen.operations, seen.kernels, len(seen.streams), len(records))


def _races(path: Path, files: _Files) -> tuple[Recording, Findings]:
    with path.open(encoding="utf-8", errors="replace") as first:
        modules = tuple(line.split(" ", 4)[4].rstrip("\n") for line in first if line.startswith("J "))
    known = files.known(modules)
    with path.open(encoding="utf-8", errors="replace") as lines:
        recording = Recording(lines)
        return recording, find_races(recording.events(), known.effects, known.steering, known.touches)


class _Files:
    """What programs and libraries say of themselves, each read once."""

    def __init__(self) -> None:
        self.notes = cache(lambda path: tuple(notes(Path(path))))
        self._known: dict[tuple[str, ...], Known] = {}

    def known(self, modules: Sequence[str]) -> Known:
        """What is known of all kernels in these."""
        with_code = tuple(path for path in dict.fromkeys(modules) if self.notes(path))
        if with_code not in self._known:
            code = dict.fromkeys(data for path in with_code for kind, data in self.notes(path) if kind == CODE)
            self._known[with_code] = known_of([zlib.decompress(one).decode() for one in code])
        return self._known[with_code]

    def folders(self, path: str) -> Sequence[str]:
        """Where the sources of a program or library were compiled."""
        return tuple(dict.fromkeys(os.fsdecode(data) for kind, data in self.notes(path) if kind == FOLDER))


def notes(path: Path) -> Iterator[tuple[int, bytes]]:
    """The notes of kesco's in an ELF file, each with its kind; none where it is no such file."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            if data[:6] == b"\x7fELF\x02\x01":
                begin, size, count = struct.unpack_from("<Q", data, 32)[0], *struct.unpack_from("<HH", data, 54)
                for part in range(count):
                    kind, _, at, _, _, length, _, _ = _PROGRAM_HEADER.unpack_from(data, begin + part * size)
                    if kind == _NOTES:
                        yield from _in(data[at : at + length])
    except (OSError, ValueError, struct.error):
        return


def _in(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at + 12 <= len(data):
        name, size, kind = struct.unpack_from("<III", data, at)
        begin = at + 12 + -(-name // 4) * 4
        if data[at + 12 : at + 12 + name] == NOTE:
            yield kind, data[begin : begin + size]
        at = begin + -(-size // 4) * 4
