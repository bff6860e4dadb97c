"""Programs with runs of copies, run on paper before and after: those that changed places do what they did.

`KESCO_PROGRAMS=N` draws N of them instead of the default, `KESCO_PROGRAMS_FROM=K` starts at another one.
"""

from __future__ import annotations

import os
from dataclasses import replace

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.oracle import TOGETHER, complaints
from property.orders import Orders
from property.programs import Program, text_of

from kesco.emit.issue import reordered_text
from kesco.options import Options

WANTED = int(os.environ.get("KESCO_PROGRAMS", "8"))
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0"))
FILES = range(FIRST // TOGETHER, FIRST // TOGETHER + -(-WANTED // TOGETHER))
pytestmark = pytest.mark.usefixtures("toolchain")


def names(file: int) -> list[str]:
    return [f"order{n}" for n in range(file * TOGETHER, (file + 1) * TOGETHER)]


@pytest.fixture(scope="module", params=FILES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Compiled]:
    path = tmp_path_factory.mktemp("orders") / "file.cu"
    path.write_text(text_of([Program(name, Orders(int(name[5:]), name).functions()) for name in names(request.param)]))
    options = Options(
        copies=("move", "auto")[request.param % 2], streams=(0, 3, 2)[request.param % 3], force=True, launches="keep"
    )
    return request.param, compile_and_keep(path, options)


def test_what_changed_places_does_what_it_did(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    serial, text = outcome.result.source.decode(), outcome.result.text.decode()
    assert {name: found for name in names(file) if (found := list(complaints(serial, text, name)))} == {}
    changes = [change for one in outcome.rewritten for change in one.reordered]
    assert (changes or file > 1) and all(one.moved for one in changes)  # those drawn by default have some


def test_the_proof_follows_every_better_order(compiled: tuple[int, Compiled]) -> None:
    assert [d.message for d in compiled[1].result.diagnostics if d.code == "K221"] == []


def test_the_oracle_sees_what_must_not_change_places(compiled: tuple[int, Compiled]) -> None:
    """In some of the runs that changed two copies are to one place: backwards these are in the wrong order."""
    file, outcome = compiled
    source, wrong = outcome.result.source, 0
    for change in (change for one in outcome.rewritten for change in one.reordered):
        backwards = replace(change, order=tuple(range(len(change.pieces)))[::-1])
        text = reordered_text(source, [backwards])[0].decode()
        wrong += any(any(complaints(source.decode(), text, name, 2)) for name in names(file))
    assert wrong > 0 or file > 0  # not every file has such runs; the first one does
