"""Each help that kesco gives is followed once: then it is not given again, and what it was about is gone.

A way is a program before and after its author did what the help says. Every help of the tables has one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kesco.ir.flow import SiteKind
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.remarks import _OTHER_WAYS, _UNKNOWN_HELP, _UNSEEN_HELP
from kesco.remarks import lost as remarks_lost
from kesco.remarks.verdicts import UNSURE as UNSURE_HELPS
from kesco.report.explain import lost
from kesco.report.helps import HELP

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <cstdio>
#include <cstdlib>
#include <ctime>
__global__ void k(float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) p[i] += 1; }
__global__ void set(float* q, const float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) q[i] = p[i]; }
__global__ void add(float* q, const float* p, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) q[i] += p[i]; }
"""  # noqa: E501
MAIN = """\
int main(int argc, char**) {
  int n = argc << 20;
  float *x, *y, *z, *w, *h = (float*)malloc(n * 4), *g, *f;
  cudaMalloc(&x, n * 4);
  cudaMalloc(&y, n * 4);
  cudaMalloc(&z, n * 4);
  cudaMalloc(&w, n * 4);
  cudaMallocHost(&g, n * 4);
  cudaMallocHost(&f, n * 4);
"""
END = "\n  cudaDeviceSynchronize();\n  return 0;\n}\n"
ON = "<<<n / 256, 256>>>"
SYNC = "if (cudaDeviceSynchronize()) return 1;"
UP, HOME, D2D = (f"cudaMemcpy{way}" for way in ("HostToDevice", "DeviceToHost", "DeviceToDevice"))


@dataclass(frozen=True)
class Way:
    """The help, and what stands in main, or before it, when it is given, and when it was followed."""

    help: str
    before: str
    after: str
    functions: str = ""
    then: str | None = None  # the functions afterwards
    asked: Options = field(default_factory=Options)
    answered: Options | None = None
    files: tuple[tuple[str, str], ...] = ()


def two(what: str) -> str:
    return f"k{ON}(x, n); {what} k{ON}(y, n);"


BOTH = two("")
MOVE = "move it in front of both or behind both"
HEADER = Path(__file__).parents[1] / "golden/library_calls/cuda/include/libraries.h"
LIBRARY = f'#include "{HEADER}"\n'
CREATE = "float o = 1; cublasHandle_t b; cublasCreate(&b);"
BETWEEN = {
    "a synchronize is removed": Way(remarks_lost.BETWEEN[SiteKind.SYNC], two(SYNC), BOTH),
    "memory is freed behind both": Way(
        remarks_lost.BETWEEN[SiteKind.FREE], two("cudaFree(z);"), f"{BOTH} cudaFree(z);"
    ),
    "a copy in front of both": Way(
        MOVE, two(f"cudaMemcpy(z, h, 400, {UP});"), f"cudaMemcpy(z, h, 400, {UP}); {BOTH}"
    ),
    "a copy behind both": Way(MOVE, two(f"cudaMemcpy(z, h, 400, {UP});"), f"{BOTH} cudaMemcpy(z, h, 400, {UP});"),
    "a copy that is asynchronous": Way(
        "call cudaMemcpyAsync with page-locked memory (cudaMallocHost)",
        two(f"cudaMemcpy(z, h, 400, {UP});"),
        two(f"cudaMemcpyAsync(z, g, 400, {UP});"),
    ),
    "a call of unseen code behind both": Way(MOVE, two("unseen();"), f"{BOTH} unseen();", "void unseen();\n"),
    "a call of unseen code in front of both": Way(MOVE, two("unseen();"), f"unseen(); {BOTH}", "void unseen();\n"),
    "a result of a library behind both": Way(
        MOVE,
        f"{CREATE} {two('cublasSdot(b, n, z, 1, w, 1, &o);')}",
        f"{CREATE} {BOTH} cublasSdot(b, n, z, 1, w, 1, &o);",
        LIBRARY,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BETWEEN)
def test_what_stands_between(tmp_path: Path, name: str) -> None:
    follow(tmp_path, BETWEEN[name])


PINNED = "page-locked memory (cudaMallocHost)"
TWO_IN_ONE = "write two turns in one, the second with another buffer than 'x'"
TURN = "for (int i = 0; i < argc; ++i)"
FIRST = f"cudaMemcpy(x, h, n * 4, {UP}); cudaMemcpy(z, h, n * 4, {UP}); set{ON}(y, x, n); add{ON}(z, y, n);"
CLOCK = "long t = clock();"
LAST = f"set{ON}(y, x, n); set{ON}(z, y, n); {SYNC} t -= clock();"


def sent(*names: str, form: str = "cudaMemcpyAsync", host: str = "g") -> str:
    return " ".join(f"{form}({name}, {host}, n * 4, {UP});" for name in names)


def home(name: str, form: str = "cudaMemcpyAsync", host: str = "g") -> str:
    return f"{form}({host}, {name}, n * 4, {HOME});"


PAIRS = {
    "a copy from page-locked memory": Way(
        f"call cudaMemcpyAsync with {PINNED}",
        f"{sent('x', 'z', form='cudaMemcpy', host='h')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', 'z')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
    ),
    "a copy that only lacks page-locked memory": Way(
        f"copy with {PINNED}",
        f"{sent('x', 'z', host='h')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', 'z')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
    ),
    "a copy that only lacks its asynchronous form": Way(
        "call cudaMemcpyAsync",
        f"{sent('x', 'z', form='cudaMemcpy')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', 'z')} {CLOCK} set{ON}(y, x, n); add{ON}(z, y, n);",
    ),
    "a copy behind the kernel beside which it could run": Way(
        f"{PINNED}, behind 'set'",
        f"{sent('x', 'z', form='cudaMemcpy', host='h')} unseen(); set{ON}(y, x, n); add{ON}(z, y, n);",
        f"{sent('x', form='cudaMemcpy', host='h')} unseen(); set{ON}(y, x, n); {sent('z')} add{ON}(z, y, n);",
        "void unseen();\n",
    ),
    "a result in front of the kernel beside which it could go home": Way(
        f"call cudaMemcpyAsync with {PINNED}, in front of 'set#2'",
        f"{CLOCK} {LAST} {home('y', 'cudaMemcpy', 'h')} {home('z', 'cudaMemcpy', 'h')}",
        f"{CLOCK} set{ON}(y, x, n); {home('y')} set{ON}(z, y, n); {SYNC} t -= clock(); {home('z', 'cudaMemcpy', 'h')}",
    ),
    "a second buffer": Way(
        "give 'cudaMemcpy#2', and what reads that, another buffer than 'x'",
        f"{sent('x')} add{ON}(y, x, n); {sent('x', host='f')} add{ON}(y, x, n);",
        f"{sent('x')} add{ON}(y, x, n); {sent('z', host='f')} add{ON}(y, z, n);",
    ),
    "a second buffer in a loop": Way(
        TWO_IN_ONE,
        f"{TURN} {{ {sent('x')} add{ON}(y, x, n); }}",
        f"{TURN} {{ {sent('x')} add{ON}(y, x, n); {sent('z')} add{ON}(y, z, n); }}",
    ),
    "a second buffer in a loop, and copies that do not hold the host": Way(
        f"{TWO_IN_ONE}; call cudaMemcpyAsync with {PINNED}",
        f"{TURN} {{ {sent('x', form='cudaMemcpy', host='h')} add{ON}(y, x, n); }}",
        f"{TURN} {{ {sent('x')} add{ON}(y, x, n); {sent('z')} add{ON}(y, z, n); }}",
    ),
    "a constant number of turns": Way(
        remarks_lost.TURNS,
        "for (int i = 0; i < argc; ++i) k<<<1, 256>>>(x + 256 * i, 256);",
        "for (int i = 0; i < 4; ++i) k<<<1, 256>>>(x + 256 * i, 256);",
        asked=Options(emit="graph"),  # else turns run beside each other as they are
        answered=Options(emit="graph"),
    ),
    "a synchronize in a loop": Way(
        remarks_lost.BETWEEN[SiteKind.SYNC],
        f"{TURN} {{ {two(SYNC)} {SYNC} }}",
        f"{TURN} {{ {BOTH} }}",
    ),
}


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.usefixtures("text_alone")
def test_what_is_independent(tmp_path: Path, name: str) -> None:
    follow(tmp_path, PAIRS[name])


EACH = "k<<<1024, 256>>>(x + 262144 * i, 262144); "
EACH_HOME = f"cudaMemcpy(h + 262144 * i, x + 262144 * i, 1 << 20, {HOME}); "
EACH_SHOWN = 'printf("%g", h[262144 * i]); '
FAR = "__global__ void far(float* q, int row, int w) { q[row * w + threadIdx.x] += 1; }\n"
UNSURE = {
    "what the host looks at, behind the loop": Way(
        "let the host look at what is copied to it, and print, behind the loop",
        f"for (int i = 0; i < argc; ++i) {{ {EACH}{EACH_HOME}{EACH_SHOWN}}}",
        f"for (int i = 0; i < argc; ++i) {{ {EACH}{EACH_HOME}}} for (int i = 0; i < argc; ++i) {EACH_SHOWN}",
    ),
    "a buffer for each use": Way(
        "give each use of the buffer one of its own",
        f"set{ON}(y, x, n); add{ON}(x, y, n); set{ON}(y, z, n); add{ON}(z, y, n);",
        f"set{ON}(y, x, n); add{ON}(x, y, n); set{ON}(w, z, n); add{ON}(z, w, n);",
    ),
    "a pointer to the part": Way(
        "pass a pointer to the part",
        "far<<<1, 256>>>(x, 0, argc); far<<<1, 256>>>(x, 1, argc);",
        "k<<<1, 256>>>(x, 256); k<<<1, 256>>>(x + 256, 256);",
        FAR,
    ),
    "a copy that does not hold the host": Way(
        "if it does not, copy asynchronously with page-locked memory",
        f"set{ON}(y, x, n); {home('y', host='h')} set{ON}(z, y, n); {SYNC}",
        f"set{ON}(y, x, n); {home('y')} set{ON}(z, y, n); {SYNC}",
    ),
}


@pytest.mark.parametrize("name", UNSURE)
def test_what_is_not_known(tmp_path: Path, name: str) -> None:
    follow(tmp_path, UNSURE[name])


def static(text: str, name: str = "run") -> str:
    return f"static void {name}(float* p, int n) {{ {text} }}\n"


ONE = f"k{ON}(p, n);"
CALL = f"run(x, n); k{ON}(y, n);"
CALLS = {
    "a wait in it": Way(
        "if nothing depends on that, remove it", CALL, CALL, static(f"{ONE} if (cudaDeviceSynchronize()) exit(1);"),
        static(ONE),
    ),
    "a copy in it": Way(
        "move it out of the function, in front of all calls or behind them", CALL,
        f"{CALL} float v; cudaMemcpy2D(&v, 4, x, 4, 4, 1, {HOME});",
        static(f"{ONE} float v; cudaMemcpy2D(&v, 4, p, 4, 4, 1, {HOME});"), static(ONE),
    ),
    "memory freed in it": Way(
        "free memory behind all work", CALL, f"float* t; cudaMalloc(&t, 4); {CALL} cudaFree(t);",
        static(f"float* t; cudaMalloc(&t, 4); {ONE} cudaFree(t);"), static(ONE),
    ),
    "a statement of its own": Way(
        "make each call of it a statement of its own", f"if (run(x, n)) n = 2; k{ON}(y, n);",
        f"int r = run(x, n); if (r) n = 2; k{ON}(y, n);",
        static(f"{ONE} return 1;").replace("void", "int"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "functions"),
    [
        (CALL, static(ONE)[7:]),
        (CALL, static(ONE) + "void other(float* p) { run(p, 1); }\n"),
        ("run(x, n); run(y, n);", static(ONE)),
    ],
)
def test_calls_of_what_only_launches_are_concurrent_as_they_are(tmp_path: Path, body: str, functions: str) -> None:
    source = tmp_path / "app.cu"
    source.write_text(f"{HEAD}{functions}{MAIN}  {body}{END}")
    result = compile_file(str(source), Options())
    assert result.changed
    assert not {one.help for function in result.functions for one in lost(function)} - {""}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.usefixtures("text_alone")
def test_calls(tmp_path: Path, name: str) -> None:
    follow(tmp_path, CALLS[name])


ROTATE = "float *q0 = x; " + " ".join(f"float* q{i} = y;" for i in range(1, 80))
ROTATE += (
    f" {TURN} {{ "
    + " ".join(f"q{i} = q{i + 1};" for i in range(79))
    + " q79 = z; k<<<1, 1>>>(q0, n); k<<<1, 1>>>(w, n); }"
)
IN_SOME = "float* t = z; for (int i = 0; i < 3; ++i) {{ {0}(t, x, 400, {1}); k<<<1, 1>>>(y, n); if (n > i) t = h; }}"
REASONS = {
    "asynchronous in some iterations": Way(
        "write 'cudaMemcpyAsync' where no host memory takes part", IN_SOME.format("cudaMemcpy", D2D),
        IN_SOME.format("cudaMemcpyAsync", D2D),
    ),
    "may return": Way(
        "write the check out instead of in a macro",
        f"k{ON}(x, n); WANT(n); k{ON}(y, n); WANT(n);", f"k{ON}(x, n); if (!n) return 2; k{ON}(y, n);",
        "#define WANT(truth) do { if (!(truth)) return 2; } while (0)\n",
    ),
    "not in this file's own text": Way(
        "move the launch into this file", f'\n#include "launch.inc"\n{BOTH}', f"k{ON}(z, n); {BOTH}",
        files=(("launch.inc", f"k{ON}(z, n);\n"),),
    ),
    "share one statement": Way(
        "put each operation into a statement of its own", f"k{ON}(x, n), k{ON}(y, n), add{ON}(x, y, n);",
        f"k{ON}(x, n); k{ON}(y, n); add{ON}(x, y, n);",
    ),
    "values in a loop": Way(
        "pointers that are set once", ROTATE, f"{TURN} {{ k<<<1, 1>>>(x, n); k<<<1, 1>>>(w, n); }}"
    ),
    "OpenMP": Way(
        "move the launches to a file without OpenMP", f"{BOTH}\n#pragma omp parallel\n  {{ }}", BOTH,
        asked=Options(flags=("-fopenmp",)),
    ),
    "launches kernels itself": Way(
        "launch those kernels from the host", f"outer<<<1, 1>>>(x); {BOTH}", f"k<<<1, 1>>>(x, 1); {BOTH}",
        "__global__ void outer(float* p) { k<<<1, 1>>>(p, 1); }\n", "", Options(flags=("-fgpu-rdc",)),
    ),
    "may point anywhere": Way(
        "allocate what it uses in this file", f"float* u = unseen(); k{ON}(u, n); {BOTH}", f"k{ON}(z, n); {BOTH}",
        "float* unseen();\n",
    ),
    "has a name": Way("rename it", BOTH, BOTH, "struct kesco_streams { };\n", "struct my_streams { };\n"),
    "host may have to wait": Way(
        "call the asynchronous form, with page-locked memory", sent("x", form="cudaMemcpy", host="h"), sent("x")
    ),
    "may be pageable": Way(f"copy with {PINNED}", sent("x", host="h"), sent("x")),
    "symbol": Way(
        "pass the data to the kernel by a pointer of its own", "run(x, y, n);", "run(x, y, n);",
        "__device__ float s;\n__global__ void of(float* p) { *p = s; }\n"
        "void run(float* p, float* q, int n) { of<<<1, 1>>>(p); of<<<1, 1>>>(q); }\n",
        "__device__ float s;\n__global__ void of(float* p, const float* s) { *p = *s; }\n"
        "void run(float* p, float* q, float* s) { of<<<1, 1>>>(p, s); of<<<1, 1>>>(q, s); }\n"
        "void run(float* p, float* q, int n) { }\n",
    ),
    "copies of this kind": Way(
        "use cudaMemcpyAsync or cudaMemcpy2DAsync", "cudaMemcpyPeerAsync(x, 0, y, 0, n * 4);",
        f"cudaMemcpyAsync(x, y, n * 4, {D2D});",
    ),
    "reads a clock": Way(
        "take the timer out of the kernel", f"timed<<<1, 1>>>(x); {BOTH}", f"timed<<<1, 1>>>(x); {BOTH}",
        "__global__ void timed(float* p) { *p = clock64(); }\n", "__global__ void timed(float* p) { *p = 1; }\n",
    ),
    "macro": Way(
        "write the operation out in the function instead of in a macro", "K(x); K(y);", BOTH,
        "#define K(p) k<<<n / 256, 256>>>(p, n), k<<<n / 256, 256>>>(p, n)\n",
    ),
    "object with a destructor": Way(
        "declare the object in front of the statement", f"for (D d;;) {{ {BOTH} break; }}", f"D d; {BOTH}",
        "struct D { ~D() { unseen(); } void unseen(); };\n",
    ),
    "loop's header": Way(
        "put the operation into a statement of its own",
        f"for (int i = 0; i < n; k{ON}(x, n), ++i) k{ON}(y, n);",
        f"for (int i = 0; i < n; ++i) {{ k{ON}(y, n); k{ON}(x, n); }}",
    ),
    "head of a statement": Way(
        "put the operation into a statement of its own", f"switch (k{ON}(x, n), n) {{ default: k{ON}(y, n); }}", BOTH
    ),
    "part of a condition": Way(
        "then test or return what it gave", f"if (cudaMemsetAsync(z, 0, n)) ++n; {BOTH}",
        f"cudaError_t e = cudaMemsetAsync(z, 0, n); if (e) ++n; {BOTH}",
    ),
    "same statement": Way(
        "call it in a statement of its own, and pass the result", f"k{ON}(x, unseen()); k{ON}(y, n);",
        f"int u = unseen(); k{ON}(x, u); k{ON}(y, n);", "int unseen();\n",
    ),
    "stream of its own": Way(
        "launch on the default stream", f"cudaStream_t s; cudaStreamCreate(&s); k<<<1, 1, 0, s>>>(x, n); k{ON}(y, n);",
        BOTH,
    ),
    "host threads": Way(
        "a file that starts no threads", f"{BOTH} std::thread t([]{{}}); t.join();", BOTH, "#include <thread>\n", ""
    ),
    "per-thread default stream": Way(
        "compile without --default-stream per-thread", BOTH, BOTH,
        asked=Options(flags=("-fgpu-default-stream=per-thread",)), answered=Options(),
    ),
    "asynchronous in some calls": Way(
        "give each caller a function of its own", "run(x, g, n); run(y, h, n);", "run(x, g, n); again(y, h, n);",
        "static void run(float* p, float* s, int n) { cudaMemcpyAsync(p, s, n * 4, cudaMemcpyHostToDevice); }\n",
        "static void run(float* p, float* s, int n) { cudaMemcpyAsync(p, s, n * 4, cudaMemcpyHostToDevice); }\n"
        "static void again(float* p, float* s, int n) { cudaMemcpyAsync(p, s, n * 4, cudaMemcpyHostToDevice); }\n",
    ),
    "template": Way(
        "launch from a function that is not a template", "run(x, y, n);", "run(x, y, n);",
        f"template <typename T> void run(T* x, T* y, int n) {{ {BOTH} }}\n",
        f"void run(float* x, float* y, int n) {{ {BOTH} }}\n",
    ),
    "it contains": Way(
        "move the launches into a function without it", f"{BOTH} goto end; end:;", "run(x, y, n); goto end; end:;", "",
        f"void run(float* x, float* y, int n) {{ {BOTH} }}\n",
    ),
    "one stream holds": Way(
        "allow more streams: --streams", BOTH, BOTH, asked=Options(streams=1), answered=Options()
    ),
    "one stream holds, by the strategy": Way(
        "--strategy", BOTH, BOTH, asked=Options(strategy="serial"), answered=Options()
    ),
    "body is not visible": Way(
        "define the kernel where this file sees it", f"other<<<1, 1>>>(x); {BOTH}", f"other<<<1, 1>>>(x); {BOTH}",
        "__global__ void other(float* p);\n", "__global__ void other(float* p) { *p = 1; }\n",
    ),
    "body is not visible, stated": Way(
        "'#pragma kesco kernel(name) reads(...) writes(...)'", f"other<<<1, 1>>>(x); {BOTH}",
        f"other<<<1, 1>>>(x); {BOTH}", "__global__ void other(float* p);\n",
        "#pragma kesco kernel(other) writes(p)\n__global__ void other(float* p);\n",
    ),
    "texture": Way(
        "read through a pointer instead of a texture object", f"tex<<<1, 1>>>(0, x); {BOTH}",
        f"tex<<<1, 1>>>(z, x); {BOTH}",
        "__global__ void tex(cudaTextureObject_t t, float* p) { *p = tex1Dfetch<float>(t, 0); }\n",
        "__global__ void tex(const float* t, float* p) { *p = *t; }\n",
    ),
    "through a surface": Way(
        "write through a pointer instead of a surface object", f"surf<<<1, 1>>>(0); {BOTH}",
        f"surf<<<1, 1>>>(z); {BOTH}",
        "__global__ void surf(cudaSurfaceObject_t t) { surf1Dwrite(1.0f, t, 0); }\n",
        "__global__ void surf(float* t) { *t = 1; }\n",
    ),
    "through pointers": Way(
        "pass each array as an argument of its own", f"lists<<<1, 1>>>((float**)z); {BOTH}",
        f"lists<<<1, 1>>>(z); {BOTH}",
        "__global__ void lists(float** p) { **p = 1; }\n", "__global__ void lists(float* p) { *p = 1; }\n",
    ),
    "may point anywhere, restricted": Way(
        "or mark pointers __restrict__", "", "",
        f"void run(float** p, float** q, int n) {{ k{ON}(*p, n); k{ON}(*q, n); }}\n",
        f"void run(float* __restrict__ p, float* __restrict__ q, int n) {{ k{ON}(p, n); k{ON}(q, n); }}\n",
    ),
}  # fmt: skip


WARN = "__global__ void warn(volatile int* flag) { *flag = 1; }\nvoid unseen(float*);\n"
RUN = "void run(volatile int* flag, float* __restrict__ p, float* __restrict__ q, int n) {{ {0} {1} }}\n"
LOOKED = f"k{ON}(p, n); warn<<<1, 1>>>(flag); k{ON}(q, n);"
TOLD = f"unseen(g); k{ON}(x, n); k{ON}(g, n); k{ON}(y, n);"
OTHER = "__global__ void other(float* p);\n"
SEEN = f"other<<<1, 1>>>(x); {BOTH}"
UNKNOWN = {
    "defined": Way(_UNSEEN_HELP.format("other"), SEEN, SEEN, OTHER, "__global__ void other(float* p) { *p = 1; }\n"),
    "stated": Way(
        _UNSEEN_HELP.format("other"), SEEN, SEEN, OTHER, f"#pragma kesco kernel(other) writes(p)\n{OTHER}"
    ),
    "allocated here": Way(
        _UNKNOWN_HELP, f"float* u = unseen(); k{ON}(u, n); {BOTH}", f"k{ON}(z, n); {BOTH}", "float* unseen();\n"
    ),
    "restricted": Way(
        _UNKNOWN_HELP, "", "",
        f"void run(float** p, float** q, int n) {{ k{ON}(*p, n); k{ON}(*q, n); }}\n",
        f"void run(float* __restrict__ p, float* __restrict__ q, int n) {{ k{ON}(p, n); k{ON}(q, n); }}\n",
    ),
    "a wait where others may look": Way(
        "wait for the device in front of the call that may look at it", f"{TOLD} unseen(0);",
        f"{TOLD} cudaDeviceSynchronize(); unseen(0);", WARN,
    ),
    "nobody watches": Way(
        "where none does, take off the volatile", "", "", WARN + RUN.format(LOOKED, ""),
        (WARN + RUN.format(LOOKED, "")).replace("volatile ", ""),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNKNOWN)
def test_unknown_memory(tmp_path: Path, name: str) -> None:
    follow(tmp_path, UNKNOWN[name])


@pytest.mark.parametrize("name", REASONS)
@pytest.mark.usefixtures("text_alone")
def test_reasons(tmp_path: Path, name: str) -> None:
    follow(tmp_path, REASONS[name])


def given(folder: Path, body: str, functions: str, options: Options) -> tuple[set[str], set[str]]:
    """The helps that are given for a program, and what they are about."""
    source = folder / "app.cu"
    source.write_text(f"{HEAD}{functions}{MAIN}  {body}{END}")
    result = compile_file(str(source), options)
    every = [one for function in result.functions for one in lost(function)]
    helps = {one.help for one in every} | {d.help for d in result.diagnostics}
    return helps - {""}, {one.what for one in every} | {d.message for d in result.diagnostics}


def follow(folder: Path, way: Way) -> None:
    """Give a help, follow it, and see it gone."""
    for name, text in way.files:
        (folder / name).write_text(text)
    helps, said = given(folder, way.before, way.functions, way.asked)
    assert any(way.help in one for one in helps), f"not given: {way.help}; but {helps}: {said}"
    then = way.functions if way.then is None else way.then
    helps, said = given(folder, way.after, then, way.answered or way.asked)
    assert not any(way.help in one for one in helps), f"given again: {way.help}: {said}"


def test_every_help_of_the_tables_is_followed() -> None:
    ways = [*BETWEEN.values(), *PAIRS.values(), *UNSURE.values(), *CALLS.values(), *REASONS.values(), *UNKNOWN.values()]
    told = [*(text for _, text in HELP), *(text for _, text in UNSURE_HELPS), *(text for _, text in _OTHER_WAYS)]
    told += [
        *remarks_lost.BETWEEN.values(),
        remarks_lost.TURNS,
        _UNKNOWN_HELP,
        _UNSEEN_HELP.format("other"),
    ]
    followed = {way.help for way in ways}
    assert [text for text in told if not any(part in text for part in followed)] == []


OPTIONS = {
    "K209": ("prefetches_in_the_first_trip", Options(prefetch=True), Options()),
    "K212": ("memory_reused", Options(memory="reuse"), Options()),
    "K219": ("order_of_issue", Options(), Options(order="keep")),
    "K220": ("prefetches_in_the_first_trip", Options(), Options(prefetch=True)),
}


@pytest.mark.parametrize("code", OPTIONS)
def test_options(code: str) -> None:
    case, asked, answered = OPTIONS[code]
    source = str(HEADER.parents[3] / case / "input.cu")
    assert [d.help for d in compile_file(source, asked).diagnostics if d.code == code] != []
    assert not [d for d in compile_file(source, answered).diagnostics if d.code == code]
