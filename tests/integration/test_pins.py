"""Blocks of the host's memory that are pinned in a loop with turns: which, that results are right, and what is refused.

They run as turns do, on a runtime whose work runs late and in any order; copies of pageable memory wait there.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.options import Options
from kesco.proving import verify_files
from tests.integration.compiled import Compiled, compile_and_keep
from tests.integration.test_turns import END, FOR, HEAD, MAIN, executable, needs_compiler, printed

pytestmark = pytest.mark.usefixtures("toolchain")

MADE = {
    "vectors": "  std::vector<float> src(n * (turns + 1)), dst(n * (turns + 1));\n",
    "blocks": "  float* src = (float*)malloc(size * (turns + 1));\n"
    "  float* dst;\n  dst = (float*)calloc(turns + 1, size);\n",
    "given": "  float *src = made(n * (turns + 1)), *dst = made(n * (turns + 1));\n",
    "new": "  float *src = new float[n * (turns + 1)], *dst = new float[n * (turns + 1)];\n",
    "one of two": "  float *src = made(n * (turns + 1) + 16), *dst = made(n * (turns + 1) + 16);\n"
    "  (argc > 5 ? dst : src) += 16;\n",
    "a member's other name": "  struct Names {\n    float*& p;\n  };\n"
    "  float *src = made(n * (turns + 1)), *dst = made(n * (turns + 1) + 16);\n"
    "  Names names{dst};\n  names.p += 16;\n",
    "watched": "  float* src = made(n * (turns + 1));\n"
    "  volatile float* seen = (volatile float*)calloc(turns + 1, size);\n  float* dst = (float*)seen;\n",
    "perhaps others": "  float* src = made(n * (turns + 1));\n  float* dst = made(n * (turns + 1));\n"
    "  if (argc > 5) dst = src + n;\n",
}
GIVEN = (
    "float* made(int count) {\n  float* p = (float*)malloc(count * sizeof(float));\n  if (!p) exit(1);\n"
    "  for (int i = 0; i < count; ++i) p[i] = 0;\n  return p;\n}\n"
)
UP = "    CHECK(cudaMemcpy(in, &src[b * n], m * sizeof(float), cudaMemcpyHostToDevice));\n"
WORK = "    twice<<<2, 32>>>(in, tmp, m);\n    CHECK(cudaGetLastError());\n    more<<<2, 32>>>(tmp, out, m);\n"
SYNC = "    CHECK(cudaDeviceSynchronize());\n"
DOWN = "    CHECK(cudaMemcpy(&dst[b * n], out, m * sizeof(float), cudaMemcpyDeviceToHost));\n"
ONE = "    CHECK(cudaMemcpy(&dst[b * n], out + 3, sizeof(float), cudaMemcpyDeviceToHost));\n"
LOOP = FOR + "    int m = b == turns - 1 ? n / 2 : n;\n"
BODIES = {
    "whole": LOOP + UP + WORK + DOWN + "  }\n",
    "checked": LOOP + UP + WORK + SYNC + DOWN + "  }\n",
    "one number": LOOP + UP + WORK + ONE + "  }\n",
}
GROWS = LOOP + UP + WORK + DOWN + "    src.resize(src.size() + n);\n  }\n"
LOOKS = LOOP + UP + WORK + DOWN + '    if (dst[b * n] > 90) puts("large");\n  }\n'


def program(made: str, body: str) -> str:
    main = re.sub(r", \*src, \*dst,", ",", MAIN)
    main = re.sub(r"  CHECK\(cudaMallocHost\(&src.*\n  CHECK\(cudaMallocHost\(&dst.*\n", lambda _: MADE[made], main)
    return HEAD.replace("#include <cstdlib>\n", "#include <cstdlib>\n#include <vector>\n") + GIVEN + main + body + END


def compiled(folder: Path, made: str, body: str) -> Compiled:
    source = folder / "input.cu"
    source.write_text(program(made, body))
    return compile_and_keep(source)


CASES = [(made, body) for made in ("vectors", "blocks", "given") for body in BODIES]


@needs_compiler
@pytest.mark.parametrize(("made", "body"), CASES)
def test_copies_of_pinned_blocks_keep_no_host(made: str, body: str, tmp_path: Path) -> None:
    one = compiled(tmp_path, made, BODIES[body])
    text = one.result.text.decode()
    assert "kesco_pin(kesco_loop, dst, src);" in text
    assert ("// kesco: not needed here: CHECK(cudaDeviceSynchronize());" in text) == (body == "checked")
    output = tmp_path / "output.cu"
    output.write_text(text)
    assert not any(v.problems for v in verify_files(one.result.path, str(output), Options()))
    serial, beside = (executable(t, tmp_path, n) for t, n in ((one.result.source.decode(), "serial"), (text, "beside")))
    for turns in (0, 1, 3, 9):
        wanted = printed(serial, turns, 1)
        always = {printed(beside, turns, seed, {"KESCO_COPIES": "move"}) for seed in range(4)}
        assert always == {wanted + b"pinned 2 times\n" * (turns > 0)}, turns
        assert {printed(beside, turns, seed) for seed in range(2)} <= {wanted, wanted + b"pinned 1 times\n",
                                                                       wanted + b"pinned 2 times\n"}  # fmt: skip
        assert printed(beside, turns, 6, {"KESCO_STREAMS": "1"}).startswith(wanted)


@needs_compiler
@pytest.mark.parametrize("fails", ["1", "6"])
def test_what_goes_wrong_is_told(fails: str, tmp_path: Path) -> None:
    """Once, where the results are waited for: nothing behind that asks."""
    one = compiled(tmp_path, "blocks", BODIES["whole"])
    for name, text in (("serial", one.result.source), ("beside", one.result.text)):
        silent = text.decode().replace("  CHECK(cudaDeviceSynchronize());\n  float sum", "  float sum", 1)
        assert silent != text.decode()
        more = {"KESCO_COPIES": "move", "FAKE_FAULT": fails}
        assert printed(executable(silent, tmp_path, name), 3, 1, more).startswith(b"error\n"), name


@needs_compiler
def test_that_runtime_sees_that_nobody_waits(tmp_path: Path) -> None:
    one = compiled(tmp_path, "vectors", BODIES["whole"])
    text = one.result.text.decode()
    behind = "\n  kesco_turned(kesco_loop);"
    looked = text.replace(behind, f"\n  for (float& f : dst) if (f == 0) f = 1;{behind}")
    assert looked != text
    wanted = printed(executable(one.result.source.decode(), tmp_path, "serial"), 9, 1)
    wrong = executable(looked, tmp_path, "wrong")
    assert any(not printed(wrong, 9, seed, {"KESCO_COPIES": "move"}).startswith(wanted) for seed in range(8))


@pytest.mark.parametrize("made", ["new", "one of two", "a member's other name", "watched", "perhaps others"])
def test_what_need_not_begin_a_block_is_not_pinned(made: str, tmp_path: Path) -> None:
    text = compiled(tmp_path, made, BODIES["whole"]).result.text
    assert b"kesco_pin(kesco_loop, dst" not in text


@pytest.mark.parametrize("body", [GROWS, LOOKS])
def test_loops_that_use_the_memory_stay(body: str, tmp_path: Path) -> None:
    result = compiled(tmp_path, "vectors", body).result
    assert b"kesco_turn" not in result.text
    assert "K221" not in {d.code for d in result.diagnostics}


FORGED = {
    "for another loop": ("kesco_pin(kesco_loop, dst", "kesco_pin(kesco_loop2, dst"),
    "no block": ("kesco_pin(kesco_loop, dst, src)", "kesco_pin(kesco_loop, dst, src + 1)"),
    "another variable": ("kesco_pin(kesco_loop, dst, src)", "kesco_pin(kesco_loop, dst, in)"),
    "twice": ("  kesco_pin(kesco_loop, dst, src);", "  kesco_pin(kesco_loop, dst);\n  kesco_pin(kesco_loop, src);"),
    "freed in the loop": ("    CHECK(kesco_fetch(", "    if (b == turns) free(src);\n    CHECK(kesco_fetch("),
    "set to something else": ("  float* dst;\n", "  float* dst = src + 1;\n"),
    "no wait": ("  CHECK(kesco_fetched());", "  "),
}


@pytest.mark.parametrize("how", FORGED)
def test_forged_pins_are_refused(how: str, tmp_path: Path) -> None:
    one = compiled(tmp_path, "blocks", BODIES["whole"])
    wrong = one.result.text.decode().replace(*FORGED[how], 1)
    assert wrong != one.result.text.decode()
    assert one.refuses(wrong.split("\n")), how
    assert not one.refuses(one.lines)


def test_a_check_stays_where_the_copy_is_not_asked(tmp_path: Path) -> None:
    """The wait would say what went wrong in the turn, and nothing behind it does."""
    silent = DOWN.replace("CHECK(", "", 1).replace("));", ");")
    result = compiled(tmp_path, "vectors", LOOP + UP + WORK + SYNC + silent + "  }\n").result
    assert b"not needed here: CHECK(cudaDeviceSynchronize());" not in result.text
