"""What happened, held against what the host side's LLVM IR tells: launches, calls, where each pointer comes from.

In: a `Run` and the `HostFacts` of the same file. Out: a `Told`: each disagreement, and how precise the facts are for
what was executed.

1. The entry is the function that the run began in. 2. Each launch and each call of CUDA that took or freed memory is an
operation of that entry, at the place where it stands. 3. The memory behind each pointer is among the operation's
origins: made by the same call, and by the same calls around it as far as they are named, at the same offset where one
is; or the pointer is unknown. Functions of CUDA's headers are a call of what they are named after.

What is not there to compare: memory of the host that CUDA did not allocate, and pointers in what a call is given.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from execution.happened import Activation, Memory, Run, Step
from kesco.ir.effects import KernelEffects
from kesco.ir.host import HostEntry, HostFacts, HostOperation, Origin, Pointed
from kesco.verify.trace import Copied, Freed, Launched

_FEW = 4


@dataclass(slots=True)
class Told:
    """Disagreements, each once, and how the pointers of executed launches are known."""

    findings: dict[str, int] = field(default_factory=dict)
    launches: int = 0
    unsaid: int = 0  # launches in an entry of which nothing is said
    pointers: set[tuple[str, str, str]] = field(default_factory=set)  # launch in the text and argument
    one: int = 0
    few: int = 0
    more: int = 0
    anything: int = 0

    def found(self, step: Step, what: str) -> None:
        text = f"{step}: {what}"
        self.findings[text] = self.findings.get(text, 0) + 1

    def count(self, key: tuple[str, str, str], pointers: list[Pointed]) -> None:
        """Count a pointer of the text, once."""
        if key in self.pointers:
            return
        self.pointers.add(key)
        sites = len(frozenset().union(*(one.sites for one in pointers)))
        if any(one.unknown for one in pointers):
            self.anything += 1
        else:
            self.one, self.few, self.more = (
                self.one + (sites == 1), self.few + (1 < sites <= _FEW), self.more + (sites > _FEW)
            )  # fmt: skip


def tell(run: Run, facts: HostFacts, effects: Mapping[str, KernelEffects]) -> Told:
    """Hold a run against the facts of its file; `effects` say which arguments a kernel follows."""
    told = Told()
    entries = {entry.name: entry for entry in facts.entries}
    at: dict[str, dict[str, list[HostOperation]]] = {}
    for name, entry in entries.items():
        for one in entry.operations:
            for place in {_normal(one.place), _normal(one.configured)}:
                at.setdefault(name, {}).setdefault(place, []).append(one)
    for step in run.steps:
        chain = _chain(step)
        root = chain[-1][0].function.symbol if chain else ""
        launched = next((event for event in step.events if isinstance(event, Launched)), None)
        told.launches += launched is not None
        if root not in entries or facts.refused:
            told.unsaid += launched is not None
            continue
        there = at[root].get(chain[0][1], []) if root in at else []
        if launched is not None:
            followed = _followed(effects, launched.name)
            _launch(told, run, step, launched, followed, [one for one in there if one.kernel in (launched.name, "?")])
        else:
            _call(told, run, step, entries[root], [one for one in there if not one.kernel])
    return told


def _launch(
    told: Told, run: Run, step: Step, launched: Launched, followed: set[int], operations: list[HostOperation]
) -> None:
    if not operations:
        told.found(step, "no such launch is known")
        return
    for number, given in enumerate(launched.arguments or ()):
        for offset in range(0, len(given) - 7, 8):
            address = int.from_bytes(given[offset : offset + 8], "little")
            memory = run.memory_at(address, step) if address else None
            if memory is None:
                continue
            name = f"{number}.{offset}" if len(given) > 8 else str(number)
            pointers = [p for one in operations for p in one.pointers if p.name == name]
            if not pointers and len(given) > 8:  # the structure may be told as a whole
                pointers = [p for one in operations for p in one.pointers if p.name.partition(".")[0] == str(number)]
            if not pointers and number not in followed:
                continue  # a number that is an address, which the kernel does not follow as it comes
            told.count((str(step.call.place), launched.name, name), pointers)
            if not any(_may_be(p, memory, address - memory.event.base) for p in pointers):
                told.found(step, f"argument {name} is {memory} + {address - memory.event.base}, not {_said(pointers)}")


def _followed(effects: Mapping[str, KernelEffects], kernel: str) -> set[int]:
    return {p.index for p in effects[kernel].params if p.fields} if kernel in effects else set()


def _call(told: Told, run: Run, step: Step, entry: HostEntry, operations: list[HostOperation]) -> None:
    addresses = list(_addresses(step))
    if addresses and not operations:
        told.found(step, f"no such call is known of {entry.name}")
    pointers = [p for one in operations for p in one.pointers]
    for address in addresses if operations else ():
        memory = run.memory_at(address, step)
        at = (
            None if "Symbol" in step.call.callee or memory is None else address - memory.event.base
        )  # moved by a number
        if memory is not None and not any(_may_be(p, memory, at) for p in pointers):
            told.found(step, f"it takes {memory} + {address - memory.event.base}, not {_said(pointers)}")


def _addresses(step: Step) -> Iterator[int]:
    for event in step.events:
        if isinstance(event, Copied) and "3D" not in event.function:  # whose pointers are in a structure
            yield from (one.low for one in event.ranges if one.width)
        elif isinstance(event, Freed):
            yield event.base


def _chain(step: Step) -> list[tuple[Activation, str]]:
    """The activations around a step, innermost first, each with the place of what it calls; CUDA's own left out."""
    found: list[tuple[Activation, str]] = []
    place, activation = step.call.place, step.activation
    while activation is not None:
        if not activation.function.wraps:
            found.append((activation, _normal(str(place.file) + f":{place.line}:{place.column}") if place else ""))
        place, activation = activation.call.place if activation.call else None, activation.caller
    return found


def _normal(place: str) -> str:
    file, _, rest = place.partition(":")
    return f"{os.path.realpath(file)}:{rest}" if file else ""


def _may_be(pointed: Pointed, memory: Memory, offset: int | None) -> bool:
    return bool(pointed.unknown) or any(
        _made_by(origin, memory) and (at is None or offset in (None, at)) for origin, at in pointed.origins
    )


def _made_by(origin: Origin, memory: Memory) -> bool:
    if memory.step is None:
        return origin.kind in ("symbol", "global", "outside") and (
            not memory.event.name or origin.name == memory.event.name
        )
    made = [place for _, place in _chain(memory.step)]
    named = [_normal(place) for place in origin.places]
    return bool(named) and all(a == b for a, b in zip(named, made, strict=False))


def _said(pointers: list[Pointed]) -> str:
    origins = sorted({f"{origin.text} + {'?' if at is None else at}" for p in pointers for origin, at in p.origins})
    return ", ".join(origins) or "anything"
