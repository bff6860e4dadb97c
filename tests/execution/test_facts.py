"""The check of what the host's IR tells: it agrees with runs, and each kind of wrong fact is found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from execution.facts import tell
from execution.judging import opened
from execution.running import How, execute
from kesco.ir.host import HostFacts, Pointed
from kesco.options import Options
from kesco.session import host_of

GOLDEN = Path(__file__).resolve().parents[1] / "golden"

pytestmark = pytest.mark.usefixtures("toolchain")


def _changed(facts: HostFacts, operation: int, pointer: int, other: Pointed | None) -> HostFacts:
    """The facts with another pointer, or without the operation if there is none."""
    (entry,) = facts.entries
    every = list(entry.operations)
    if other is None:
        del every[operation]
    else:
        pointers = list(every[operation].pointers)
        pointers[pointer] = other
        every[operation] = replace(every[operation], pointers=tuple(pointers))
    return replace(facts, entries=(replace(entry, operations=tuple(every)),))


@pytest.mark.parametrize("name", ["ten_kernels", "helper_called_twice", "sub_buffers"])
def test_every_wrong_fact_is_found(tmp_path: Path, name: str) -> None:
    path = str(GOLDEN / name / "input.cu")
    program, facts = opened(path, (), tmp_path), host_of(path, Options())
    run = execute(program.built, How())
    told = tell(run, facts, program.effects)
    assert told.findings == {} and told.launches and not told.unsaid and told.one
    wrong: list[tuple[str, HostFacts]] = []
    for number, one in enumerate(facts.entries[0].operations):
        if not one.kernel:
            continue
        wrong.append((f"no {one.kernel} at {one.place}", _changed(facts, number, 0, None)))
        for at, pointer in enumerate(one.pointers):
            for gone in pointer.origins:
                rest = tuple(origin for origin in pointer.origins if origin != gone)
                what = f"{one.kernel} at {one.place}: {pointer.name} without {gone[0].text}"
                wrong.append((what, _changed(facts, number, at, replace(pointer, origins=rest))))
    missed = [what for what, one in wrong if not tell(run, one, program.effects).findings]
    assert len(wrong) > 5 and missed == []
