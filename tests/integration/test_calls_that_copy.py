"""Calls of functions in which copies keep the host: what overlaps, what stays, and outputs that were spoilt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.compiled import Compiled
from tests.integration.test_calls import compiled, together

pytestmark = pytest.mark.usefixtures("toolchain")

HOST = "static const int N = 1 << 20;\nstatic float a[N / 4], b[N / 4], c[N / 4];\n"
UP = HOST + "void up(float* d, const float* h) { cudaMemcpy(d, h, N, cudaMemcpyHostToDevice); }\n"
DOWN = "cudaError_t down(float* h, const float* d) { return cudaMemcpy(h, d, N, cudaMemcpyDeviceToHost); }\n"
NEW = """static float* made(const float* h) {
  float* d = nullptr;
  if (cudaMalloc(&d, N) != cudaSuccess) exit(1);
  if (cudaMemcpy(d, h, N, cudaMemcpyHostToDevice) != cudaSuccess) exit(1);
  return d;
}
"""
SOME = "float *x, *y, *z; cudaMalloc(&x, N); cudaMalloc(&y, N); cudaMalloc(&z, N); "
PAIR = "up(x, a); inc<<<1, 32>>>(x); up(y, b); inc<<<1, 32>>>(y); add<<<1, 32>>>(x, y)"

TOGETHER = {
    "beside a kernel": (UP, PAIR, {"inc#1 up#2", "inc#1 inc#2", "up#1 up#2", "up#1 inc#2"}),
    "of new memory": (
        UP + NEW,
        "float* p = made(a); inc<<<1, 32>>>(p); float* q = made(b); inc<<<1, 32>>>(q)",
        {"made#1 made#2", "made#1 inc#2", "inc#1 made#2", "inc#1 inc#2"},
    ),
    "a result beside a kernel": (
        UP + DOWN,
        "inc<<<1, 32>>>(x); inc<<<1, 32>>>(y); down(a, x); inc<<<1, 32>>>(y); inc<<<1, 32>>>(z)",
        {"inc#1 inc#2", "inc#2 down", "inc#1 inc#3", "inc#1 inc#4", "inc#2 inc#4", "down inc#3", "down inc#4",
         "inc#3 inc#4"},
    ),
    "in what is called there": (
        UP + "static void both(float* d, const float* h) { up(d, h); inc<<<1, 32>>>(d); }\n",
        "both(x, a); both(y, b)",
        {"both#1 both#2"},
    ),
    "one that the host waits for": (
        UP + DOWN, "up(x, a); inc<<<1, 32>>>(x); down(b, x); up(y, b); inc<<<1, 32>>>(z)", set()
    ),
    "results that each call waits for": (
        UP + "static float first(float* d) {\n  inc<<<1, 32>>>(d);\n  float f;\n"
        "  cudaMemcpy(&f, d, 4, cudaMemcpyDeviceToHost);\n  return f;\n}\n",
        "float f = first(x); float g = first(y)",
        set(),
    ),
    "a kernel beside a result that is waited for": (
        UP + "static float first(float* d) {\n  inc<<<1, 32>>>(d);\n  float f;\n"
        "  cudaMemcpy(&f, d, 4, cudaMemcpyDeviceToHost);\n  return f;\n}\n",
        "inc<<<1, 32>>>(z); float f = first(x)",
        {"inc#1 inc#2"},
    ),
    # What stays:
    "it reads a clock": (
        UP + "static clock_t timed(float* d, const float* h) { up(d, h); return clock(); }\n",
        "inc<<<1, 32>>>(x); clock_t t = timed(y, a); inc<<<1, 32>>>(y)",
        set(),
    ),
    "it reads what a kernel writes": (
        UP + "static float read(const float* m, float* d) { up(d, a); return m[0]; }\n",
        "float* m; cudaMallocManaged(&m, N); inc<<<1, 32>>>(m); float f = read(m, y); inc<<<1, 32>>>(y)",
        set(),
    ),
    "from memory that a kernel writes": (
        UP, "float* m; cudaMallocHost(&m, N); inc<<<1, 32>>>(m); up(y, m); inc<<<1, 32>>>(x)", set()
    ),
    "in an unknown direction": (
        HOST + "void up(float* d, const float* h) { cudaMemcpy(d, h, N, cudaMemcpyDefault); }\n",
        PAIR,
        set(),
    ),
    "in a macro's body": (
        HOST + "#define UP(d, h) cudaMemcpy(d, h, N, cudaMemcpyHostToDevice)\n"
        "static void up(float* d, const float* h) { UP(d, h); }\n",
        PAIR,
        set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", TOGETHER)
def test_what_calls_with_copies_may_run_beside(case: str, tmp_path: Path) -> None:
    functions, body, pairs = TOGETHER[case]
    assert together(compiled(tmp_path, functions, f"{{ {SOME}{body}; }}")) == pairs


@pytest.fixture(scope="module")
def spoiled(tmp_path_factory: pytest.TempPathFactory, toolchain: object) -> Compiled:
    body = f'{PAIR}; down(c, y); printf("%g", c[0]); inc<<<1, 32>>>(x); up(z, b); inc<<<1, 32>>>(z)'
    one = compiled(tmp_path_factory.mktemp("spoiled"), UP + DOWN, f"{{ {SOME}{body}; }}")
    assert one.refuses(one.lines) == ""
    assert one.function("up").follows and one.function("down").follows and one.function("main").rewritten
    return one


SPOILED = {
    "no wait behind it": ("  cudaDeviceSynchronize();  // kesco: as the copies in the call did", ""),
    "the program's own copy": ("kesco_copy_here(d", "cudaMemcpy(d"),
    "another stream": ("KescoOn(kesco->stream[1]), up(y, b)", "KescoOn(kesco->stream[0]), up(y, b)"),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILED)
def test_a_call_with_copies_that_was_spoilt_is_refused(case: str, spoiled: Compiled) -> None:
    old, new = SPOILED[case]
    text = "\n".join(spoiled.lines)
    assert old in text
    assert spoiled.refuses(text.replace(old, new, 1).split("\n"))


def test_what_the_host_did_in_a_call_that_stays_is_done(tmp_path: Path) -> None:
    """The first of two calls that touch pinned memory as they copy has no stream: a line with output gets none."""
    functions = (
        UP
        + DOWN
        + (
            "static float sum(float* h, const float* d) { down(h, d); return h[0] + h[1]; }\n"
            "static void back(float* h, float* d) { inc<<<1, 32>>>(d); down(h, d); h[0] += 1; }\n"
        )
    )
    body = 'float* m; cudaMallocHost(&m, N); up(x, a); printf("%g", sum(m, x)); back(m, y); inc<<<1, 32>>>(x); up(z, b)'
    one = compiled(tmp_path, functions, f"{{ {SOME}{body}; inc<<<1, 32>>>(z); }}")
    assert one.function("main").rewritten
    assert b"KescoOn(kesco->stream[0]), back(m, y)" in one.result.text
