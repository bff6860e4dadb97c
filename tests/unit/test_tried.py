"""A loop whose turns may overlap runs as was faster so far: the choice, with times that are given to it."""

from __future__ import annotations

import re
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

DRIVER = """#include <cstdio>
#include <cstdlib>
#include <initializer_list>
PACE
// Which way each of 400 executions goes, where a turn takes these times: in the first 200, and in the others.
int main(int, char** argv) {
  KescoTried pace;
  for (int run = 0; run < 400; ++run) {
    const bool one = pace.tries_one();
    std::putchar(one ? '1' : '+');
    pace.took(!one, run == 0 ? 1000 : std::atof(argv[1 + !one + 2 * (run >= 200)]));
  }
}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="no C++ compiler")
@pytest.mark.parametrize(
    ("times", "first", "then"),
    [
        (("10", "5", "10", "5"), "+", "+"),
        (("5", "6", "5", "6"), "1", "1"),
        (("5", "9", "30", "9"), "1", "+"),  # it gets slower: the other way is taken once that is seen
        (("9", "5", "9", "30"), "+", "1"),
    ],
)
def test_the_faster_way_is_taken(times: tuple[str, ...], first: str, then: str, tmp_path: Path) -> None:
    text = files("kesco.emit").joinpath("templates", "turns.cu.j2").read_text(encoding="utf-8")
    pace = re.search(r"struct KescoTried \{.*?\n\};", text, re.DOTALL)
    assert pace is not None
    (tmp_path / "pace.cpp").write_text(DRIVER.replace("PACE", pace.group()))
    subprocess.run(("g++", "-std=c++14", "-o", tmp_path / "pace", tmp_path / "pace.cpp"), check=True)
    ways = subprocess.run((tmp_path / "pace", *times), capture_output=True, text=True, check=True).stdout
    assert ways[:5] == "+1+1+"  # the first makes the streams, and tells nothing
    assert ways[5:128] == first * 123
    assert ways[128] != first and ways[129:200] == first * 71
    assert ways[300:384] == then * 84 and ways[384] != then
