"""Macros that leave a function where a call has failed: what the proof wants of the object that then waits."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.options import Options
from kesco.proving import verify_files

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) return 1; } while (0)
#define WANT(truth) do { if (!(truth)) return 2; } while (0)
struct Buffer { float* p; Buffer() { cudaMalloc(&p, 4096); } ~Buffer() { cudaFree(p); } };
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
"""
BODY = """\
  inc<<<1, 32>>>(a);
  CHECK(cudaGetLastError());
  inc<<<1, 32>>>(b);
  CHECK(cudaGetLastError());
"""


def compiled(folder: Path, text: str, options: Options | None = None) -> Compiled:
    path = folder / "app.cu"
    path.write_text(HEAD + text)
    return compile_and_keep(path, options)


def function(body: str) -> str:
    return f"int run(float* __restrict__ a, float* __restrict__ b) {{\n{body}  return 0;\n}}\n"


def why(outcome: Compiled) -> str:
    (message,) = [d.message for d in outcome.result.diagnostics if d.code == "K204"]
    return message


def test_what_the_proof_wants_of_the_object(tmp_path: Path) -> None:
    """There, in the function's own scope, before the work, not told otherwise, no object of the program behind it."""
    outcome = compiled(tmp_path, function(BODY))
    lines = outcome.lines
    (object_at,) = [n for n, line in enumerate(lines) if line.startswith("  KescoLeave kesco_leave;")]
    (told_at,) = [n for n, line in enumerate(lines) if line.startswith("  kesco_leave.early = false;")]
    launches = [n for n, line in enumerate(lines) if "inc<<<" in line]
    without = [line for n, line in enumerate(lines) if n != object_at]
    assert not outcome.refuses(lines)
    joined = "is not joined to the default stream at 'return'"
    wrong = {
        "removed": [line for n, line in enumerate(lines) if n not in (object_at, told_at)],
        "in a block of its own": [*lines[:object_at], f"  {{ {lines[object_at].partition('//')[0]} }}",
                                  *(line for line in lines[object_at + 1 :] if "kesco_leave" not in line)],
        "behind the first macro": [*without[: launches[0] + 1], lines[object_at], *without[launches[0] + 1 :]],
        "never destroyed": [line.replace("  KescoLeave k", "  static KescoLeave k") for line in lines],
        "told at once": [*lines[: object_at + 1], lines[told_at], *lines[object_at + 1 :]],
        "told on some path": [*lines[: object_at + 1], f"  if (a == b) {lines[told_at]}", *lines[object_at + 1 :]],
        "told by another name": [*lines[: object_at + 1], "  bool& other = kesco_leave.early; other = false;",
                                 *lines[object_at + 1 :]],
        "made of another one": [*lines[:object_at], "  KescoLeave first; first.early = false;",
                                "  KescoLeave kesco_leave = first;", *lines[object_at + 1 :]],
        "before an object of the program": [*lines[: object_at + 1], "  Buffer mine;", *lines[object_at + 1 :]],
    }  # fmt: skip
    for what, text in wrong.items():
        assert joined in outcome.refuses(text), what
    assert not outcome.refuses([line.replace("KescoLeave k", "::KescoLeave k") for line in lines])


def test_an_exception_finds_nothing_pending(tmp_path: Path) -> None:
    """What a template leaves behind where the library throws is waited for by the same object, and no other way."""
    body = "  inc<<<1, 32>>>(a);\n  inc<<<1, 32>>>(b);\n  v.at(7) = 1;\n"
    text = f"#include <vector>\ntemplate <typename T>\nvoid run(T* a, T* b, std::vector<int>& v) {{\n{body}}}\n"
    memory = "  float *a, *b;\n  cudaMalloc(&a, 4096), cudaMalloc(&b, 4096);\n  std::vector<int> v(argc);\n"
    text += f"int main(int argc, char**) {{\n{memory}  try {{ run(a, b, v); }} catch (...) {{ inc<<<1, 32>>>(a); }}\n"
    outcome = compiled(tmp_path, text + "  return cudaDeviceSynchronize();\n}\n")
    (result,) = outcome.rewritten
    assert result.watched and not outcome.refuses(outcome.lines)
    (object_at,) = [n for n, line in enumerate(outcome.lines) if line.startswith("  KescoLeave kesco_leave;")]
    (told_at,) = [n for n, line in enumerate(outcome.lines) if line.startswith("  kesco_leave.early = false;")]
    before, behind, told = outcome.lines[: object_at + 1], outcome.lines[object_at + 1 :], outcome.lines[told_at]
    wrong = {
        "removed": [line for line in outcome.lines if "kesco_leave" not in line],
        "told at once": [*before, told, *behind],
        "told on some path": [*before, f"  if (v.empty()) {told}", *behind],
        "never destroyed": [*before[:-1], before[-1].replace("  KescoLeave k", "  static KescoLeave k"), *behind],
        "an object of the program goes first": [*before, "  Buffer mine;", *behind],
    }
    for what, lines in wrong.items():
        assert outcome.refuses(lines), what


THROWS = {
    "check": "static void check(cudaError_t e) { if (e != cudaSuccess) throw 1; }\n",
    "inner": "static void raise(int e) { throw e; }\n"
    "static void check(cudaError_t e) { if (e != cudaSuccess) raise(e); }\n",
    "template": "template <typename T> void check(T e) { if (e) throw 1; }\n",
    "macro": "static void checked(cudaError_t e, int line) { if (e != cudaSuccess) throw line; }\n"
    "#define check(e) checked(e, __LINE__)\n",
}


@pytest.mark.parametrize("how", THROWS)
def test_a_check_that_throws_finds_nothing_pending(tmp_path: Path, how: str) -> None:
    """Whoever catches it may go on with a stream of his own, for which the serial program's launches come first."""
    body = BODY.replace("CHECK", "check").rpartition("  check")[0]
    text = function(body).replace("int run", "void run").replace("  return 0;\n", "")
    outcome = compiled(tmp_path, THROWS[how] + text)
    (result,) = outcome.rewritten
    assert result.watched
    assert not outcome.refuses(outcome.lines)
    assert outcome.refuses([line for line in outcome.lines if "kesco_leave" not in line])


def test_turns_stay_behind_each_other_where_a_check_throws(tmp_path: Path) -> None:
    text = (
        THROWS["check"] + "void run(int n) {\n  float *own, *host;\n  cudaMalloc(&own, 128);\n"
        "  cudaMallocHost(&host, 128 * n);\n  for (int i = 0; i < n; ++i) {\n"
        "    check(cudaMemcpyAsync(own, host + i * 32, 128, cudaMemcpyHostToDevice));\n    inc<<<1, 32>>>(own);\n"
        "    cudaMemcpyAsync(host + i * 32, own, 128, cudaMemcpyDeviceToHost);\n  }\n  cudaFree(own);\n}\n"
    )
    assert [len(one.turns) for one in compiled(tmp_path, text.replace("check(cudaM", "(cudaM")).rewritten] == [1]
    assert not compiled(tmp_path, text).rewritten


def test_an_object_of_that_name_is_not_taken_for_it(tmp_path: Path) -> None:
    text = "namespace { struct KescoLeave { bool early; }; }\n" + function(BODY)
    outcome = compiled(tmp_path, text)
    assert "a name of its own" in why(outcome)
    by_hand = (
        compiled(tmp_path, function(BODY))
        .result.text.decode()
        .replace("int run(", "struct Mine { bool early; };\nint run(")
    )
    (tmp_path / "out.cu").write_text(by_hand.replace("  KescoLeave k", "  Mine k"))
    (verdict,) = verify_files(str(tmp_path / "app.cu"), str(tmp_path / "out.cu"), Options())
    assert verdict.problems


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (BODY.replace("  inc<<<1, 32>>>(b);\n", "  inc<<<1, 32>>>(b);\n  WANT(a);\n"), "no text can be put there"),
        (BODY.replace("  inc<<<1, 32>>>(b);\n", "  inc<<<1, 32>>>(b);\n  Buffer c;\n"), "and 'c' goes then"),
        (BODY.replace("  inc<<<1, 32>>>(b);\n", "  inc<<<1, 32>>>(b);\n  { Buffer c[2]; }\n"), ""),
    ],
)
def test_where_it_cannot_do_its_work(tmp_path: Path, body: str, reason: str) -> None:
    outcome = compiled(tmp_path, function(body))
    assert not outcome.rewritten
    assert reason in why(outcome)


def test_objects_that_are_there_before(tmp_path: Path) -> None:
    body = "  Buffer c, d;\n  WANT(a);\n" + BODY.replace("(a)", "(c.p)").replace("(b)", "(d.p)")
    outcome = compiled(tmp_path, function(body))
    (result,) = outcome.rewritten
    assert result.watched
    in_main = compiled(tmp_path, f"int main(int argc, char**) {{\n{body.replace('WANT(a)', 'WANT(argc)')}}}\n")
    (result,) = in_main.rewritten
    assert result.watched, "destructors run when main returns"


def test_a_macro_without_pending_work_beside_others(tmp_path: Path) -> None:
    body = f"  switch (a != b) {{\n  case 0:\n{BODY}  break;\n  default: CHECK(cudaMemset(a, 0, 4));\n  }}\n"
    assert compiled(tmp_path, function(body)).rewritten[0].watched


def test_main_ends_the_process(tmp_path: Path) -> None:
    memory = "  float *a, *b;\n  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096);\n"
    outcome = compiled(tmp_path, f"int main() {{\n{memory}{BODY}}}\n")
    (result,) = outcome.rewritten
    assert not result.watched
    assert [s.label for s in result.region.sites if s.role.value == "exit"] == ["end"]
    usual = compiled(tmp_path, f"int main() {{\n{memory}{BODY}  WANT(a != b);\n}}\n")
    assert "a macro may return while work is pending" in why(usual)


@pytest.mark.parametrize("copies", ["keep", "move"])
def test_memory_that_a_macro_checks_stays_where_a_return_would_move_with_it(tmp_path: Path, copies: str) -> None:
    """It would be made on other paths than in the serial program; not so in main, where the process ends."""
    large = BODY.replace("(a)", "(x)").replace("(b)", "(y)").replace("  inc", "  CHECK(cudaMemset(x, 0, 9));\n  inc", 1)
    text = f"  float *x, *y;\n  CHECK(cudaMalloc(&x, 1 << 26));\n  CHECK(cudaMalloc(&y, 1 << 26));\n{large}"
    text += "  CHECK(cudaFree(x));\n  CHECK(cudaFree(y));\n"
    options = Options(copies=copies, memory="reuse", force=True)
    (result,) = compiled(tmp_path, function(text), options).rewritten
    assert not result.moved
    (result,) = compiled(tmp_path, f"int main() {{\n{text}}}\n", options).rewritten
    assert result.moved


def test_nothing_is_read_in_the_background_where_a_macro_returns(tmp_path: Path) -> None:
    """What it read could be freed on the way; and the host waits at each early return, so that copies need not."""
    body = """\
  float *x, *y;
  CHECK(cudaMalloc(&x, 1 << 26)); CHECK(cudaMalloc(&y, 1 << 26));
  CHECK(cudaMemcpy(x, a, 1 << 26, cudaMemcpyHostToDevice));
  CHECK(cudaMemcpy(y, b, 1 << 26, cudaMemcpyHostToDevice));
  inc<<<1, 32>>>(x);
  CHECK(cudaGetLastError());
  inc<<<1, 32>>>(y);
  CHECK(cudaMemcpy(a, x, 1 << 26, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(b, y, 1 << 26, cudaMemcpyDeviceToHost));
  CHECK(cudaFree(x)); CHECK(cudaFree(y));
"""
    caller = "float h[2][1 << 24];\nint main() { return run(h[0], h[1]); }\n"
    outcome = compiled(tmp_path, f"static {function(body)}{caller}", Options(copies="move"))
    (result,) = outcome.rewritten
    text = outcome.result.text.decode().partition("kesco: end")[2]
    assert result.sends is None and text.count("kesco_copy(") == 4 and text.count(", true));") == 1
