"""Line tables against what the compiler was told, and files without one."""

from __future__ import annotations

from pathlib import Path

from kesco.toolchain.line_table import LineTable, Place, read
from kesco.toolchain.model import Toolchain
from kesco.toolchain.process import run

PROGRAM = """\
int three(int x) {
  return x +
         3;
}
#line 70 "other.c"
int main() { return three(0); }
"""


def test_addresses_have_the_lines_of_the_source(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "a.c").write_text(PROGRAM)
    command = (*toolchain.clang, "-g", "-gdwarf-4", "-O0", "-fPIC", "-c", "a.c", "-o", "a.o")
    assert run(command, cwd=tmp_path).returncode == 0
    table = read(tmp_path / "a.o", str(tmp_path))
    # Nothing is linked, so that addresses of this object are offsets into its code, relocated or not.
    found = {place for at in range(64) if (place := table.at(at))}
    assert {(place.file, place.line) for place in found} >= {(str(tmp_path / "a.c"), line) for line in (1, 2)}
    assert (str(tmp_path / "other.c"), 70) in {(place.file, place.line) for place in found}
    assert all(place.column >= 0 for place in found)


def test_between_the_rows() -> None:
    place = Place("a.c", 1, 2)
    table = LineTable([(32, None), (16, place)])
    assert [table.at(at) for at in (15, 16, 31, 32)] == [None, place, place, None]


def test_what_is_no_program_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("no ELF")
    assert read(tmp_path / "text").at(0) is None
