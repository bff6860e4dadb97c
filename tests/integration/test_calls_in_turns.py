"""Turns of a loop whose work is in functions: what the proof refuses, each one step away from what it accepts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")
INPUT = Path(__file__).parents[1] / "golden/batches_through_functions/input.cu"
WAIT = "  CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there"


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return compile_and_keep(INPUT)


def changed(compiled: Compiled, old: str, new: str, which: int = 0) -> list[str]:
    """The output with one occurrence of a text replaced by another."""
    text = "\n".join(compiled.lines)
    begin = text.index("// ---- kesco: end")
    for _ in range(which + 1):
        begin = text.index(old, begin + 1)
    return (text[:begin] + new + text[begin + len(old) :]).split("\n")


def test_the_output_is_proven(compiled: Compiled) -> None:
    assert compiled.refuses(compiled.lines) == ""
    assert sum("KescoLater(" in line for line in compiled.lines if "explicit" not in line) >= 6


REFUSED = {
    "no_wait_behind_the_loop": (WAIT, "", 0),
    "another_check": (WAIT, "  (void)kesco_fetched();", 1),
    "a_look_before_the_wait": (WAIT, '  printf("%f", to[3]);\n' + WAIT, 1),
    "a_look_in_the_function": (
        "  CHECK(kesco_copy_here(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));\n}",
        "  CHECK(kesco_copy_here(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));\n  if (to[0] > 3) exit(2);\n}",
        0,
    ),
    "a_change_in_the_function": (
        "  CHECK(kesco_copy_here(in, from, n * sizeof(float), cudaMemcpyHostToDevice));\n}",
        "  CHECK(kesco_copy_here(in, from, n * sizeof(float), cudaMemcpyHostToDevice));\n  ((float*)from)[0] = 3;\n}",
        0,
    ),
    "one_place_for_all_turns": ("    kesco_place(kesco_loop, 0, &in);\n", "", 0),
    "memory_that_stays": ("  CHECK(kesco_give_here(in));\n", "", 0),
    "memory_given_back_early": (
        "  launch_of(in, out, n);\n",
        "  CHECK(kesco_give_here(in));\n  launch_of(in, out, n);\n",
        0,
    ),
    "another_name_for_the_check": (
        "  Scaler scaler(n);\n  scaler.run",
        "#undef CHECK\n#define CHECK(call) (void)(call)\n  Scaler scaler(n);\n  scaler.run",
        0,
    ),
    "another_stream": ("KescoOn(kesco->stream[0]), launch_of<float>", "KescoOn(kesco->stream[1]), launch_of<float>", 0),
}


@pytest.mark.parametrize("name", REFUSED)
def test_the_proof_refuses(compiled: Compiled, name: str) -> None:
    assert compiled.refuses(changed(compiled, *REFUSED[name])) != ""
