"""Random programs under ``--memory reuse``, run without a GPU: the peak is never higher, and the values are the same.

`KESCO_PROGRAMS=N` runs N programs instead of the default, `KESCO_PROGRAMS_FROM=K` begins with another one;
``python tests/property/test_memory.py NUMBER`` prints a file of them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from property.memory import EACH, draw, outcomes

from kesco.options import Options
from kesco.pipeline import compile_file

FILES = -(-int(os.environ.get("KESCO_PROGRAMS", "4")) // EACH)
FIRST = int(os.environ.get("KESCO_PROGRAMS_FROM", "0")) // EACH
RUNS = tuple((str(which), count) for which in range(EACH) for count in "13")  # sizes and branches depend on the count

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.mark.parametrize("number", range(FIRST, FIRST + FILES))
def test_the_peak_is_never_higher(number: int, tmp_path: Path) -> None:
    source = tmp_path / "input.cu"
    source.write_text(draw(number))
    options = Options(memory="reuse", force=number % 3 != 0, streams=(0, 2, 3)[number % 3])
    result = compile_file(str(source), options)
    assert any(one.moved for one in result.functions)
    serial = outcomes(source.read_text(), tmp_path / "serial", RUNS)
    emitted = outcomes(result.text.decode(), tmp_path / "emitted", RUNS)
    for before, after in zip(serial, emitted, strict=True):
        assert after.values == before.values
        assert after.peak <= before.peak
        assert after.pages <= before.pages


if __name__ == "__main__":
    sys.stdout.write(draw(int(sys.argv[1])))
