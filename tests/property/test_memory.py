"""Random programs under ``--memory reuse``, run without a GPU: the peak is never higher, and the values are the same.

`KESCO_PROGRAMS=N` runs N programs instead of the default, `KESCO_PROGRAMS_FROM=K` begins with another one;
``python tests/property/test_memory.py NUMBER`` prints a file of them.
"""

from __future__ import annotations

import itertools
import os
import sys
from pathlib import Path

import pytest
from property.memory import EACH, Seen, draw, seen

from kesco.check import Run, prepare, record
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.verify.races import find_races

FILES = -(-int(os.environ.get("KESCO_PROGRAMS", "12")) // EACH)
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0")) // EACH
COUNTS = (1, 3)  # sizes and branches depend on it

pytestmark = pytest.mark.usefixtures("toolchain")


def outcomes(text: str, folder: Path) -> list[Seen]:
    """What a program had in each of its runs, none of which has a race."""
    folder.mkdir()
    (folder / "program.cu").write_text(text)
    prepared = prepare(str(folder / "program.cu"), (), Options(), folder)
    found = []
    for which, count in itertools.product(range(EACH), COUNTS):
        ran, trace = record(prepared, Run(arguments=(str(which), str(count))))
        assert ran.returncode == 0 and trace is not None, ran.said
        found.append(seen(trace))
        findings = find_races(trace, prepared.effects)
        assert not findings.races and not findings.stale, f"work{which}({count})"
    return found


@pytest.mark.parametrize("number", range(FIRST, FIRST + FILES))
def test_the_peak_is_never_higher(number: int, tmp_path: Path) -> None:
    source = tmp_path / "input.cu"
    source.write_text(draw(number))
    options = Options(memory="reuse", force=number % 3 != 0, streams=(0, 2, 3)[number % 3])
    result = compile_file(str(source), options)
    assert any(one.moved for one in result.functions)
    serial = outcomes(source.read_text(), tmp_path / "serial")
    emitted = outcomes(result.text.decode(), tmp_path / "emitted")
    for before, after in zip(serial, emitted, strict=True):
        assert after.values == before.values
        assert after.peak <= before.peak
        assert after.pages <= before.pages
    assert sum(one.peak for one in emitted) < sum(one.peak for one in serial)


if __name__ == "__main__":
    sys.stdout.write(draw(int(sys.argv[1])))
