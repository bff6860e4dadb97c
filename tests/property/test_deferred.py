"""Loops whose results are used a turn later: what kesco writes prints what the serial program prints."""

from __future__ import annotations

from pathlib import Path

import pytest
from property.deferrals import text_of
from property.native import disagreements

from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain.discover import discover

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.mark.parametrize("seed", range(4))
def test_deferred_loops_print_the_same(tmp_path: Path, seed: int) -> None:
    text, _ = text_of(seed)
    path = tmp_path / "input.cu"
    path.write_text(text)
    done = compile_file(str(path), Options(launches="keep"))
    assert list(disagreements(discover(), text, done.text.decode(), ["main"], tmp_path)) == []
