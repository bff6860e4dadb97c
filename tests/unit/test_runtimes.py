"""The compiled runtimes: kept where there is room, and made for one run where there is none."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import ToolchainError
from kesco.toolchain import runtimes
from kesco.toolchain.model import Toolchain

NO_ROOM = OSError(errno.ENOSPC, "No space left on device")
NOT_COMPILED = ToolchainError(Diagnostic("K612", Severity.ERROR, "g++ cannot write"))


@pytest.mark.parametrize("problem", [NO_ROOM, NOT_COMPILED])
def test_a_cache_without_room(
    problem: Exception, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache, spare = tmp_path / "cache", tmp_path / "spare"
    spare.mkdir()

    def make(_compiler: object, _toolchain: object, kind: runtimes.Kind, place: Path) -> None:
        if place.is_relative_to(cache):
            raise problem
        (place / kind.value).write_text("a library")

    monkeypatch.setattr(runtimes, "_make", make)
    library = runtimes.runtime_library(toolchain, spare, environ={"XDG_CACHE_HOME": str(cache)})
    assert library == spare / runtimes.Kind.DRY_RUN.value
    assert library.read_text() == "a library"
    assert {one.name for one in cache.rglob("*") if one.is_file()} == {"lock"}
