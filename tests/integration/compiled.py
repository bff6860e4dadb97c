"""Compile a file once and keep what is needed to change the output by hand and have it proven again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from kesco import pipeline, proving
from kesco.emit.prologue import stand_in
from kesco.errors import VerificationError
from kesco.frontend.parse import parse
from kesco.ir.flow import Region, Role
from kesco.ir.program import Program
from kesco.options import Options
from kesco.pipeline import Compilation, FunctionResult
from kesco.session import Session
from kesco.toolchain import precompiled
from kesco.toolchain.compile import host_arguments
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import Finished, run


@dataclass(frozen=True)
class Compiled:
    """The outcome for one file, and the open file."""

    session: Session
    result: Compilation

    @property
    def lines(self) -> list[str]:
        return self.result.text.decode().split("\n")

    @property
    def rewritten(self) -> list[FunctionResult]:
        return [one for one in self.result.functions if one.rewritten]

    def function(self, name: str) -> FunctionResult:
        return next(one for one in self.result.functions if one.region.function == name)

    def again(self, name: str) -> Region:
        """The region of one function as the output is read."""
        return next(one for one in self.session.regions_of(self.result.text) if one.function == name)

    def read(self, lines: list[str]) -> Program:
        """Another text for the file, read as the proof reads it, but not followed: that takes a third of the time."""
        file = self.session.file
        file.reparse(stand_in("\n".join(lines).encode()))
        return parse(file, self.session.arguments, self.session.program)

    def refuses(self, lines: list[str]) -> str:
        """What the proof has against another text for the file; empty where it accepts it."""
        try:
            proving.verify(self.session, self.result.functions, "\n".join(lines).encode())
        except VerificationError as error:
            return str(error)
        return ""


def compile_and_keep(path: Path, options: Options | None = None) -> Compiled:
    """`compile_file`, with the session it opened."""
    kept: list[Session] = []

    class Kept(Session):
        def __init__(self, *arguments: object, **named: object) -> None:
            super().__init__(*arguments, **named)  # type: ignore[arg-type]
            kept.append(self)

    with mock.patch.object(pipeline, "Session", Kept):
        result = pipeline.compile_file(str(path), options or Options())
    return Compiled(kept[0], result)


def read_host_side(toolchain: Toolchain, path: Path, *flags: str) -> Finished:
    """What clang says of a file's host side, warnings included: all that an output can have made wrong.

    The device's side is the input's own, which clang compiled when kesco read it.
    """
    command = (*toolchain.clang, *(one for one in host_arguments(toolchain) if one != "-w"))

    header = precompiled.find(Path(toolchain.clang[0]), command[1:], precompiled.by_clang(command[0], "-c"))
    started = precompiled.use(header) if header is not None else ()
    return run((*command, *started, *flags, "-fsyntax-only", str(path)), timeout=300)


def without_one_wait(lines: list[str], region: Region) -> Iterator[tuple[str, list[str]]]:
    """The text without one of its waits, for each of them; in an unrolled loop the line, then each iteration alone."""
    trips: dict[int, set[tuple[tuple[str, int], ...]]] = {}
    for site in region.sites:
        if site.role is Role.WAIT and site.stream is not None:
            trips.setdefault(site.span.line - 1, set()).add(tuple((i.counter, i.value) for i in site.iterations))
    for number, values in sorted(trips.items()):
        line = lines[number]
        yield line.strip(), [*lines[:number], *lines[number + 1 :]]
        for trip in sorted(values) if len(values) > 1 else ():
            test = " && ".join(f"{counter} == {value}" for counter, value in trip)
            spared = line.replace("cudaStreamWaitEvent", f"if (!({test})) cudaStreamWaitEvent", 1)
            yield f"{test}: {line.strip()}", [*lines[:number], spared, *lines[number + 1 :]]


def waits_and_records(region: Region) -> tuple[int, int]:
    """How many waits of one stream for another and records of site events the text executes, joins not counted."""
    waits = [s for s in region.sites if s.role is Role.WAIT and s.stream is not None]
    records = {
        s.event.key for s in region.sites if s.role is Role.RECORD and s.event is not None and "done" in s.event.name
    }
    return len(waits), len(records)
