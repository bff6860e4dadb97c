"""`kesco check` on mistakes with streams of the kinds that people report, each racy and mended."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.check import Prepared, Run, observe, prepare
from kesco.options import Options
from kesco.toolchain.model import Toolchain

SOURCE = Path(__file__).parent / "check" / "kinds.cu"
CASES = re.findall(r"^  CASE\((\w+)\);", SOURCE.read_text("utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def program(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepare(str(SOURCE), (), Options(), tmp_path_factory.mktemp("kinds"))


@pytest.mark.parametrize("case", CASES)
def test_a_racy_program_is_called_racy_and_a_mended_one_is_not(program: Prepared, case: str) -> None:
    racy, mended = (observe(program, Run((case, which), limit=30)) for which in ("racy", "mended"))
    assert racy.races > 0
    assert {one.code for one in racy.diagnostics} <= {"K601", "K603"}
    assert mended.diagnostics == ()
    assert mended.operations > 0


def test_there_are_enough() -> None:
    assert len(CASES) >= 30
