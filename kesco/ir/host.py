"""What the host side of a program does with CUDA, as its LLVM IR tells: launches, calls, where each pointer comes from.

The value of `analysis.host`, for whoever asks which memory a kernel is given. A place is a file, a line and a column.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class Origin:
    """Where memory or a resource was made: by which call, at which place; a variable has its name.

    `places` leads from the call outward, through the calls of the functions around it: each way there is a site.
    """

    kind: str  # device, managed, pinned, stack, heap, global, function, symbol, stream, event, outside
    name: str
    places: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where the call stands."""
        return self.places[0] if self.places else ""

    @property
    def text(self) -> str:
        """Such as ``cudaMalloc at app.cu:3:7``, with the calls that led there."""
        return f"{self.name} at {' from '.join(self.places)}" if self.places else self.name


@dataclass(frozen=True, slots=True)
class Pointed:
    """What a pointer may be: `origins`, each with where in it (None: anywhere), and any other if `unknown` says why."""

    name: str  # the argument's number, with the offset in a structure behind a point
    origins: tuple[tuple[Origin, int | None], ...]
    unknown: str = ""

    @property
    def sites(self) -> frozenset[Origin]:
        """The origins without offsets."""
        return frozenset(one for one, _ in self.origins)


@dataclass(frozen=True, slots=True)
class HostOperation:
    """A launch or a call of CUDA, in all ways that lead there from one entry.

    `kernel` is the mangled name of what is launched, ? if that is not known, and nothing for other calls.
    """

    function: str
    call: str
    place: str
    kernel: str
    pointers: tuple[Pointed, ...]
    settings: tuple[tuple[str, str], ...] = ()  # grid, block, shared memory, stream
    contexts: int = 1
    configured: str = ""  # where ``<<<`` of a launch stands, while `place` is where its expression begins


@dataclass(frozen=True, slots=True)
class HostEntry:
    """What happens when control enters at a function: ``main``, or one that code which is not followed may call."""

    name: str
    operations: tuple[HostOperation, ...]
    functions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HostFacts:
    """What is known of a file's host side. `lost`: what could not be followed, each with its consequence drawn."""

    entries: tuple[HostEntry, ...]
    lost: tuple[str, ...]
    unreached: tuple[str, ...]  # launches that no entry leads to
    refused: str = ""  # why nothing is said of the program

    def launches(self) -> Iterator[HostOperation]:
        """Every launch of every entry."""
        return (one for entry in self.entries for one in entry.operations if one.kernel)


def lines(facts: HostFacts) -> Iterator[str]:
    """The printable form."""
    if facts.refused:
        yield f"nothing is said of this program: {facts.refused}"
    for entry in facts.entries:
        yield f"from {entry.name}, {len(entry.functions)} functions"
        for one in entry.operations:
            settings = ", ".join(f"{name} {value}" for name, value in one.settings)
            ways = f", {one.contexts} ways" if one.contexts > 1 else ""
            yield f"  {one.place or 'no place'} {one.kernel or one.call} in {one.function}{ways}" + (
                f" ({settings})" if settings else ""
            )
            for pointed in one.pointers:
                places = [f"{o.text}{_offset(at)}" for o, at in pointed.origins]
                if pointed.unknown:
                    places.append(f"unknown: {pointed.unknown}")
                yield f"    {pointed.name}: {', '.join(places) or 'nothing'}"
    yield from (f"not followed: {one}" for one in facts.lost)
    yield from (f"not reached: {one}" for one in facts.unreached)


def _offset(at: int | None) -> str:
    return " + ?" if at is None else f" + {at}" if at else ""
