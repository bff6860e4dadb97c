"""What is taken to be different memory because it lies in different elements of an array, against what it is.

The proof reads elements with the reader that planned, and would make the same mistake. So random programs that keep
their pointers in containers run on the host, under `kesco check`, which sees the addresses that they have.
`KESCO_FAMILIES=N` draws N programs instead of the default, `KESCO_FAMILIES_FROM=K` starts at another one.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from integration.compiled import compile_and_keep
from integration.test_check import kesco
from property.families import program

WANTED = int(os.environ.get("KESCO_FAMILIES", "12"))
FIRST = int(os.environ.get("KESCO_FAMILIES_FROM", "0"))
AT_ONCE = 12  # in one file

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.mark.parametrize("first", range(FIRST, FIRST + WANTED, AT_ONCE))
def test_elements_that_are_told_apart_are_apart(first: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = range(first, min(first + AT_ONCE, FIRST + WANTED))
    source = tmp_path / "families.cu"
    source.write_text(program(cases))
    one = compile_and_keep(source)
    turning = [f.region.function for f in one.rewritten if f.turns]
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    monkeypatch.setenv("KESCO_COPIES", "move")
    for n in ("7", "2"):
        code, _, said = kesco(str(output), "--", n, folder=tmp_path)
        assert code == 0 and "no race" in said, said
    assert turning or WANTED > AT_ONCE
