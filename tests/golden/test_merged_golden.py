"""Merged programs: the whole text but for what all have in common, and what a refusal says.

A folder with `one.cu` and `two.cu`; ``pytest --update-golden`` rewrites what is expected, the diff is the review.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.diagnostics import render
from kesco.emit.prologue import END, MARK
from kesco.errors import InputError
from kesco.merging.specs import parse
from kesco.merging.together import merge, written
from kesco.merging.units import read_unit
from kesco.merging.wrap import wrapped
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain.compile import host_arguments
from kesco.toolchain.model import Toolchain

HERE = Path(__file__).parent
WORDS = ["one.cu:main=7", "two.cu=2"]

pytestmark = pytest.mark.usefixtures("toolchain")


def compare(path: Path, made: str, update: bool) -> None:
    if update:
        path.write_text(made)
    assert path.is_file(), "no such file: run pytest --update-golden and read what it writes"
    assert made == path.read_text()


def elided(text: str) -> str:
    """From the first task on, each prologue and all that stands in for calls of CUDA in one line."""
    text = text[text.index("// ---- kesco merge: task") :]
    text = re.sub(rf"{re.escape(MARK)}.*?{re.escape(END)}[^\n]*", "// <prologue>", text, flags=re.DOTALL)
    calls = r"(?:#pragma push_macro\(\"\w+\"\)\n#undef \w+\n#define \w+ kesco_\w+\n)+"
    text = re.sub(calls, "// <calls of CUDA are the task's own>\n", text)
    return re.sub(r"(?:#pragma pop_macro\(\"(?:cuda\w+|exit)\"\)\n)+", "// <and again CUDA's>\n", text)


@pytest.mark.parametrize("threads", ["each", "one"])
def test_merged_text(threads: str, toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch, update_golden: bool) -> None:
    """With a host thread for each the whole text; with one thread the `main` is another one."""
    folder = HERE / "merged_programs"
    monkeypatch.chdir(folder)
    specs = parse(WORDS)
    parts = []
    for spec in specs:
        text = compile_file(spec.path, Options(launches="keep")).text
        parts.append(wrapped(read_unit(spec.path, text, host_arguments(toolchain, ()))))
    made = elided(written(specs, parts, threads == "one").decode())
    made = made if threads == "each" else made[made.index('#line 1 "kesco_merged_main"') :]
    compare(folder / f"expected_{threads}.cu", made, update_golden)


def test_refusals(monkeypatch: pytest.MonkeyPatch, update_golden: bool) -> None:
    folder = HERE / "merged_refused"
    monkeypatch.chdir(folder)
    with pytest.raises(InputError) as caught:
        merge(parse(WORDS), Options())
    said = "".join(f"{render(one)}\n" for one in caught.value.diagnostics)
    compare(folder / "expected.txt", said, update_golden)
