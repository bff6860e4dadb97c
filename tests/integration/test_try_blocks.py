"""Objects whose destructors free memory, behind a try block: kesco's own object waits in it before they run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>
#define CHECK(call) do { cudaError_t e = (call); if (e != cudaSuccess) \\
  throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(e)); } while (0)
__global__ void inc(float* a) { a[threadIdx.x] += 1; }
template <typename T>
struct Basic {
  T* p = nullptr;
  Basic() { CHECK(cudaMalloc(&p, 4096)); }
  ~Basic() { if (p) cudaFree(p); }
  T* get() { return p; }
  std::vector<T> all() const {
    std::vector<T> h(9);
    CHECK(cudaMemcpy(h.data(), p, 36, cudaMemcpyDeviceToHost));
    return h;
  }
};
using Buffer = Basic<float>;
"""
MAIN = """int main() {
  try {
    Buffer x, y;
    inc<<<1, 32>>>(x.p);
    CHECK(cudaGetLastError());
%s    inc<<<1, 32>>>(y.p);
    CHECK(cudaGetLastError());
    auto host = x.all();
    std::cout << host[0] << std::endl;
  } catch (const std::exception& e) {
    std::cerr << e.what() << std::endl;
    return 1;
  }
  return 0;
}
"""
OBJECT = "    KescoLeave kesco_leave;"


def compiled(folder: Path, text: str) -> Compiled:
    folder.mkdir(exist_ok=True)
    (folder / "app.cu").write_text(HEAD + text)
    return compile_and_keep(folder / "app.cu")


def is_rewritten(one: Compiled, name: str = "main") -> bool:
    return name in [f.region.function for f in one.rewritten]


def test_the_object_stands_in_the_try_block_and_is_needed_there(tmp_path: Path) -> None:
    one = compiled(tmp_path, MAIN % "")
    assert is_rewritten(one)
    at = next(n for n, line in enumerate(one.lines) if line.startswith(OBJECT))
    assert one.lines[at - 2] == "    Buffer x, y;"
    off = next(n for n, line in enumerate(one.lines) if "kesco_leave.early = false" in line)
    assert one.lines[off + 1].startswith("  } catch")
    assert one.refuses([*one.lines[:at], *one.lines[at + 1 : off], *one.lines[off + 1 :]])


def test_an_object_that_is_told_too_early_is_refused(tmp_path: Path) -> None:
    one = compiled(tmp_path, MAIN % "")
    at = next(n for n, line in enumerate(one.lines) if line.startswith(OBJECT))
    off = next(line for line in one.lines if "kesco_leave.early = false" in line)
    assert one.refuses([*one.lines[: at + 1], off, *(line for line in one.lines[at + 1 :] if line != off)])


def test_what_is_destroyed_before_the_object_waits_keeps_it_out(tmp_path: Path) -> None:
    one = compiled(tmp_path, MAIN % "    Buffer z;\n")
    assert not any(line.startswith(OBJECT) for line in one.lines)


def test_a_throw_with_a_text_that_is_made_for_it(tmp_path: Path) -> None:
    both = (
        "struct Pair {\n  Buffer a, b;\n  void step() {\n    inc<<<1, 32>>>(a.get());\n    inc<<<1, 32>>>(b.get());\n"
    )
    text = both + "    CHECK(cudaGetLastError());\n  }\n};\n"
    one = compiled(
        tmp_path,
        text
        + "int main() {\n  try { Pair p; p.step(); } catch (const std::exception& e) { return 1; }\n  return 0;\n}\n",
    )
    assert is_rewritten(one, "step")
    assert one.refuses([line for line in one.lines if "KescoLeave kesco_leave" not in line and ".early" not in line])


OWN = """struct Failed : std::runtime_error {
  int code;
  Failed(int c) : std::runtime_error("CUDA"), code(c) {}
%s};
"""
THROWS = "    if (x.p == y.p) throw Failed(3);\n"


@pytest.mark.parametrize(
    ("more", "goes"),
    [("", True), ('  const char* what() const noexcept override { cudaDeviceReset(); return ""; }\n', False)],
    ids=["the library's what", "its own"],
)
def test_an_exception_of_the_programs_that_says_what_the_library_says(tmp_path: Path, more: str, goes: bool) -> None:
    one = compiled(tmp_path, OWN % more + (MAIN % "").replace("    auto host", THROWS + "    auto host"))
    assert is_rewritten(one) is goes


CAUGHT = """int work(int n) {
  Buffer x, y;
  try {
    Buffer z;
    inc<<<1, 32>>>(x.p);
    inc<<<1, 32>>>(y.p);
    inc<<<1, 32>>>(z.p);
    if (n > 1) throw std::runtime_error("no");
  } catch (const std::exception& e) {
    inc<<<1, 32>>>(x.p);
  }
  return x.all()[0] > 3.0f;
}
int main(int argc, char** argv) {
  for (int i = 0; i < argc; ++i) work(i);
  return 0;
}
"""


def test_no_stretch_of_work_begins_where_an_exception_is_on_its_way(tmp_path: Path) -> None:
    one = compiled(tmp_path, CAUGHT)
    assert [f.region.function for f in one.result.functions if f.region.function == "work"]
