"""Names by which pointers are compared at a function's entry must be names of that function."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kesco.analysis.guards import guards_of
from kesco.analysis.region import RegionBuilder
from kesco.ir import program as ir
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind
from kesco.ir.flow import Role, SiteKind
from kesco.source import Span

HERE = Span("a.cu", 0, 1, 1, 1)
STEP = ir.Function("c:step", "step", (), ir.Block(HERE, ()), HERE, True, False)
PROGRAM = ir.Program("a.cu", b"", (STEP,), (), {}, ())


@pytest.mark.parametrize(("key", "names"), [("c:step", ("this->a", "this->b")), ("c:other", ())])
def test_names_of_another_function_mean_nothing(key: str, names: tuple[str, ...]) -> None:
    builder = RegionBuilder("step", HERE)
    builder.add((0, "", ()), "up", SiteKind.KERNEL, Role.MOVABLE, HERE, frozenset((0,)))
    region = builder.finish()
    found = [Buffer(f"entry:{key}:{name}", name, BufferKind.ENTRY) for name in ("this->a", "this->b")]
    touched = tuple(Access(one, AccessMode.READ_WRITE, "parameter") for one in found)
    sites = tuple(replace(s, accesses=touched) if s.role is Role.MOVABLE else s for s in region.sites)
    steps = {one.name: [frozenset((one.name,))] for one in found}
    guards, unsafe = guards_of(PROGRAM, steps, STEP, replace(region, sites=sites))
    assert (guards, bool(unsafe)) == (names, not names)
