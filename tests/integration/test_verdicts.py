"""What kesco says of each function that launches, and of each loop: concurrent, lost, a chain, or not known."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from kesco.cli import main
from kesco.ir.verdicts import Verdict, Word
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

KERNELS = """\
#include <cstdio>
#include <cstdlib>
__global__ void inc(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void set(float* q, const float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) q[i] = p[i]; }
__global__ void add(float* q, const float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) q[i] += p[i]; }
__global__ void far(float* q, int row, int w) { q[row * w + threadIdx.x] += 1; }
__global__ void lists(float** q) { q[0][threadIdx.x] += 1; }
"""  # noqa: E501
HEAD = """\
int main(int argc, char**) {
  int n = argc << 20;
  float *a, *b, *c, *d, *h = (float*)malloc(n * 4), *g = (float*)malloc(n * 4);
  cudaMalloc(&a, n * 4);
  cudaMalloc(&b, n * 4);
  cudaMalloc(&c, n * 4);
  cudaMalloc(&d, n * 4);
"""
UP = "cudaMemcpy({0}, {1}, n * 4, cudaMemcpyHostToDevice);"
HOME = "cudaMemcpy({1}, {0}, n * 4, cudaMemcpyDeviceToHost);"
ON = "<<<n / 256, 256>>>"


def compiled(folder: Path, body: str, functions: str = "", options: Options | None = None) -> Compilation:
    source = folder / "app.cu"
    end = "  cudaDeviceSynchronize();\n  free(h);\n  free(g);\n}\n"
    source.write_text(f"{KERNELS}{functions}{HEAD}  {body}\n{end}")
    return compile_file(str(source), options or Options())


def of(result: Compilation, name: str = "main") -> Verdict:
    found = next(f.verdict for f in result.functions if f.region.function == name)
    assert found is not None
    return found


FUNCTIONS = {
    "two kernels": (f"inc{ON}(a, n); inc{ON}(b, n);", "concurrent"),
    "a chain": (f"set{ON}(b, a, n); set{ON}(c, b, n);", "a chain: set#1 → set#2 (b)"),
    "a chain of copies and a kernel": (
        f"{UP.format('a', 'h')} {UP.format('b', 'g')} add{ON}(a, b, n); {HOME.format('a', 'h')}",
        "a chain: cudaMemcpy#1 → add (a) → cudaMemcpy#3 (a)",
    ),
    "one launch": (f"inc{ON}(a, n);", "a chain: 'inc' alone"),
    "a copy that could run beside the kernel before which it stands": (
        f"{UP.format('a', 'h')} {UP.format('c', 'g')} set{ON}(b, a, n); add{ON}(c, b, n); {HOME.format('c', 'g')}",
        "concurrent",
    ),
    "a result that could go home beside the next kernel": (
        f"{UP.format('a', 'h')} set{ON}(b, a, n); set{ON}(c, b, n); if (cudaDeviceSynchronize()) return 1; "
        f"{HOME.format('b', 'h')} {HOME.format('c', 'g')}",
        "lost: 'set#2' and 'cudaMemcpy#2' could overlap",
    ),
    "scratch that a copy fills": (
        f"cudaMemcpy(b, a, n * 4, cudaMemcpyDeviceToDevice); add{ON}(c, b, n); "
        f"cudaMemcpy(b, d, n * 4, cudaMemcpyDeviceToDevice); add{ON}(c, b, n);",
        "lost: 'add#1' and 'cudaMemcpy#2' could overlap, with a second buffer for 'b'",
    ),
    "scratch that a kernel fills, it may be in part": (
        f"set{ON}(b, a, n); add{ON}(c, b, n); set{ON}(b, d, n); add{ON}(d, b, n);",
        "not known: whether 'set#2' writes all of 'b'",
    ),
    "what the host is told": (
        f"inc{ON}(a, n); {HOME.format('a', 'h')} if (h[0] > 0) inc{ON}(b, n);",
        "not known: whether the host uses what 'cudaMemcpy' tells it in what follows",
    ),
    "pieces of which the bounds are not known": (
        "far<<<1, 256>>>(a, 0, argc * argc); far<<<1, 256>>>(a, 1, argc * argc);",
        "not known: which part of 'a' each of them touches",
    ),
    "memory that is not known": (
        f"float** l; cudaMalloc(&l, 8); lists<<<1, 1>>>(l); inc{ON}(a, n);",
        "not known: what 'lists' touches (through pointers loaded from parameter 1)",
    ),
    "what was sent and nobody has read": (f"{UP.format('a', 'h')} inc{ON}(a, n);", "a chain: cudaMemcpy → inc (a)"),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_verdict_of_a_function(tmp_path: Path, name: str) -> None:
    body, text = FUNCTIONS[name]
    result = compiled(tmp_path, body)
    assert of(result).text.startswith(text)
    (found,) = result.functions
    if text.startswith("a chain") and "alone" not in text:
        assert found.left_because == "no two of its operations are independent"
    elif not text.startswith("concurrent") and "alone" not in text:
        assert "no two of its operations" not in found.left_because


TURN = "for (int i = 0; i < argc; ++i)"
LOOPS = {
    "a kernel that goes on from itself": (
        f"{TURN} inc{ON}(a, n);",
        "a chain: 'inc' needs 'a' of 'inc' in the turn before",
    ),
    "parts of one array": (
        f"float* x; cudaMalloc(&x, n * 4L * argc); {TURN} inc{ON}(x + i * (long)n, n);",
        "concurrent",
    ),
    "parts whose bounds are not known": (
        f"{TURN} far<<<1, 256>>>(a, i, argc * argc);",
        "not known: which part of 'a' each turn touches",
    ),
    "a buffer that each turn fills by a copy": (
        f"{TURN} {{ cudaMemcpy(b, a, n * 4, cudaMemcpyDeviceToDevice); add{ON}(c, b, n); }}",
        "lost: 'add' and 'cudaMemcpy' of the next turn could overlap, with a second buffer for 'b'",
    ),
    "a buffer that each turn fills by a kernel": (
        f"{TURN} {{ set{ON}(b, a, n); add{ON}(c, b, n); }}",
        "not known: whether 'set' writes all of 'b'",
    ),
    "the same again and again": (f"{TURN} set{ON}(b, a, n);", "a chain: 'set' needs 'b' of 'set' in the turn before"),
    "memory that each turn makes and frees": (
        f"{TURN} {{ float* t; cudaMalloc(&t, n * 4); set{ON}(t, a, n); add{ON}(t, b, n); cudaFree(t); }}",
        "lost: 'set' and 'set' of the next turn could overlap",
    ),
    "two kernels in each turn": (f"{TURN} {{ inc{ON}(a, n); inc{ON}(b, n); }}", "concurrent"),
    "two kernels, a check behind each": (
        f"{TURN} {{ inc{ON}(a, n); if (cudaDeviceSynchronize()) return 1; inc{ON}(b, n); "
        "if (cudaDeviceSynchronize()) return 1; }",
        "lost: 'inc#1' and 'inc#2' could overlap",
    ),
    "turns that are counted": ("for (int i = 0; i < 3; ++i) inc<<<1, 256>>>(a + 256 * i, 256);", "concurrent"),
}


@pytest.mark.parametrize("name", LOOPS)
def test_the_verdict_of_a_loop(tmp_path: Path, name: str) -> None:
    body, text = LOOPS[name]
    given = of(compiled(tmp_path, body))
    (loop,) = given.loops
    assert loop.text == text
    assert given.word is loop.word, "a function with nothing but a loop is what its loop is"


def test_a_loop_in_a_loop_has_a_verdict_of_its_own(tmp_path: Path) -> None:
    body = f"{TURN} {{\n    for (int k = 0; k < n; ++k) inc{ON}(a, n);\n    set{ON}(b, a, n);\n  }}"
    outer, inner = of(compiled(tmp_path, body)).loops
    assert inner.text == "a chain: 'inc' needs 'a' of 'inc' in the turn before"
    assert inner.span.line == outer.span.line + 1


CALLS = "static void run(const float* x, float* y, int n) {\n  float* t;\n  cudaMalloc(&t, n * 4);\n"
CALLS += f"  set{ON}(t, x, n);\n  set{ON}(y, t, n);\n  cudaFree(t);\n}}\n"


def test_calls_with_memory_of_their_own_are_independent(tmp_path: Path) -> None:
    result = compiled(tmp_path, "run(a, b, n); run(a, c, n);", CALLS)
    assert of(result).text == "lost: 'run#1' and 'run#2' could overlap"
    assert of(result, "run").text == "a chain: set#1 → set#2 (t)"


def test_calls_that_share_a_buffer_are_a_chain(tmp_path: Path) -> None:
    assert of(compiled(tmp_path, "run(a, b, n); run(b, c, n);", CALLS)).text == "a chain: run#1 → run#2 (b)"


def test_calls_that_are_a_part_of_main_are_looked_at_as_one(tmp_path: Path) -> None:
    one = f"static void one(float* x, int n) {{ inc{ON}(x, n); }}\n"
    other = f"static void other(float* x, int n) {{ inc{ON}(x, n); }}\n"
    result = compiled(tmp_path, "one(a, n); other(b, n);", one + other)
    (found,) = result.functions
    assert found.region.members and of(result).text == "concurrent"


def test_two_calls_of_one_function_that_is_a_part_of_main(tmp_path: Path) -> None:
    both = f"static void both(float* x, float* y, int n) {{ inc{ON}(x, n); inc{ON}(y, n); }}\n"
    result = compiled(tmp_path, "both(a, b, n); both(c, d, n);", both)
    assert [one.region.function for one in result.functions if one.rewritten] == ["main"]
    assert [one.region.function for one in result.functions if one.follows] == ["both"]
    assert of(result).text == "concurrent" and not result.diagnostics


def test_one_who_only_hands_on_is_not_counted(tmp_path: Path) -> None:
    result = compiled(tmp_path, "run(a, b, n);", CALLS)
    assert [f.region.function for f in result.functions if f.verdict is not None] == ["run"]


def test_a_function_that_is_not_followed_is_not_known(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kesco.analysis.host_regions.better.hopeful", lambda *_: False)  # the text alone
    given = of(compiled(tmp_path, f"inc{ON}(a, n); goto end; end:; inc{ON}(b, n);"))
    assert given.text.startswith("not known: it contains goto")


def test_what_copies_on_streams_find_is_lost_where_they_stay(tmp_path: Path) -> None:
    body = f"set{ON}(b, a, n); {HOME.format('b', 'h')} set{ON}(c, a, n); {HOME.format('c', 'g')}"
    assert of(compiled(tmp_path, body)).text == "concurrent"
    kept = compiled(tmp_path, body, options=Options(copies="keep"))
    assert of(kept).text.startswith(("lost", "not known"))


def test_too_many_operations_are_not_compared(tmp_path: Path) -> None:
    body = f"inc{ON}(a, n); " * 160
    assert "more than 150 operations" in of(compiled(tmp_path, body)).text


def test_the_last_line_counts(tmp_path: Path) -> None:
    functions = f"void two(float* x, float* y, int n) {{ inc{ON}(x, n); inc{ON}(y, n); }}\n"
    functions += f"void one(float* x, int n) {{ inc{ON}(x, n); }}\nvoid none(float* x) {{ }}\n"
    functions += "template <typename T> void t(T* x) { inc<<<1, 1>>>(x, 1); }\n"
    compiled(tmp_path, f"{UP.format('a', 'h')} {UP.format('c', 'g')} set{ON}(b, a, n); add{ON}(c, b, n);", functions)
    source = tmp_path / "app.cu"
    run = CliRunner().invoke(main, ["compile", str(source), "-o", str(tmp_path / "out.cu")])
    assert run.output.splitlines()[-1] == (f"{source}: 2 of 4 launching functions concurrent, 1 chain, 1 not known")
    source.write_text("int main() {}\n")
    run = CliRunner().invoke(main, ["compile", str(source), "-o", str(tmp_path / "out.cu")])
    assert run.output.splitlines()[-1] == f"{source}: no launching function"


def test_of_a_concurrent_function_only_explain_says_what_is_lost_beside_it(tmp_path: Path) -> None:
    copies = "cudaMemcpy(d, h, 80000, cudaMemcpyHostToDevice);"
    result = compiled(
        tmp_path, f"{copies} inc{ON}(a, n); inc{ON}(b, n); add{ON}(a, d, 10);", options=Options(copies="keep")
    )
    assert of(result).text == "concurrent"
    assert [d.code for d in of(result).lost] == ["K223"]
    assert result.diagnostics == ()


def test_what_is_not_seen_is_no_chain(tmp_path: Path) -> None:
    unseen = "void unseen(float*);\n"
    assert of(compiled(tmp_path, f"inc{ON}(a, n); unseen(a);", unseen)).text == (
        "not known: what 'unseen' does, which is not seen"
    )
    heap = "__global__ void grow(void** p) { *p = malloc(8); }\n"
    body = "void **l, **m; cudaMalloc(&l, 8); cudaMalloc(&m, 8); grow<<<1, 1>>>(l); grow<<<1, 1>>>(m);"
    assert of(compiled(tmp_path, body, heap)).text == (
        "not known: whether 'grow#1' and 'grow#2' hand memory of the device heap on"
    )


def test_explain_says_the_verdicts(tmp_path: Path) -> None:
    compiled(tmp_path, LOOPS["a buffer that each turn fills by a copy"][0])
    text = CliRunner().invoke(main, ["explain", str(tmp_path / "app.cu")]).output
    assert (
        "  verdict: lost: 'add' and 'cudaMemcpy' of the next turn could overlap, with a second buffer for 'b'" in text
    )
    assert "  loop at 15:3: lost: 'add' and" in text


def test_frames_of_two_buffers_that_swap_are_two_streams_and_no_event(tmp_path: Path) -> None:
    """More operations than are compared with each other: what runs beside each other is seen all the same.

    Each frame's copies go where its kernels are, though kernels of the frames before ran there.
    """
    swapped = "{{ float* t = {0}; {0} = {1}; {1} = t; }}"
    frame = [
        UP.format("a", "h"), UP.format("b", "g"), f"set{ON}(c, a, n); set{ON}(d, b, n);", swapped.format("a", "c"),
        swapped.format("b", "d"), HOME.format("a", "h"), HOME.format("b", "g"), "h[0] += 1; g[0] += h[1];",
    ]  # fmt: skip
    result = compiled(tmp_path, f"for (int f = 0; f < 32; ++f) {{ {' '.join(frame)} }}")
    assert of(result).word is Word.CONCURRENT
    main_function = next(f for f in result.functions if f.region.function == "main")
    assert main_function.schedule is not None and main_function.plan is not None
    assert (main_function.schedule.streams, len(main_function.plan.waits)) == (2, 0)
