"""Functions that take too long to be followed: what is known of them all the same."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.compiled import compile_and_keep

from kesco.ir.access import BufferKind
from kesco.ir.flow import Site
from kesco.options import Options
from kesco.session import Session

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>
void elsewhere();
__global__ void up(float* x) { x[threadIdx.x] += 1; }
static float *a, *b, *shared;
static void launches() { up<<<1, 32>>>(a); }
struct Runs { virtual void run() { launches(); } };
static Runs runs;
extern float (*hook)(float);
extern Runs* hidden;
static double sum(const std::vector<float>& v) { double s = 0; for (float x : v) s += x; return s; }
static double reference(const std::vector<float>& v, Runs* what) {
  double s = 0;
  for (float x : v) { s += x * x; BODY }
  return s;
}
int main() {
  cudaMalloc(&a, 256), cudaMalloc(&b, 256), cudaMallocManaged(&shared, 256);
  std::vector<float> v(32);
  Runs* what = &runs;
  for (int i = 0; i < 10; i++) {
    up<<<1, 32>>>(a);
    up<<<1, 32>>>(b);
    cudaDeviceSynchronize();
    double s = reference(v, ARGUMENT);
    if (s < 0) v[0] = s;
  }
  cudaDeviceSynchronize();
  cudaFree(a), cudaFree(b);
}
"""


def read(folder: Path, body: str, argument: str = "nullptr") -> list[Site]:
    """What the IR says of the call of `reference`, or of what the host does there."""
    path = folder / "app.cu"
    path.write_text(PROGRAM.replace("BODY", body).replace("ARGUMENT", argument))
    (main,) = (one for one in Session(str(path), Options()).of_ir() if one.function == "main")
    line = PROGRAM[: PROGRAM.index("double s = reference(v, ARG")].count("\n") + 1
    return [one for one in main.sites if one.span.line == line]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever has a loop and nothing to do with CUDA takes too long."""
    monkeypatch.setattr("kesco.analysis.host.engine._ASIDE", 0)


@pytest.mark.parametrize("body", ["s += sum(v);", 's += std::string("x").size();', "s += *std::make_unique<int>(2);"])
def test_code_of_the_file_alone_gives_the_device_nothing(tmp_path: Path, body: str) -> None:
    assert not any(one.foreign for one in read(tmp_path, body))


def test_then_the_device_may_go_on(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    text = PROGRAM.replace("cudaMallocManaged", "cudaMalloc").replace("static Runs runs;\n", "")
    text = text.replace("what = &runs", "what = nullptr")  # here the vector's constructor is left out, too
    path.write_text(text.replace("BODY", "s += sum(v);").replace("ARGUMENT", "nullptr"))
    (main,) = compile_and_keep(path).rewritten
    assert main.schedule.streams == 2 and len(main.plan.needless) == 1


@pytest.mark.parametrize(
    ("body", "argument"),
    [
        ("elsewhere();", "nullptr"),
        ("std::thread([] { }).detach();", "nullptr"),
        ("if (x > 3) exit(1);", "nullptr"),
        ("what->run();", "what"),
        ('asm volatile("" ::: "memory");', "nullptr"),
        ("s += hook(x);", "nullptr"),
        ("hidden->run();", "nullptr"),
    ],
)
def test_not_where_it_may_lead_elsewhere(tmp_path: Path, body: str, argument: str) -> None:
    assert any(one.foreign for one in read(tmp_path, body, argument))


def test_what_the_device_reaches_it_may_touch(tmp_path: Path) -> None:
    sites = read(tmp_path, "s += shared[3];")
    assert not any(one.foreign for one in sites)
    assert any(a.buffer.kind is BufferKind.MANAGED for one in sites for a in one.accesses)


FOUND = """#include <unordered_map>
__global__ void up(float* p) { p[blockIdx.x * 256 + threadIdx.x] += 1; }
typedef std::unordered_map<int, float*> Kept;
static float get(Kept& m, int i) {
  auto it = m.find(3);
  return it == m.end() ? 0 : it->second[i];
}
static float reference(Kept& m, int n) {
  float s = 0;
  for (int i = 0; i < n; i++) s += get(m, i);
  return s;
}
int main(int argc, char** argv) {
  const int n = 1 << 20;
  float *p, *b, *c;
  cudaMallocHost(&p, n * 4), cudaMalloc(&b, n * 4), cudaMalloc(&c, n * 4);
  Kept m;
  for (int i = 0; i < argc + 3; i++) m[i] = i == 3 ? p : nullptr;
  up<<<4096, 256>>>(b);
  up<<<4096, 256>>>(c);
  cudaMemcpyAsync(p, c, n * 4, cudaMemcpyDeviceToHost, 0);
  cudaDeviceSynchronize();
  float k = reference(m, n);
  up<<<4096, 256>>>(b);
  up<<<4096, 256>>>(c);
  cudaDeviceSynchronize();
  return k > 3;
}
"""


def test_what_is_found_in_memory_may_be_what_the_device_reaches(tmp_path: Path) -> None:
    (tmp_path / "app.cu").write_text(FOUND)
    assert b"not needed here" not in compile_and_keep(tmp_path / "app.cu").result.text


def test_what_it_says_is_seen(tmp_path: Path) -> None:
    assert not any(one.looks for one in read(tmp_path, "s += sum(v);"))
    assert any(one.looks for one in read(tmp_path, 'printf("%f", s);'))
