"""`kesco check` sees the parts that launches touch, and only parts: what is apart is no race."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.check import Prepared, Run, observe, prepare
from kesco.options import Options
from kesco.toolchain.model import Toolchain

SOURCE = Path(__file__).parent / "check" / "parts.cu"
CASES = re.findall(r'BOTH\((\w+),|argv\[1\], "(\w+)"', SOURCE.read_text())


@pytest.fixture(scope="module")
def program(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(str(SOURCE), (), Options(), tmp_path_factory.mktemp("parts"))


@pytest.mark.parametrize("case", [a or b for a, b in CASES if (a or b) != "name"])
def test_launches_race_where_both_touch_a_byte(program: Prepared, case: str) -> None:
    found = observe(program, Run((case,), limit=30)).diagnostics
    if case.startswith("same_"):
        assert any(one.code == "K601" for one in found)
    else:
        assert {one.code for one in found} == ({"K602"} if case.startswith("perhaps_") else set())
