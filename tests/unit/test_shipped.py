"""What a wheel brings ready-made is taken only while it was made from the sources that are here."""

from __future__ import annotations

import hashlib
from pathlib import Path

from kesco.toolchain.native import shipped
from kesco.toolchain.runtimes import SOURCES


def test_ready_made_programs_are_taken_while_they_fit_the_sources(tmp_path: Path) -> None:
    assert shipped("kesco-fikitd", tmp_path) is None
    files = [file for file in (SOURCES / "fikit").iterdir() if file.suffix in (".cpp", ".h")]
    lines = [f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}" for file in files]
    (tmp_path / "sources.txt").write_text("\n".join([*lines, ""]))
    assert shipped("kesco-fikitd", tmp_path) is None
    (tmp_path / "kesco-fikitd").touch()
    assert shipped("kesco-fikitd", tmp_path) == tmp_path / "kesco-fikitd"
    for other in ([*lines[1:], ""], [*lines, lines[0], ""], [lines[0].replace(lines[0][:4], "dead"), *lines[1:], ""]):
        (tmp_path / "sources.txt").write_text("\n".join(other))
        assert shipped("kesco-fikitd", tmp_path) is None


def test_cmake_makes_them_of_the_same_files(repository: Path) -> None:
    from kesco.fikit.programs import _CLIENT, _DAEMON

    made = (repository / "kesco/runtime/CMakeLists.txt").read_text()
    assert f"foreach(name {' '.join(_CLIENT)})" in made and f"foreach(name {' '.join(_DAEMON)})" in made
