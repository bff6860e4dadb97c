"""What reading other people's programs uncovered, each in a small program of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.errors import InputError
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file
from kesco.proving import verify_files

pytestmark = pytest.mark.usefixtures("toolchain")

KERNEL = "__global__ void k(float* q) { q[0] += 1; }\n"
ALLOCATE = "  float *x, *y;\n  cudaMalloc(&x, 256);\n  cudaMalloc(&y, 256);\n"


def compiled(folder: Path, text: str) -> Compilation:
    source = folder / "input.cu"
    source.write_text(text)
    return compile_file(str(source), Options())


def messages(result: Compilation, code: str) -> list[str]:
    return [d.message for d in result.diagnostics if d.code == code]


def test_a_macro_that_the_prologue_sets_aside_is_there_again_when_the_output_is_proven(tmp_path: Path) -> None:
    (tmp_path / "define.h").write_text(f"#define fp float\n{KERNEL}")  # so that the prologue follows the includes
    text = f'#include <cstdio>\n#include "define.h"\nint main() {{\n{ALLOCATE}  fp h = 0;\n'
    result = compiled(tmp_path, f"{text}  k<<<1, 1>>>(x);\n  k<<<1, 1>>>(y);\n  return (int)h;\n}}\n")
    assert result.changed
    output = tmp_path / "output.cu"
    output.write_bytes(result.text)
    (verdict,) = verify_files(str(tmp_path / "input.cu"), str(output), Options())
    assert verdict.problems == ()


def test_a_macro_that_the_program_sets_aside_has_its_old_value_again(tmp_path: Path) -> None:
    aside = '#define N 1\n#pragma push_macro("N")\n#undef N\n#define N 0\n#include <cstdio>\nint unused;\n'
    text = f'{aside}#pragma pop_macro("N")\n{KERNEL}int main() {{\n{ALLOCATE}  float* t[2] = {{x, y}};\n'
    result = compiled(tmp_path, f"{text}  k<<<1, 1>>>(t[N]);\n  k<<<1, 1>>>(y);\n  cudaDeviceSynchronize();\n}}\n")
    assert not result.changed


def test_what_nvcc_declares_for_the_host_without_an_include(tmp_path: Path) -> None:
    text = (
        f"#include <algorithm>\nusing namespace std;\n{KERNEL}int main() {{\n{ALLOCATE}  time_t now = time(nullptr);\n"
    )
    uses = "  int n = max(1, 2) + min(1u, 2) + (int)max(1.0, 2.0f) + (int)min(3l, 4l) + (now > 0);\n"
    result = compiled(tmp_path, f"{text}{uses}  k<<<n, 1>>>(x);\n  k<<<n, 1>>>(y);\n  cudaDeviceSynchronize();\n}}\n")
    assert result.changed


NVCC_ALONE = {
    "shared object": "struct Counter { int n; __device__ Counter() : n(7) {} };\n"
    "template <int N>\n__global__ void of(int* p, int* q) {\n  __shared__ Counter c[N];\n  __shared__ Counter d;\n"
    "  d.n = *q;\n  c[0].n = d.n;\n  __syncthreads();\n  p[threadIdx.x] = c[0].n;\n}\n",
    "comma": "__global__ void of(int* p, int* q) {\n  unsigned v = *q;\n"
    '  asm volatile("st.release.sys.global.u8 [%1], %0;" ::"r"(v) "l"(p) : "memory");\n}\n',
    "register": "__global__ void of(int* p, int* q) {\n"
    '  asm("mov.u32 %0, %laneid;" : "=r"(*p));\n  asm("mov.u32 %0,%laneid;" : "=r"(p[1]));\n  *p += *q;\n}\n',
    "array": "__global__ void of(int* p, int* q) { *p += *q; }\n"
    "int zeroes(int n) {\n  int list[n] = {0};\n  int *pointers[n][2] = {};\n  return list[0] + !pointers[0][1];\n}\n",
    "suffix": '#define FORM "d"\nconst char* form = "%"FORM;\n__global__ void of(int* p, int* q) { *p += *q; }\n',
    "atomics": "__global__ void of(int* p, int* q) {\n  int seen = __nv_atomic_load_n(q, __NV_ATOMIC_ACQUIRE);\n"
    "  __nv_atomic_store_n(p, seen, __NV_ATOMIC_RELEASE, __NV_THREAD_SCOPE_DEVICE);\n"
    "  __nv_atomic_compare_exchange_n(p, &seen, 5, false, __NV_ATOMIC_RELAXED, __NV_ATOMIC_RELAXED);\n"
    "  __nv_atomic_fetch_max(p, 3, __NV_ATOMIC_RELAXED);\n  __nv_atomic_thread_fence(__NV_ATOMIC_SEQ_CST);\n}\n",
}


@pytest.mark.parametrize("text", NVCC_ALONE.values(), ids=NVCC_ALONE)
def test_what_nvcc_takes_and_clang_does_not(tmp_path: Path, text: str) -> None:
    """It is read, and what the kernel writes is known; the text keeps what the user wrote."""
    buffers = "  int *x, *y, *z;\n  cudaMalloc(&x, 256);\n  cudaMalloc(&y, 256);\n  cudaMalloc(&z, 256);\n"
    launches = "  of<<<1, 64>>>(x, z);\n  of<<<1, 64>>>(y, z);\n"
    if "template" in text:
        launches = launches.replace("of<", "of<3><")
    result = compiled(tmp_path, f"{text}int main() {{\n{buffers}{launches}  cudaDeviceSynchronize();\n}}\n")
    (one,) = (f for f in result.functions if f.region.function == "main")
    assert one.rewritten and one.schedule.streams == 2
    assert not one.plan.waits
    assert result.text.decode().startswith(text)


@pytest.mark.parametrize(
    "text, message",
    [
        ("struct C { int n; __device__ C() : n(7) {} };\n__global__ void k(int* p) { __shared__ C c, d; *p = c.n; }\n",
         "initialization is not supported"),
        ("int f(int n) { int list[n] = {1}; return list[0]; }\n", "may not be initialized"),
        ("int f(int n) { return (n 2); }\n", "expected ')'"),
    ],
)  # fmt: skip
def test_what_looks_different_is_refused_as_before(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message.replace(")", "\\)")):
        compiled(tmp_path, text)


def test_a_header_of_the_program_may_be_called_as_the_drivers(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "cuda.h").write_text("#define MINE 3\n")
    for include in ("<cuda.h>", '"cuda.h"'):
        source = tmp_path / "input.cu"
        source.write_text(f"#include {include}\n{KERNEL}int main() {{ return MINE; }}\n")
        compile_file(str(source), Options(flags=(f"-I{tmp_path}/mine",)))
        source.write_text(f"#include {include}\n{KERNEL}int main() {{ return CUDA_VERSION + (cuInit(0) != 0); }}\n")
        compile_file(str(source), Options())


def test_what_nvcc_declares_for_the_device_without_an_include(tmp_path: Path) -> None:
    kernels = (
        "#include <cuda_fp16.h>\n"
        "__global__ void one(float* p, const float* q) { __stcs(p, __ldlu(q) * 2.0); __stcg(p + 1, __ldca(q)); }\n"
        "__global__ void two(float4* p, float* q) { __stwt(p, make_float4(__ldcs(q), 0, 0, 0)); __stwb(p + 1, *p); }\n"
        "__global__ void three(__half* p, const __half* q) { __stcs(p, __ldlu(q)); }\n"
    )
    memory = "  float4 *z;\n  __half *h, *g;\n  cudaMalloc(&z, 256);\n  cudaMalloc(&h, 4);\n  cudaMalloc(&g, 4);\n"
    body = "  one<<<1, 1>>>(x, y);\n  two<<<1, 1>>>(z, y);\n  three<<<1, 1>>>(h, g);\n  one<<<1, 1>>>(y, x);\n"
    result = compiled(tmp_path, f"{kernels}int main() {{\n{ALLOCATE}{memory}{body}  cudaDeviceSynchronize();\n}}\n")
    (main,) = result.functions
    assert main.dfg is not None
    pairs = {(main.region.sites[a].label, main.region.sites[b].label) for a, b in main.dfg.graph.edges}
    assert pairs == {("one#1", "one#2"), ("two", "one#2")}


@pytest.mark.parametrize(
    ("between", "what"),
    [
        ("if (cudaDeviceSynchronize()) return 1;", "'cudaDeviceSynchronize#1' keeps 'k#1' and 'k#2' apart"),
        ("cudaFree(z);", "'cudaFree' keeps 'k#1' and 'k#2' apart"),
        ("cudaMemcpy(z, h, 4, cudaMemcpyHostToDevice);", "'cudaMemcpy' keeps 'k#1' and 'k#2' apart"),
        ("other();", "'other' keeps 'k#1' and 'k#2' apart"),
        (
            "cudaMemcpy(h, x, 4, cudaMemcpyDeviceToHost);",
            "whether the host uses what 'cudaMemcpy' tells it in what follows",
        ),
        ("k<<<1, 1>>>(both);", ""),
    ],
)
def test_a_barrier_between_independent_launches_is_named(tmp_path: Path, between: str, what: str) -> None:
    memory = "  float *z, h[1] = {};\n  cudaMalloc(&z, 4);\n  float* both = h[0] > 0 ? x : y;\n"
    body = f"  k<<<1, 1>>>(x);\n  {between}\n  k<<<1, 1>>>(y);\n  cudaDeviceSynchronize();\n"
    result = compiled(tmp_path, f"{KERNEL}void other();\nint main() {{\n{ALLOCATE}{memory}{body}}}\n")
    assert not result.changed
    found = messages(result, "K208")
    named = what.startswith("'")
    assert (len(found) == 1 and found[0].startswith(what)) if named else not found
    why = "what is independent in it is kept apart" if named else "no two of its operations are independent"
    if what and not named:
        why = f"it is not known whether two of its operations are independent: {what}"
    assert messages(result, "K204") == [f"'main' stays serial: {why}"]


def test_rounds_of_a_loop_that_a_barrier_divides_do_not_overlap(tmp_path: Path) -> None:
    body = (
        "  for (int i = 0; i < n; ++i) {\n    k<<<1, 1>>>(x);\n    cudaDeviceSynchronize();\n    k<<<1, 1>>>(x);\n  }\n"
    )
    result = compiled(tmp_path, f"{KERNEL}int main(int n, char**) {{\n{ALLOCATE}{body}}}\n")
    assert not result.changed and [f.width for f in result.functions] == [1]


def test_a_function_without_work_is_left_without_a_remark(tmp_path: Path) -> None:
    text = f"template <typename T> T half(T x) {{ return x / 2; }}\n{KERNEL}int main() {{\n{ALLOCATE}"
    result = compiled(tmp_path, f"{text}  k<<<1, half(2)>>>(x);\n  k<<<1, 1>>>(y);\n  cudaDeviceSynchronize();\n}}\n")
    assert result.changed and result.diagnostics == ()


def test_a_memset_beside_a_chain_of_kernels_does_not_pay(tmp_path: Path) -> None:
    chain = "    cudaMemset(y, 0, n * 4);\n    k<<<1, 1>>>(x);\n    add<<<1, 1>>>(x, y);\n"
    add = "__global__ void add(float* a, const float* b) { *a += *b; }\n"
    main = "int main(int n, char**) {\n"
    serial = compiled(tmp_path, f"{KERNEL}{add}{main}{ALLOCATE}  for (int i = 0; i < n; ++i) {{\n{chain}  }}\n}}\n")
    assert not any(one.rewritten for one in serial.functions)
    why = "only memsets could overlap with anything, which does not pay for the streams"
    assert messages(serial, "K204") == [f"'main' stays serial: {why}"]
    chain = chain.replace("cudaMemset(y, 0, n * 4)", "k<<<1, 1>>>(y)")
    more = compiled(tmp_path, f"{KERNEL}{add}{main}{ALLOCATE}  for (int i = 0; i < n; ++i) {{\n{chain}  }}\n}}\n")
    assert any(one.rewritten for one in more.functions)


@pytest.mark.parametrize(
    ("functions", "calls", "help_text"),
    [
        ("#include <cstdlib>\nvoid a(float* p) { k<<<1, 1>>>(p); if (p) exit(1); }", "a(x); k<<<1, 1>>>(y);",
         "it cannot be put on a stream, since it may end the process"),
        ("static void a(float* p) { k<<<1, 1>>>(p); if (cudaDeviceSynchronize()) return; }", "a(x); k<<<1, 1>>>(y);",
         "'cudaDeviceSynchronize' in it waits for the device (line 2): if nothing depends on that, remove it"),
        ("static void a(float* p) { int n; k<<<1, 1>>>(p); cudaMemcpy2D(&n, 4, p, 4, 4, 1, cudaMemcpyDeviceToHost); }",
         "a(x); k<<<1, 1>>>(y);", "'cudaMemcpy2D' in it is a barrier (line 2): move it out of the function"),
        ("static void a(float* p) { float* t; cudaMalloc(&t, 4); k<<<1, 1>>>(p); cudaFree(t); }",
         "a(x); k<<<1, 1>>>(y);", "'cudaFree' in it is a barrier (line 2): free memory behind all work"),
        ("static int a(float* p) { k<<<1, 1>>>(p); return 1; }", "if (a(x)) n = 2; k<<<1, 1>>>(y);",
         "make each call of it a statement of its own"),
        ("static void a(float* p) { k<<<1, 1>>>(p); goto end; end:; }", "a(x); k<<<1, 1>>>(y);", ""),
    ],
)  # fmt: skip
def test_what_helps_where_a_call_keeps_operations_apart(
    tmp_path: Path, functions: str, calls: str, help_text: str
) -> None:
    body = f"{KERNEL}{functions}\nint main(int n, char**) {{\n{ALLOCATE}  {calls}\n  cudaDeviceSynchronize();\n}}\n"
    found = [d for d in compiled(tmp_path, body).diagnostics if d.code == "K208"]
    assert [help_text in d.help for d in found] == [True] * bool(help_text)


def test_a_timer_in_an_included_file_is_no_unseen_code(tmp_path: Path) -> None:
    (tmp_path / "timer.c").write_text(
        "#include <stdio.h>\n#include <sys/time.h>\nstatic double began;\n"
        'double now(void) {\n  struct timeval t;\n  if (gettimeofday(&t, 0)) printf("no clock");\n'
        "  return t.tv_sec + t.tv_usec * 1e-6;\n}\nvoid timer_start(void) { began = now(); }\n"
    )
    text = f'#include "timer.c"\n{KERNEL}int main() {{\n{ALLOCATE}  timer_start();\n  k<<<1, 1>>>(x);\n'
    result = compiled(tmp_path, f"{text}  k<<<1, 1>>>(y);\n  cudaDeviceSynchronize();\n  timer_start();\n}}\n")
    assert result.changed
    assert not any(site.foreign for one in result.functions for site in one.region.sites)


STRUCT = (
    "#define TWO 2\nconst int N = 4;\nenum { M = 3 };\ntemplate <int K> struct Of { float a[K]; };\nint unseen();\n"
)


@pytest.mark.parametrize(
    ("member", "is_data"),
    [
        ("int a[N];", True),
        ("int a[N][M + TWO], *b[sizeof(int[N])];", True),
        ("struct { int x; } a[ /* N */ N ];", True),
        ("Of<N> a[TWO]; int b : N, c : M;", True),
        ("float a[N] = {1, 2};", True),
        ("int a[N] = {unseen()};", False),
        ("int a[N]{unseen()};", False),
        ("int a = N ? unseen() : M;", False),
        ("int a{TWO ? unseen() : int(M)};", False),
        ("int (*a)() = [] { return unseen(); };", False),
    ],
)
@pytest.mark.usefixtures("text_alone")  # the IR's reading knows that a copy runs no initialiser
def test_the_size_of_an_array_in_a_struct_is_no_initialiser(tmp_path: Path, member: str, is_data: bool) -> None:
    """What an initialiser does is code that runs where an object is made; a bound or a width runs nowhere."""
    kernel = f"{STRUCT}struct S {{ float z; {member} }};\n__global__ void k(S s, float* q) {{ q[0] += s.z; }}\n"
    launches = "  k<<<1, 1>>>(s, x);\n  k<<<1, 1>>>(s, y);\n  cudaDeviceSynchronize();\n}\n"
    result = compiled(tmp_path, f"{kernel}void f(const S& s) {{\n{ALLOCATE}{launches}")
    assert result.changed == is_data
    made = compiled(
        tmp_path, f"{kernel}void f() {{\n{ALLOCATE}  k<<<1, 1>>>(x);\n  S s;\n{launches}".replace("(x)", "(S(), x)")
    )
    assert bool(messages(made, "K205")) != is_data


@pytest.mark.parametrize(
    ("before", "pointer"),
    [
        ("", "x + v[0]"),
        ("", "v[0] + x"),
        ("int u = unseen();", "x + u"),
        ("", "x + s.n"),
        ("", "&x[t->n]"),
        ("", "x + (s.size * 4 + n) * global_size"),
        ("", "(float*)((char*)x + s.size)"),
        ("float* at = x; at += v[1];", "at"),
        ("float* at = x; for (int i = 0; i < n; ++i) at += v[i];", "at"),
    ],
)
def test_a_pointer_that_is_moved_stays_within_its_allocation(tmp_path: Path, before: str, pointer: str) -> None:
    """As it does where an index is written, whatever is known of the integer."""
    given = "#include <vector>\nstruct S { int n; size_t size; };\nextern int global_size;\nint unseen();\n"
    head = "void f(const std::vector<int>& v, const S& s, const S* t, int n) {\n"
    launches = f"  {before}\n  k<<<1, 1>>>({pointer});\n  k<<<1, 1>>>(y);\n  cudaDeviceSynchronize();\n}}\n"
    result = compiled(tmp_path, f"{given}{KERNEL}{head}{ALLOCATE}{launches}")
    assert result.changed
    assert "if_distinct" not in result.text.decode()  # integers are not compared as pointers are
