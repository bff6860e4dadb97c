"""What the analysis says of a program, held against what the program does: no step may disagree."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path

import pytest

from execution.judging import judge
from execution.running import How

ROOT = Path(__file__).resolve().parents[2]
THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
TAKEN = {"tests/golden/*/input.cu": 8, "tests/integration/soundness/*.cu": 40, "examples/*/*.cu": 6}
"""Where programs are, and of how many one is run where nothing more is asked."""
NUMBERS = ("3", "512", "2")
"""What programs are given that ask for arguments: how many, how large, how often."""
WAYS = (0, 1, 2, 3) if THOROUGH else (0, 2)

pytestmark = pytest.mark.usefixtures("toolchain")


def _programs() -> list[tuple[str, tuple[str, ...]]]:
    found: list[tuple[str, tuple[str, ...]]] = []
    for pattern, taken in TAKEN.items():
        here = sorted(one for one in ROOT.glob(pattern) if " main(" in one.read_text("utf-8"))
        chosen = here[:: 1 if THOROUGH else taken]
        found += [
            (str(one.relative_to(ROOT)), NUMBERS if "argv[1]" in one.read_text("utf-8") else ()) for one in chosen
        ]
    with (ROOT / "workloads" / "manifest.toml").open("rb") as file:
        manifest = tomllib.load(file)
    for entry in manifest.values() if THOROUGH else [manifest["hits"]]:
        given = (*entry["small"], "--iters", "3", "--no-check")
        found += [(f"workloads/{one}", given) for one in entry["files"] if one.endswith(".cu")]
    return found


@pytest.mark.parametrize(("program", "arguments"), _programs(), ids=lambda one: one if isinstance(one, str) else "")
def test_no_step_disagrees(program: str, arguments: tuple[str, ...]) -> None:
    judged = judge(str(ROOT / program), (), [How(arguments, results=results, calls=3000) for results in WAYS])
    assert judged.why_not == ""
    assert judged.findings == []
    assert judged.steps > 0
