"""Exceptions on their way out: who catches them decides which destructors run, and where work must be joined."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <exception>
#include <iostream>
#include <stdexcept>
#include <vector>
#define CHECK(call) do { if ((call) != cudaSuccess) throw std::runtime_error("CUDA"); } while (0)
__global__ void inc(float* a) { a[threadIdx.x] += 1; }
struct Pair {
  float *x, *y;
  Pair() { cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); }
  ~Pair() { cudaFree(x); cudaFree(y); }
  float first() const { float h; cudaMemcpy(&h, x, 4, cudaMemcpyDeviceToHost); return h; }
};
"""
BOTH = "  inc<<<1, 32>>>(p.x);\n  CHECK(cudaGetLastError());\n  inc<<<1, 32>>>(p.y);\n  CHECK(cudaGetLastError());\n"
SEEN = "  std::vector<float> host(9, p.first());\n  std::cout << host[1] << std::endl;\n"
OWN = """struct Own : std::exception {
  const char* what() const noexcept override { cudaDeviceReset(); return ""; }
};
"""
TRY = """int main() {
  try {
    float *x, *y;
    cudaMalloc(&x, 4096);
    cudaMalloc(&y, 4096);
%s%s  } catch (const std::exception& e) {
    std::cerr << e.what();
    return 1;
  }
}
"""


def compiled(folder: Path, text: str) -> Compiled:
    (folder / "app.cu").write_text(HEAD + text)
    return compile_and_keep(folder / "app.cu")


def is_rewritten(one: Compiled, name: str = "main") -> bool:
    return name in [f.region.function for f in one.rewritten]


def joins_in_its_handler(one: Compiled) -> bool:
    """Whether both streams are joined in front of what a handler calls, of which nothing is known."""
    behind = "\n".join(one.lines).partition("catch (")[2].partition("return 1;")[0]
    return behind.count("cudaStreamWaitEvent(cudaStreamLegacy, ") == 2


def test_what_nobody_catches_runs_no_destructor(tmp_path: Path) -> None:
    one = compiled(tmp_path, f"int main() {{\n  Pair p;\n{BOTH}{SEEN}  return 0;\n}}\n")
    assert is_rewritten(one)
    assert not any("KescoLeave" in line for line in one.lines)
    assert one.refuses([line for line in one.lines if "sees all of this" not in line])


@pytest.mark.parametrize(
    "before", ["", "  std::set_terminate([] { cudaDeviceReset(); });\n"], ids=["nobody", "a handler"]
)
def test_a_handler_of_the_end_comes_by_the_default_stream(tmp_path: Path, before: str) -> None:
    """Which waits for kesco's; what it may have given other streams comes first."""
    one = compiled(tmp_path, f"int main() {{\n{before}  Pair p;\n{BOTH}{SEEN}  return 0;\n}}\n")
    assert is_rewritten(one)
    assert any("streams of code not seen here come first" in line for line in one.lines) is bool(before)


def test_what_main_catches_is_joined_where_it_leaves(tmp_path: Path) -> None:
    one = compiled(tmp_path, TRY % (BOTH.replace("p.", ""), "  std::cout << 1;\n"))
    assert is_rewritten(one)
    at = one.lines.index("    return 1;")
    assert "the caller sees all of this" in one.lines[at - 1]
    assert one.refuses([*one.lines[: at - 4], *one.lines[at:]])


def test_a_class_of_exceptions_of_the_programs_may_do_anything(tmp_path: Path) -> None:
    plain, own = tmp_path / "plain", tmp_path / "own"
    plain.mkdir()
    own.mkdir()
    assert is_rewritten(compiled(plain, TRY % (BOTH.replace("p.", ""), "")))
    assert joins_in_its_handler(compiled(own, OWN + TRY % (BOTH.replace("p.", ""), "  if (x == y) throw Own();\n")))


def test_what_is_caught_need_not_be_an_exception_of_the_library(tmp_path: Path) -> None:
    says = "struct Own {\n  virtual void say() const { cudaStreamSynchronize(0); }\n};\n"
    main = TRY.replace("const std::exception& e", "const Own& e").replace("std::cerr << e.what()", "e.say()")
    one = compiled(tmp_path, says + main % (BOTH.replace("p.", ""), "  if (x == y) throw Own();\n"))
    assert joins_in_its_handler(one)


@pytest.mark.parametrize("value", ["0", "first(p)"])
def test_what_is_destroyed_behind_a_return_is_joined_in_front_of_it(tmp_path: Path, value: str) -> None:
    first = "static int first(const Pair& p) { return p.x != p.y; }\n"
    one = compiled(tmp_path, f"{first}int main() {{\n  Pair p;\n{BOTH}  return {value};\n}}\n")
    assert is_rewritten(one)
    at = one.lines.index(f"  return {value};")
    assert "~Pair sees all of this" in one.lines[at - 1]
    assert one.lines[at + 1] == "}"
