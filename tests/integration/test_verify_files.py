"""``kesco verify`` of two files: what it asks of the second one beside the order of its work."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files

pytestmark = pytest.mark.usefixtures("toolchain")

TEXT = """\
__global__ void up(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
void work(float* a, float* b) {
  up<<<1, 64>>>(a, a);
  up<<<1, 64>>>(b, b);
}
void other(float* a) {
  cudaStream_t s;
  cudaStreamCreate(&s);
  up<<<1, 64, 0, s>>>(a, a);
  cudaStreamSynchronize(s);
}
"""


def said(tmp_path: Path, old: str, new: str) -> dict[str, tuple[list[str], str]]:
    """What is found of each function where a line of the output is another one."""
    serial, concurrent = tmp_path / "a.cu", tmp_path / "b.cu"
    serial.write_text(TEXT)
    prologue, end, body = compile_file(str(serial), Options()).text.decode().partition("kesco: end")
    assert old in body
    concurrent.write_text(prologue + end + body.replace(old, new))
    verdicts = verify_files(str(serial), str(concurrent), Options())
    return {v.function: ([d.message for d in v.problems], v.unchanged) for v in verdicts}


def test_what_stays_as_it_was_need_not_be_followed(tmp_path: Path) -> None:
    why = "up uses a stream of its own (line 9)"
    assert said(tmp_path, "a", "a") == {"work": ([], ""), "other": ([], why)}
    changed = said(tmp_path, "cudaStreamSynchronize(s);", ";")
    assert changed["other"] == ([f"'other' cannot be followed: {why}"], "")


def test_pointers_must_be_compared(tmp_path: Path) -> None:
    found = said(tmp_path, "kesco_paced(0, kesco_at_entry[0], kesco_at_entry[1])", "kesco_paced(0)")
    assert found["work"][0] == ["work: the run-time check of its pointers is missing"]


LEFT = """\
__global__ void f(int* p) {{ *p += 1; }}
__global__ void g(int* p) {{ *p *= 2; }}
int main(int argc, char**) {{
  int *a, h;
  cudaMalloc(&a, 4);
  cudaMemset(a, 0, 4);
  for (int t = 0; t < argc; ++t) {{
    {0}
  }}
  cudaMemcpy(&h, a, 4, cudaMemcpyDeviceToHost);
  return h;
}}
"""


@pytest.mark.parametrize(
    ("body", "right"),
    [
        ("f<<<1, 1>>>(a); g<<<1, 1>>>(a); if (argc > 3) break;", True),
        ("f<<<1, 1>>>(a); if (argc > 3) break; g<<<1, 1>>>(a);", False),  # the last trip has one launch less
        ("f<<<1, 1>>>(a); if (argc > 3) return 1; g<<<1, 1>>>(a);", False),
    ],
)
def test_nothing_is_moved_behind_a_way_out_of_a_loop(tmp_path: Path, body: str, right: bool) -> None:
    serial, concurrent = tmp_path / "a.cu", tmp_path / "b.cu"
    serial.write_text(LEFT.format("f<<<1, 1>>>(a); g<<<1, 1>>>(a); if (argc > 3) break;"))
    concurrent.write_text(LEFT.format(body))
    (verdict,) = verify_files(str(serial), str(concurrent), Options())
    assert (not verdict.problems) == right


SERIAL = """\
#include <cuda_runtime.h>
__global__ void square(float* x) { x[threadIdx.x] *= x[threadIdx.x]; }
__global__ void add(const float* x, const float* y, float* z) { z[threadIdx.x] = x[threadIdx.x] + y[threadIdx.x]; }
int main() {
  float *x, *y, *z, result;
  cudaMalloc(&x, 1024);
  cudaMalloc(&y, 1024);
  cudaMalloc(&z, 1024);
  cudaMemset(x, 0, 1024);
  cudaMemset(y, 0, 1024);
  square<<<1, 256>>>(x);
  square<<<1, 256>>>(y);
  add<<<1, 256>>>(x, y, z);
  cudaMemcpy(&result, z, sizeof(float), cudaMemcpyDeviceToHost);
  return result != 0;
}
"""
BY_HAND = SERIAL
for _old, _new in {
    "result;\n": "result;\n  cudaStream_t s[2];\n  cudaEvent_t done;\n  cudaStreamCreate(&s[0]);\n"
    "  cudaStreamCreate(&s[1]);\n  cudaEventCreate(&done);\n",
    "square<<<1, 256>>>(x);": "square<<<1, 256, 0, s[0]>>>(x);",
    "square<<<1, 256>>>(y);": "square<<<1, 256, 0, s[1]>>>(y);\n  cudaEventRecord(done, s[1]);",
    "add<<<1, 256>>>": "cudaStreamWaitEvent(s[0], done, 0);\n  add<<<1, 256, 0, s[0]>>>",
}.items():
    BY_HAND = BY_HAND.replace(_old, _new)


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("", "", ""),
        ("cudaStreamWaitEvent(s[0], done, 0);", "", "'add' may run before 'square#2' is done (RAW on 'y')"),
        ("#include", "#include <thread>\n#include", ""),
        (
            "int main() {",
            "static void work(float* x, cudaStream_t s) { square<<<1, 256, 0, s>>>(x); }\nint main() {",
            "",
        ),
    ],
)
def test_what_was_written_by_hand(tmp_path: Path, old: str, new: str, problem: str) -> None:
    """What the reference says of such pairs."""
    serial, concurrent = tmp_path / "a.cu", tmp_path / "b.cu"
    serial.write_text(SERIAL)
    text = BY_HAND.replace(old, new, 1) if old else BY_HAND
    concurrent.write_text(text.replace("square<<<1, 256, 0, s[0]>>>(x)", "work(x, s[0])") if "work" in new else text)
    verdicts = {
        v.function: [d.message for d in v.problems] for v in verify_files(str(serial), str(concurrent), Options())
    }
    assert bool(verdicts["main"]) == bool(problem)
    assert any(problem in one for one in verdicts["main"]) == bool(problem)


@pytest.mark.parametrize("head", ["", "for (int i = 0; i < n; ++i)"], ids=["once", "in a loop"])
def test_work_of_unseen_code_must_be_waited_for_at_the_entry(tmp_path: Path, head: str) -> None:
    serial, concurrent = tmp_path / "a.cu", tmp_path / "b.cu"
    kernel = "__global__ void up(float* x) { x[threadIdx.x] += 1; }\n"
    body = f"{head} {{\n    up<<<1, 32>>>(a);\n    up<<<1, 32>>>(b);\n  }}"
    serial.write_text(
        f"{kernel}void other(float*);\nvoid work(float* a, float* b, int n) {{\n  {body}\n  other(a);\n}}\n"
    )
    lines = compile_file(str(serial), Options()).text.decode().splitlines()
    found: list[list[str]] = []
    barrier = next(n for n, line in enumerate(lines) if "streams of code not seen here come first" in line)
    for kept in (lines, lines[: barrier - 1] + lines[barrier + 1 :]):  # its record and its wait
        concurrent.write_text("\n".join(kept) + "\n")
        problems = [p for v in verify_files(str(serial), str(concurrent), Options()) for p in v.problems]
        found.append([problem.code for problem in problems])
    assert found[0] == []
    assert "K401" in found[1]
