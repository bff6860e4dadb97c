"""Functions that only ``main`` calls are scheduled with it: joins that are gone, and the proof of what is left."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from preferring import the_ir

from kesco.options import Options
from kesco.proving import verify_files
from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(params=["text", "IR"])
def reading(request: pytest.FixtureRequest) -> Iterator[None]:
    """Both readings of the host: that of the text, and that of the IR wherever there is one."""
    with the_ir() if request.param == "IR" else nullcontext():
        yield


HEAD = """#include <cstdio>
#include <cstdlib>
#include <ctime>
__global__ void inc(float* a) { a[threadIdx.x] += 1; }
__global__ void add(const float* a, float* b) { b[threadIdx.x] += a[threadIdx.x]; }
void other(float*);
"""
STEP = """static void step(float* x, float* y, float* z) {
  inc<<<1, 32>>>(x);
  inc<<<1, 32>>>(y);
  inc<<<1, 32>>>(z);
}
"""
MIX = "static void mix(float* x, float* y) {\n  add<<<1, 32>>>(x, y);\n}\n"
LOOP = "  for (int i = 0; i < argc; ++i) {\n    step(x, y, z);\n    mix(x, y);\n  }\n"
MAIN = """int main(int argc, char** argv) {
  float *x, *y, *z;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  cudaMalloc(&z, 4096);
%s  cudaDeviceSynchronize();
  return 0;
}
"""


def compiled(folder: Path, functions: str = STEP + MIX, body: str = LOOP, options: Options | None = None) -> Compiled:
    source = folder / "input.cu"
    source.write_text(HEAD + functions + MAIN % body)
    return compile_and_keep(source, options)


def names(one: Compiled) -> list[str]:
    """The functions that are scheduled as a part of ``main``."""
    return [name for name, _ in one.function("main").region.members]


def joins(one: Compiled) -> int:
    return sum("cudaStreamWaitEvent(cudaStreamLegacy" in line for line in one.lines)


SCRATCH = (
    STEP
    + MIX
    + (
        "static void work(float* x, float* y) {\n  float* t;\n  cudaMalloc(&t, 4096);\n  add<<<1, 32>>>(x, t);\n"
        "  inc<<<1, 32>>>(y);\n  add<<<1, 32>>>(t, y);\n  cudaFree(t);\n}\n"
    )
)
READER = STEP + (
    "static float peek(const float* y) {\n  float h;\n  cudaMemcpy(&h, y, 4, cudaMemcpyDeviceToHost);\n  return h;\n}\n"
)
PEEKS = "  float s = 0;\n" + LOOP.replace("mix(x, y)", "mix(x, y); s += peek(y)")
NESTED = STEP + MIX + "static void both(float* x, float* y, float* z) {\n  step(x, y, z);\n  mix(x, y);\n}\n"
BOTH = LOOP.replace("step(x, y, z);\n    mix(x, y)", "both(x, y, z)")
WHOLE = {  # functions, body, members, streams joined in the output, joins that are saved
    "time loop": (STEP + MIX, LOOP, ["step", "mix"], 0, 1),
    "one kernel each": (
        "static void first(float* x) { inc<<<1, 32>>>(x); }\n" + MIX,
        "  first(x);\n  inc<<<1, 32>>>(z);\n  mix(x, z);\n",
        ["first", "mix"],
        0,
        0,
    ),
    "early return": (STEP.replace("  inc<<<1, 32>>>(y)", '  if (getenv("A")) return;\n  inc<<<1, 32>>>(y)') + MIX, LOOP,
                     ["step", "mix"], 0, 2),
    "in a branch": (STEP + MIX, "  if (argc > 2) step(x, y, z);\n  else mix(x, y);\n" + LOOP, ["step", "mix"], 0, 1),
    "scratch memory": (SCRATCH, LOOP.replace("mix", "mix(x, y); work"), ["step", "mix", "work"], 2, 1),
    "host reads": (READER + MIX, PEEKS, ["step", "peek", "mix"], 0, 1),
    "calls of calls": (NESTED, BOTH, ["step", "mix", "both"], 0, 1),
    "unseen behind": (STEP + MIX, LOOP + "  other(x);\n", ["step", "mix"], 2, 0),
}  # fmt: skip


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("case", WHOLE)
def test_joins_between_functions_go(case: str, tmp_path: Path) -> None:
    functions, body, members, left, saved = WHOLE[case]
    one = compiled(tmp_path, functions, body)
    assert names(one) == members
    assert joins(one) == left
    assert one.function("main").joins_saved == saved
    assert [f.region.function for f in one.result.functions if f.rewritten] == ["main"]
    output = tmp_path / "output.cu"
    output.write_bytes(one.result.text)
    assert not any(verdict.problems for verdict in verify_files(str(one.result.path), str(output), Options()))


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("case", WHOLE)
def test_each_wait_record_and_join_that_is_left_is_needed(case: str, tmp_path: Path) -> None:
    functions, body, *_ = WHOLE[case]
    one = compiled(tmp_path, functions, body)
    start = next(n for n, line in enumerate(one.lines) if "kesco: end" in line)
    found = [n for n, line in enumerate(one.lines) if n > start and "cudaStreamWaitEvent" in line]
    found += [n for n, line in enumerate(one.lines) if n > start and "cudaEventRecord(kesco->done" in line]
    assert found or case in ("host reads",)
    for number in found:
        assert one.refuses([*one.lines[:number], *one.lines[number + 1 :]]), one.lines[number]


APART = {
    "other files may call it": (STEP.removeprefix("static ") + MIX, LOOP),
    "it may be called through a pointer": (
        STEP + MIX, "  void (*f)(float*, float*, float*) = step;\n  f(x, y, z);\n" + LOOP),
    "it changes the device": (STEP.replace("{\n", "{\n  cudaSetDevice(0);\n") + MIX, LOOP),
    "unseen code runs before it": (STEP + MIX, "  other(x);\n" + LOOP),
    "it calls itself": (
        "static void down(float* x, float* y, int n) {\n  inc<<<1, 32>>>(x);\n  inc<<<1, 32>>>(y);\n"
        "  if (n) down(y, x, n - 1);\n}\n",
        "  down(x, y, argc);\n",
    ),
    "the order of the calls is open": (
        "static int first(float* x) {\n  inc<<<1, 32>>>(x);\n  inc<<<1, 32>>>(x + 1);\n  return 1;\n}\n"
        "static int second(float* x, float* y) {\n  add<<<1, 32>>>(x, y);\n  inc<<<1, 32>>>(x);\n  return 1;\n}\n",
        "  int r = first(x) + second(x, y);\n  inc<<<1, 32>>>(z);\n  (void)r;\n",
    ),
    "another function that others may call uses it": (
        STEP + "void outer(float* x, float* y, float* z) { step(x, y, z); }\n" + MIX, LOOP),
    "one call would wait for itself": (STEP, "  step(x, y, z);\n  step(y, x, z);\n  step(z, y, x);\n"),
    "what it throws is caught": (
        STEP.replace("  inc<<<1, 32>>>(y)", '  if (getenv("A")) throw 1;\n  inc<<<1, 32>>>(y)') + MIX,
        "  try {\n    step(x, y, z);\n  } catch (int) {\n    inc<<<1, 32>>>(x);\n  }\n  mix(x, y);\n",
    ),
    "a lambda calls it": (STEP + MIX, "  auto f = [&] { step(x, y, z); };\n  f();\n" + LOOP),
    "what runs is timed": (STEP.replace("}\n", "  cudaDeviceSynchronize();\n}\n") + MIX, LOOP),
}  # fmt: skip


@pytest.mark.usefixtures("reading")
@pytest.mark.parametrize("case", APART)
def test_some_functions_stay_apart(case: str, tmp_path: Path) -> None:
    one = compiled(tmp_path, *APART[case])
    assert "step" not in names(one)
    assert "down" not in names(one)
    assert "second" not in names(one)


@pytest.mark.usefixtures("reading")
def test_what_as_one_would_join_in_each_turn_stays_apart(tmp_path: Path) -> None:
    first = "static void first(float* x, float* y) {\n  inc<<<1, 32>>>(x);\n  inc<<<1, 32>>>(y);\n}\n"
    loop = "  first(x, y);\n" + LOOP
    one = compiled(tmp_path, first + STEP.removeprefix("static ") + MIX, loop)
    assert names(one) == []
    assert {f.region.function for f in one.result.functions if f.rewritten} == {"first", "step"}


def test_a_text_whose_functions_take_other_streams_is_refused(tmp_path: Path) -> None:
    one = compiled(tmp_path)
    text = one.result.text.decode()
    other = text.replace(
        "KescoStreams* kesco = &kesco_streams();", "KescoStreams* kesco = kesco_stretch(&kesco_streams(), 0);", 1
    )
    assert other != text
    assert one.refuses(other.split("\n"))


def test_a_text_in_which_another_function_calls_one_is_refused(tmp_path: Path) -> None:
    one = compiled(tmp_path)
    text = one.result.text.decode() + "void more(float* x, float* y) { mix(x, y); }\n"
    assert one.refuses(text.split("\n"))


@pytest.mark.parametrize("options", [Options(prefetch=True), Options(emit="graph")])
def test_prefetches_and_graphs_are_of_one_function(options: Options, tmp_path: Path) -> None:
    assert not names(compiled(tmp_path, options=options))


def test_a_look_at_the_clock_keeps_its_wait_in_all_calls(tmp_path: Path) -> None:
    """A function is one for all its calls, and so is what they look at."""
    timed = "static double timed(float* x) {\n  inc<<<1, 32>>>(x);\n  cudaDeviceSynchronize();\n  return clock();\n}\n"
    other = "static void apart(float* y) {\n  inc<<<1, 32>>>(y);\n}\n"
    body = "".join(f"  apart(y);\n  const double t{n} = timed(x);\n" for n in range(2))
    body += '  apart(y);\n  cudaDeviceSynchronize();\n  printf("%f", t1 - t0);\n'
    one = compiled(tmp_path, timed + other, body)
    assert names(one) == ["timed", "apart"]
    at = next(n for n, line in enumerate(one.lines) if "return clock()" in line)
    assert one.lines[at - 1] == "  cudaDeviceSynchronize();"
    assert "may not be done when the host reaches" in one.refuses([*one.lines[: at - 1], *one.lines[at:]])


def test_a_function_that_waits_and_prints_may_be_called_twice(tmp_path: Path) -> None:
    half = STEP.replace("}", '  cudaDeviceSynchronize();\n  printf("done");\n}')
    says = half.replace("}", half.partition("\n")[2])
    one = compiled(tmp_path, says, "  step(x, y, z);\n  step(z, x, y);\n")
    assert one.function("step").rewritten


def test_a_function_that_only_waits_stays_a_join(tmp_path: Path) -> None:
    """If its wait were taken out, nothing of it would be left that could be paired."""
    wait = "static int settle() {\n  cudaDeviceSynchronize();\n  return 1;\n}\n"
    body = LOOP.replace(
        "    mix(x, y);", "    if (argc > 4) settle();\n    add<<<1, 32>>>(x, y);\n    inc<<<1, 32>>>(z);"
    )
    one = compiled(tmp_path, STEP + wait, body)
    assert "settle" not in names(one)
    assert "  cudaDeviceSynchronize();" in one.lines


@pytest.mark.parametrize("once", ["cudaDeviceSynchronize()", "(cudaError_t)wait()"])
def test_static_variables_are_initialised_once(once: str, tmp_path: Path) -> None:
    """What their initial value waits for is waited for no second time."""
    wait = "static int wait() {\n  inc<<<1, 32>>>(nullptr);\n  cudaDeviceSynchronize();\n  return 0;\n}\n"
    body = "  for (int i = 0; i < argc; ++i) {\n    inc<<<1, 32>>>(x);\n    inc<<<1, 32>>>(y);\n"
    body += f"    static const cudaError_t first = {once};\n    add<<<1, 32>>>(x, y);\n    inc<<<1, 32>>>(z);\n  }}\n"
    one = compiled(tmp_path, wait, body)
    found = {(d.source, d.target) for d in one.function("main").dfg.dependences}
    sites = one.function("main").dfg.region.sites
    label = {s.number: s.label.partition("#")[0] for s in sites}
    assert any(label[a] == "inc" and label[b] == "add" and a < b for a, b in found)
