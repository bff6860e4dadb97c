"""Elements that look as if each had memory of its own, and do not: the loop over them keeps its order.

The proof reads elements with the same reader, so none of these would be refused by it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <cstdlib>
#include <utility>
#include <vector>
__global__ void up(float* x) { x[threadIdx.x] += 1; }
static float* buffer() {
  float* p;
  cudaMalloc(&p, 256);
  return p;
}
static bool emptied(std::vector<float*>& v) {
  v.clear();
  return true;
}
static float* filled[64];
float** others = filled;
static float* own[64];
void from_elsewhere() { own[1] = own[0] = buffer(); }
int main(int argc, char** argv) {
  int n = atoi(argv[1]);
  std::vector<float*> v, w;
  for (int i = 0; i < n; ++i) w.push_back(buffer());
"""
EACH = "  for (int i = 0; i < n; ++i) up<<<1, 32>>>(w[i]);\n"
AT_SIZE = "up<<<1, 32>>>(w[v.size()]); v.push_back(w[0]);"
STAYS = {
    "emptied in the test": f"  for (int i = 0; i < n && emptied(v); ++i) {{ {AT_SIZE} }}\n",
    "emptied in a comma": f"  int i = 0;\n  while (v.clear(), i < n) {{ {AT_SIZE} ++i; }}\n",
    "emptied in the step": f"  for (int i = 0; i < n; ++i, v.clear()) {{ {AT_SIZE} }}\n",
    "two of one name": "  v.push_back(nullptr);\n  auto& a = v;\n  {\n    std::vector<float*> v;\n"
    "    for (int i = 0; i < n; ++i) { float* p = buffer(); a.push_back(p); v.push_back(p); }\n"
    "    for (int i = 1; i < n; ++i) { up<<<1, 32>>>(a[i]); up<<<1, 32>>>(v[i]); }\n  }\n",
    "a pointer made of another": "  float** p = new float*(w[0]);\n  if (n > 100) *p = buffer();\n"
    "  for (int i = 0; i < n; ++i) { up<<<1, 32>>>(*p); up<<<1, 32>>>(w[0]); }\n",
    "with braces": "  float** p = new float*{w[0]};\n  if (n > 100) *p = buffer();\n"
    "  for (int i = 0; i < n; ++i) { up<<<1, 32>>>(*p); up<<<1, 32>>>(w[0]); }\n",
    "named by what others know": "  for (int i = 2; i < n; ++i) filled[i] = buffer();\n"
    "  for (int i = 0; i < n; ++i) up<<<1, 32>>>(filled[i]);\n",
    "filled by a function that others call": "  for (int i = 2; i < n; ++i) own[i] = buffer();\n"
    "  for (int i = 0; i < n; ++i) up<<<1, 32>>>(own[i]);\n",
    "a call that failed": "  float* p = w[0];\n  cudaError_t e = cudaSuccess;\n"
    "  if (n > 100) e = cudaMalloc(&p, 256);\n"
    "  if (e == cudaSuccess) for (int i = 0; i < n; ++i) { up<<<1, 32>>>(p); up<<<1, 32>>>(w[0]); }\n",
}  # fmt: skip


def turns_of(body: str, folder: Path) -> list[str]:
    source = folder / "app.cu"
    source.write_text(f"{HEAD}{body}  cudaDeviceSynchronize();\n}}\n")
    one = compile_and_keep(source)
    assert not {"K221"} & {d.code for d in one.result.diagnostics}
    return [f.region.function for f in one.rewritten]


def test_each_has_its_own(tmp_path: Path) -> None:
    assert turns_of(EACH, tmp_path) == ["main"]


@pytest.mark.parametrize("name", STAYS)
def test_some_have_not(name: str, tmp_path: Path) -> None:
    assert turns_of(STAYS[name], tmp_path) == []
