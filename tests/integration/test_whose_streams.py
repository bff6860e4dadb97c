"""Functions whose own operations may overlap, called beside each other: whose streams they get."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

PROGRAM = """__global__ void work(float* y, const float* x, int n) {
  for (int i = threadIdx.x; i < n; i += 32) y[i] += x[i];
}
struct Layer {
  float *x, *y, *z, *w;
  const float* step(int n) {
    BODY
    return y;
  }
};
static Layer make(int n) {
  Layer one;
  cudaMalloc(&one.x, n * sizeof(float)), cudaMalloc(&one.y, n * sizeof(float));
  cudaMalloc(&one.z, n * sizeof(float)), cudaMalloc(&one.w, n * sizeof(float));
  return one;
}
int main() {
  const int n = 1 << 20;
  Layer a = make(n), b = make(n);
  CALLS
  return cudaDeviceSynchronize();
}
"""
CHAIN_AND_ONE = (
    "work<<<1, 32>>>(y, x, n); work<<<1, 32>>>(z, x, n); work<<<1, 32>>>(z, y, n); work<<<1, 32>>>(z, y, n);"
)
THREE = "work<<<1, 32>>>(y, x, n); work<<<1, 32>>>(z, x, n); work<<<1, 32>>>(w, x, n);"


def compiled(folder: Path, body: str, calls: str) -> Compiled:
    path = folder / "app.cu"
    path.write_text(PROGRAM.replace("BODY", body).replace("CALLS", calls), "utf-8")
    return compile_and_keep(path)


def names(outcome: Compiled) -> tuple[list[str], list[str]]:
    """The functions with streams of their own, and those that follow."""
    follow = [one.serial.function for one in outcome.result.functions if one.follows]
    return [one.serial.function for one in outcome.rewritten], follow


def test_two_calls_overlap_where_that_is_shorter(tmp_path: Path) -> None:
    """One call has a chain of three and one beside it: two calls take six behind each other, and four at once."""
    outcome = compiled(tmp_path, CHAIN_AND_ONE, "a.step(n); b.step(n);")
    assert names(outcome) == (["main"], ["step"])
    assert outcome.rewritten[0].width == 2


@pytest.mark.parametrize("calls", ["a.step(n);", "a.step(n); a.step(n);"])
def test_one_call_keeps_what_overlaps_in_it(tmp_path: Path, calls: str) -> None:
    assert names(compiled(tmp_path, CHAIN_AND_ONE, calls)) == (["step"], [])


def test_what_other_files_may_call_keeps_its_streams(tmp_path: Path) -> None:
    path = tmp_path / "app.cu"
    text = PROGRAM.replace("BODY", CHAIN_AND_ONE).replace("CALLS", "a.step(n); b.step(n);")
    path.write_text(text.replace("int main()", "int all()"), "utf-8")
    assert names(compile_and_keep(path))[0] == ["step"]


def test_two_calls_of_what_is_shorter_by_itself(tmp_path: Path) -> None:
    """Three at once take one in each call: that is two, where two calls beside each other take three."""
    assert names(compiled(tmp_path, THREE, "a.step(n); b.step(n);")) == (["step"], [])


USED = {
    "const float* u = a.step(n); const float* v = b.step(n);": ("u", "v"),
    "const float *u, *v; u = a.step(n); v = b.step(n);": ("u", "v"),
    "const Layer* u = &a.step(n); const Layer& v = b.step(n);": ("u->y", "v.y"),
    "const Layer *u, *v; u = &a.step(n); v = &b.step(n);": ("u->y", "v->y"),
}


@pytest.mark.parametrize("written", USED)
def test_the_value_of_a_call_may_be_used(tmp_path: Path, written: str) -> None:
    u, v = USED[written]
    calls = f"{written} work<<<1, 32>>>(a.w, {u}, n); work<<<1, 32>>>(b.w, {v}, n);"
    body = "work<<<1, 32>>>(y, x, n); work<<<1, 32>>>(y, x, n);"
    path = tmp_path / "app.cu"
    program = PROGRAM if "Layer" not in written else PROGRAM.replace("const float* step", "const Layer& step")
    program = program if "Layer" not in written else program.replace("return y;", "return *this;")
    path.write_text(program.replace("BODY", body).replace("CALLS", calls), "utf-8")
    outcome = compile_and_keep(path)
    assert names(outcome) == (["main"], ["step"])
    assert outcome.rewritten[0].width == 2


@pytest.mark.parametrize("name", ["part", "done", "tail", "stream"])
def test_a_function_may_have_the_name_of_a_member_of_kescos(tmp_path: Path, name: str) -> None:
    """Its mentions are counted: whoever names it but to call it may call it with anything."""
    path = tmp_path / "app.cu"
    path.write_text(
        f"""__global__ void add(float* y, const float* x, int n) {{ y[threadIdx.x] += n * x[threadIdx.x]; }}
static void {name}(float* a, float* b, float* c, int n) {{
  add<<<1, 32>>>(b, a, n);
  add<<<1, 32>>>(c, a, n);
}}
static void both(float* a, float* b, float* c, int n) {{ {name}(a, b, c, n); }}
int main(int argc, char**) {{
  float *x, *y, *z;
  cudaMalloc(&x, 4096), cudaMalloc(&y, 4096), cudaMalloc(&z, 4096);
  for (int i = 0; i < argc; ++i) both(x, y, z, i);
  return cudaDeviceSynchronize();
}}
""",
        "utf-8",
    )
    assert names(compile_and_keep(path))[0] == [name]
