"""Whole random programs: compiled, proven, and then run on paper, serial text against emitted text.

Several programs share a file, since most of the time goes into headers. `KESCO_PROGRAMS=N` draws N of them instead of
the default, `KESCO_PROGRAMS_FROM=K` starts at another one;
``python tests/property/test_programs.py NUMBER`` prints one.
Thousands, with mutations, and with failures cut down: ``python scripts/hunt.py``.
"""

from __future__ import annotations

import os
import random
import re
import sys
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep
from property.oracle import TOGETHER, complaints, name_of, options_of, programs_of
from property.programs import draw, text_of

WANTED = int(os.environ.get("KESCO_PROGRAMS", "24"))
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0"))
FILES = range(FIRST // TOGETHER, FIRST // TOGETHER + -(-WANTED // TOGETHER))

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(scope="module", params=FILES)
def compiled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[int, Compiled]:
    path = tmp_path_factory.mktemp("programs") / f"file{request.param}.cu"
    path.write_text(text_of(programs_of(request.param)))
    return request.param, compile_and_keep(path, options_of(request.param))


def test_emitted_programs_do_what_the_serial_ones_do(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    serial, emitted = outcome.result.source.decode(), outcome.result.text.decode()
    for program in programs_of(file):
        found = list(complaints(serial, emitted, program.name))
        assert found == [], f"{program.name} of file {file}"


def test_the_proof_follows_every_better_order(compiled: tuple[int, Compiled]) -> None:
    """What is given up is no error for an author, but a mistake of kesco: in the order, or in the proof."""
    assert [d.message for d in compiled[1].result.diagnostics if d.code == "K221"] == []


def test_enough_of_them_are_rewritten(compiled: tuple[int, Compiled]) -> None:
    file, outcome = compiled
    options = options_of(file)
    if options.strategy == "kesco" and options.streams != 1:
        assert len(outcome.rewritten) >= 3


def test_the_proof_never_accepts_what_goes_wrong(compiled: tuple[int, Compiled]) -> None:
    """Without some of its waits, joins and fences: what the proof still accepts must still be right."""
    file, outcome = compiled
    serial, lines = outcome.result.source.decode(), outcome.lines
    drawn = random.Random(file)
    orders = [n for n, line in enumerate(lines) if re.search(r"cuda(StreamWaitEvent|EventRecord)\(.*// kesco: ", line)]
    sources = [n for n, line in enumerate(lines) if re.search(r"kesco_(sent|fetched)\(\);  // kesco: ", line)]
    chosen = drawn.sample(orders, min(2, len(orders))) + drawn.sample(sources, min(1, len(sources)))
    for number in chosen:
        less = [
            *lines[:number],
            re.sub(r"cuda|kesco_sent|kesco_fetched", r"if (0) \g<0>", lines[number], count=1).partition("//")[0],
            *lines[number + 1 :],
        ]
        if outcome.refuses(less):
            continue
        for program in programs_of(file):
            found = list(complaints(serial, "\n".join(less), program.name))
            assert found == [], f"accepted without {lines[number].strip()}"


def test_the_oracle_sees_missing_waits(compiled: tuple[int, Compiled]) -> None:
    """An oracle that never fails is none: without all waits between streams, somebody goes wrong."""
    file, outcome = compiled
    less = [line for line in outcome.lines if "// kesco: wait for" not in line]
    if len(outcome.lines) - len(less) > 4:
        serial = outcome.result.source.decode()
        assert any(complaints(serial, "\n".join(less), program.name) for program in programs_of(file))


def test_the_oracle_sees_what_is_read_too_late(compiled: tuple[int, Compiled]) -> None:
    """Without the waits for sources, and with all copies to the device in the background."""
    file, outcome = compiled
    less = [line for line in outcome.lines if "kesco_sent();  // kesco: " not in line]
    if len(less) < len(outcome.lines):
        assert "may write or free what this copies" in outcome.refuses(less)
        serial = outcome.result.source.decode()
        assert any(complaints(serial, "\n".join(less), program.name) for program in programs_of(file))


def test_where_a_macro_leaves_the_host_must_wait(compiled: tuple[int, Compiled]) -> None:
    """The objects that wait there, told that nothing leaves early: what is still accepted must still be right."""
    file, outcome = compiled
    told = [re.sub(r"KescoLeave (\w+);.*", r"KescoLeave \1; \1.early = false;", line) for line in outcome.lines]
    if told != outcome.lines and "'return'" not in outcome.refuses(told):
        serial = outcome.result.source.decode()
        for program in programs_of(file):
            assert list(complaints(serial, "\n".join(told), program.name)) == []


if __name__ == "__main__":
    chosen = draw(int(sys.argv[1]), name_of(int(sys.argv[1])))
    Path("program.cu").write_text(text_of([chosen])) if "-w" in sys.argv else sys.stdout.write(text_of([chosen]))
