"""Programs that once lost a dependence: whatever kesco does with them now, two launches in each stay in order.

`soundness/*.cu` are small programs in which two pointers are equal in a way that is easy to overlook. The first line
says how, and which two kernels may therefore touch the same buffer.
"""

from __future__ import annotations

import re
from pathlib import Path

import networkx as nx
import pytest

from kesco.options import Options
from kesco.pipeline import FunctionResult, compile_file
from kesco.proving import verify_files
from kesco.scheduling.levels import phases

HERE = Path(__file__).parent / "soundness"
PROGRAMS = sorted(path.stem for path in HERE.glob("*.cu"))

pytestmark = pytest.mark.usefixtures("toolchain")


def unordered(function: FunctionResult, first: str, second: str) -> list[tuple[str, str]]:
    """Launches of two kernels that nothing orders: on streams of their own, in one phase, without a path."""
    if not function.rewritten:
        return []
    sites = function.region.sites
    stream_of = function.schedule.as_dict()
    found = []
    for phase in phases(function.dfg):
        for a in (n for n in phase if sites[n].label.partition("#")[0] == first):
            for b in (n for n in phase if sites[n].label.partition("#")[0] == second):
                graph = function.dfg.graph
                path = nx.has_path(graph, a, b) or nx.has_path(graph, b, a)
                if a != b and not path and stream_of[a] != stream_of[b]:
                    found.append((sites[a].label, sites[b].label))
    return found


# What the IR's reading tells apart, rightly: an object passed in a register is not the one whose address was kept, only
# the third trip of the loop works on what was appended, and a counter that two change is even here and odd there.
PRECISE = (
    "temporary_whose_constructor_keeps_this", "vector_loop_that_changes_its_size",
    "loop_counter_changed_through_a_struct_of_referen",
)  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_two_launches_stay_in_order(name: str, request: pytest.FixtureRequest) -> None:
    if name in PRECISE:
        request.getfixturevalue("text_alone")
    path = HERE / f"{name}.cu"
    stated = re.search(r"Ordered: (\w+), (\w+)$", path.read_text("utf-8").splitlines()[0])
    assert stated is not None
    result = compile_file(str(path), Options())
    assert [pair for one in result.functions for pair in unordered(one, stated[1], stated[2])] == []


KERNELS = "__global__ void k1(float* q) { q[0] += 1; }\n__global__ void k2(float* q) { q[0] *= 2; }\n"
HEAD = KERNELS + "int main() {\n  float *x, *y, *m, h[64];\n  cudaMalloc(&x, 256), cudaMalloc(&y, 256);\n"


@pytest.mark.parametrize(
    ("text", "moved"),
    [
        ("cudaMemcpyAsync(h, y, 256, cudaMemcpyDeviceToHost, 0);", False),
        ("cudaMemcpyAsync(y, h, 256, cudaMemcpyHostToDevice, 0);", False),
        ("cudaMemcpyAsync(h, y, 256, cudaMemcpyDefault, 0);", False),
        ("cudaMemcpyAsync(p, p + 32, 16, cudaMemcpyHostToHost, 0);", False),
        ("cudaMemcpyAsync(p, y, 256, cudaMemcpyDeviceToHost, 0);", True),
        ("cudaMemcpyAsync(y, p, 256, cudaMemcpyHostToDevice, 0);", True),
        ("cudaMemcpyAsync(y, m, 256, cudaMemcpyDefault, 0);", True),
    ],
)
def test_a_copy_for_which_the_host_may_wait_stays_in_place(tmp_path: Path, text: str, moved: bool) -> None:
    program = tmp_path / "copy.cu"
    memory = "  cudaMallocManaged(&m, 256);\n  float* p;\n  cudaMallocHost(&p, 256);\n"
    launches = "  float* z;\n  cudaMalloc(&z, 256);\n  k1<<<1, 1>>>(m);\n  k2<<<1, 1>>>(x);\n  k2<<<1, 1>>>(z);\n"
    program.write_text(f"{HEAD}{memory}{launches}  {text}\n  h[0] = m[0];\n  return cudaDeviceSynchronize();\n}}\n")
    result = compile_file(str(program), Options(force=True))
    (copy,) = re.findall(r"cudaMemcpyAsync\(.*\);", result.text.decode())
    assert ("kesco->stream" in copy) == moved


def test_a_call_in_a_chain_of_output_is_a_call(tmp_path: Path) -> None:
    program = tmp_path / "chain.cu"
    program.write_text(
        f"#include <iostream>\n{KERNELS}static float total(float* m) {{ cudaStreamSynchronize(0); return m[0]; }}\n"
        "int main() {\n  float *m, *x;\n  cudaMallocManaged(&m, 256), cudaMalloc(&x, 256);\n  k1<<<1, 1>>>(m);\n"
        "  k2<<<1, 1>>>(x);\n  std::cout << total(m) << std::endl;\n  return cudaDeviceSynchronize();\n}\n"
    )
    text = compile_file(str(program), Options()).text.decode()
    before = text[text.index("k2<<<", text.index("int main")) : text.index("std::cout")]
    assert before.count("cudaStreamWaitEvent(cudaStreamLegacy") == 2


CLASSES = """\
__global__ void step(const float* a, float* b) { b[threadIdx.x] = a[threadIdx.x] + 1; }
class Base { protected: float *u, *v, *w; };
class Derived : public Base {
  friend class Other;
 public:
  void both() INLINE
};
OUTSIDE
int main() { Derived d; d.both(); return 0; }
"""
BODY = "{ step<<<1, 64>>>(THISu, THISv); step<<<1, 64>>>(THISu, THISw); }"


@pytest.mark.parametrize("this", ["", "this->"])
@pytest.mark.parametrize("inline", [True, False])
def test_methods_of_derived_classes_are_rewritten_and_proven(tmp_path: Path, inline: bool, this: str) -> None:
    body = BODY.replace("THIS", this)
    inside, outside = (body, "") if inline else (";", f"void Derived::both() {body}")
    program = tmp_path / "classes.cu"
    program.write_text(CLASSES.replace("INLINE", inside).replace("OUTSIDE", outside))
    result = compile_file(str(program), Options())
    (both,) = (one for one in result.functions if one.region.function == "both")
    assert both.rewritten
    assert both.region.guards == ("this->u", "this->v", "this->w")
    text = result.text.decode()
    assert text.index("kesco: end") < text.index("class Derived" if inline else "void Derived::both")


def test_streams_outlive_global_objects(tmp_path: Path) -> None:
    """Destructors of globals may launch: nothing that the prologue keeps is destroyed before them."""
    program = tmp_path / "globals.cu"
    program.write_text(CLASSES.replace("INLINE", BODY.replace("THIS", "")).replace("OUTSIDE", ""))
    text = compile_file(str(program), Options()).text.decode()
    kept = re.findall(r"static .*std::map.*", text[: text.index("kesco: end")])
    assert len(kept) == 2
    assert all("*new std::map" in line for line in kept)


@pytest.mark.parametrize(
    ("caller", "fenced"),
    [
        ("void api(float* a, float* b) { helper(a, b); }", True),
        ("void unseen();\nint main() { MEMORY unseen(); helper(a, b); return 0; }", True),
        ("int main() { MEMORY helper(a, b); return 0; }", False),
    ],
)
def test_a_helper_waits_for_what_unseen_code_left_running(tmp_path: Path, caller: str, fenced: bool) -> None:
    """Its caller may owe a barrier for streams that are not seen, and does not pay it before a call."""
    program = tmp_path / "helper.cu"
    memory = "float *a, *b; cudaMalloc(&a, 256), cudaMalloc(&b, 256);"
    helper = "static void helper(float* a, float* b) {\n  k1<<<1, 1>>>(a);\n  k2<<<1, 1>>>(b);\n}\n"
    program.write_text(KERNELS + helper + caller.replace("MEMORY", memory) + "\n")
    text = compile_file(str(program), Options()).text.decode()
    body = text[text.index("static void helper") : text.index("k1<<<1, 1, 0", text.index("static void helper"))]
    assert ("streams of code not seen here come first" in body) == fenced


@pytest.mark.parametrize("work", ["k1<<<1, next()>>>(y);", "cudaMemsetAsync(y, next(), 256);"])
def test_arguments_that_change_something_are_read_again(work: str, tmp_path: Path) -> None:
    """That the text then names a stream beside them is no reason to know less."""
    path = tmp_path / "app.cu"
    path.write_text(
        "static int seed;\nstatic int next() { return ++seed; }\n"
        + HEAD
        + f"  k1<<<1, 64>>>(x);\n  {work}\n  k2<<<1, 64>>>(x);\n  k2<<<1, 64>>>(y);\n  cudaDeviceSynchronize(); }}\n"
    )
    (function,) = (f for f in compile_file(str(path), Options()).functions if f.region.function == "main")
    assert function.rewritten


OWN_STREAM = "static cudaStream_t s;\nstatic void side(float* q) { k2<<<1, 64, 0, s>>>(q); }\n"


def test_work_that_a_helper_left_on_a_stream_of_its_own_comes_first(tmp_path: Path) -> None:
    """The default stream waits for blocking streams; streams that kesco makes do not."""
    program = tmp_path / "own.cu"
    program.write_text(
        f"{KERNELS}{OWN_STREAM}int main() {{\n  float *x, *y;\n  cudaMalloc(&x, 256), cudaMalloc(&y, 256);\n"
        "  cudaStreamCreate(&s);\n  k1<<<1, 1>>>(x);\n  k2<<<1, 1>>>(y);\n  side(x);\n  k1<<<1, 1>>>(x);\n"
        "  k2<<<1, 1>>>(y);\n  return cudaDeviceSynchronize();\n}\n"
    )
    text = compile_file(str(program), Options()).text.decode()
    behind = text[text.index("side(x);") :]
    assert "not seen here come first" in behind[: behind.index("k1<<<")]


def test_a_helper_waits_for_its_callers_own_stream(tmp_path: Path) -> None:
    program = tmp_path / "own.cu"
    program.write_text(
        f"{KERNELS}static void work(float* a, float* b) {{\n  k1<<<1, 1>>>(a);\n  k2<<<1, 1>>>(b);\n}}\n"
        "int main() {\n  float *x, *y;\n  cudaMalloc(&x, 256), cudaMalloc(&y, 256);\n  cudaStream_t s;\n"
        "  cudaStreamCreate(&s);\n  k1<<<1, 1, 0, s>>>(y);\n  work(x, y);\n  return cudaDeviceSynchronize();\n}\n"
    )
    text = compile_file(str(program), Options()).text.decode()
    work = text[text.index("void work") : text.index("int main")]
    assert "kesco->stream[1]" in work
    assert "not seen here come first" in work[: work.index("k1<<<")]


HIDDEN = {
    "_Pragma": '#define PAR _Pragma("omp parallel for")\n'
    "static void all(float* p) { PAR for (int i = 0; i < 2; ++i) k1<<<1, 1>>>(p); }\n",
    "coroutine": "#include <coroutine>\nstruct Task {\n  struct promise_type {\n"
    "    Task get_return_object() { return {}; }\n"
    "    std::suspend_never initial_suspend() { return {}; }\n    void return_void() {}\n"
    "    std::suspend_never final_suspend() noexcept { return {}; }\n    void unhandled_exception() {}\n  };\n};\n"
    "static Task all(float* p) { k1<<<1, 1>>>(p); co_return; }\n",
}


@pytest.mark.parametrize("text", HIDDEN.values(), ids=list(HIDDEN))
def test_a_file_whose_control_flow_is_hidden_stays_serial(tmp_path: Path, text: str) -> None:
    program = tmp_path / "hidden.cu"
    main = HEAD.removeprefix(KERNELS)
    launches = "  k1<<<1, 1>>>(x);\n  k2<<<1, 1>>>(y);\n  all(x);\n"
    program.write_text(f"{KERNELS}{text}{main}{launches}  return cudaDeviceSynchronize();\n}}\n")
    result = compile_file(str(program), Options(flags=("-std=c++20",), force=True))
    assert not any(one.rewritten for one in result.functions)


@pytest.mark.usefixtures("text_alone")  # the IR's reading sees the cudaFree in it
def test_what_a_destructor_of_cudas_libraries_frees_is_no_longer_worked_on(tmp_path: Path) -> None:
    """``thrust::device_vector`` may give its memory to an allocator whose memory is used again at once."""
    header = tmp_path / "cuda" / "include" / "library.h"
    header.parent.mkdir(parents=True)
    (header.parent / "cuda_runtime_api.h").touch()  # which makes it a toolkit's
    header.write_text(
        "#pragma once\n#pragma GCC system_header\nnamespace thrust {\nstruct vector {\n  float* p;\n  ~vector();\n};\n"
        "vector::~vector() { cudaFree(p); }\n}  // namespace thrust\n"
    )
    program = tmp_path / "vector.cu"
    inner = "  {\n    thrust::vector v{x};\n    k1<<<1, 1>>>(v.p);\n    k1<<<1, 1>>>(x);\n"
    inner += "    k2<<<1, 1>>>(y);\n  }\n"
    program.write_text(f'#include "{header}"\n{HEAD}{inner}  k1<<<1, 1>>>(y);\n  return cudaDeviceSynchronize();\n}}\n')
    text = compile_file(str(program), Options(force=True)).text.decode()
    assert "kesco: ~vector sees all of this as done" in text


@pytest.mark.parametrize(
    ("made", "ends"),
    [
        ("std::shared_ptr<void> s = made();", "s.reset();"),
        ("std::unique_ptr<void, void (*)(void*)> s(x, [](void* p) { cudaFree(p); });", "s.reset();"),
        ("std::any s = made();", "s.reset();"),
        ("std::vector<std::any>& s = kept;", "s.pop_back();"),
        ("std::optional<std::shared_ptr<void>> s = made();", "s.reset();"),
        ("std::vector<float> s(8);", ""),
    ],
)
def test_what_the_library_destroys_may_run_any_code(tmp_path: Path, made: str, ends: str) -> None:
    """A deleter or a value of ``std::any`` may show how far the device is: all before it is waited for, as it was."""
    program = tmp_path / "deleter.cu"
    headers = "".join(f"#include <{name}>\n" for name in ("any", "memory", "optional", "vector"))
    outside = "std::shared_ptr<void> made();\nextern std::vector<std::any> kept;\n"
    end = ends or "s.pop_back();"
    work = "  k1<<<1, 1>>>(x);\n  k2<<<1, 1>>>(y);\n  cudaDeviceSynchronize();\n"
    inner = f"  {made}\n  cudaDeviceSynchronize();\n{work}  {end}\n{work}  cudaFree(x), cudaFree(y);\n}}\n"
    program.write_text(f"{headers}{outside}{HEAD}{inner}")
    text = compile_file(str(program), Options(flags=("-std=c++20",), force=True)).text.decode()
    assert (f"not needed here: cudaDeviceSynchronize();\n  {end}" in text) == (not ends)


@pytest.mark.parametrize("given", ["auto [k1, rest] = Table{k2, 1};", "Kernel k1(int);"])
@pytest.mark.usefixtures("text_alone")  # the IR's reading knows which kernel it is
def test_a_value_that_has_the_name_of_a_kernel_is_another_one(tmp_path: Path, given: str) -> None:
    """A structured binding, or a function that returns a kernel's address: whose effects are those of the kernel?"""
    program = tmp_path / "named.cu"
    types = "using Kernel = void (*)(float*);\nstruct Table { Kernel first; int second; };\n"
    called = "k1" if "auto" in given else "k1(3)"
    inner = f"  {given}\n  {called}<<<1, 1>>>(x);\n  k2<<<1, 1>>>(y);\n"
    program.write_text(f"{types}{HEAD}{inner}  return cudaDeviceSynchronize();\n}}\n")
    result = compile_file(str(program), Options(force=True))
    assert not any(one.dfg.graph and one.schedule.streams > 1 for one in result.functions), result.text.decode()


@pytest.mark.parametrize(
    "name", ["cudaError_t kesco_copy(float*, const float*, unsigned long, cudaMemcpyKind, cudaStream_t, bool = false);",
             "struct KescoStreams;", "namespace inner { struct KescoRelay; }"],
)  # fmt: skip
def test_names_in_a_header_that_would_be_inserted(tmp_path: Path, name: str) -> None:
    """An overload that fits better would be called in place of what the prologue defines."""
    (tmp_path / "names.h").write_text(f"// KescoMemory is only mentioned\n{name}\n")
    program = tmp_path / "program.cu"
    work = f"{HEAD}  k1<<<1, 1>>>(x);\n  k2<<<1, 1>>>(y);\n  return cudaDeviceSynchronize();\n}}\n"
    program.write_text(f'#include "names.h"\n{work}')
    result = compile_file(str(program), Options(force=True))
    assert not any(one.rewritten for one in result.functions)
    assert any("a header has a name of its own" in d.message for d in result.diagnostics)
    (tmp_path / "names.h").write_text("// KescoMemory is only mentioned\n")
    assert any(one.rewritten for one in compile_file(str(program), Options(force=True)).functions)


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("__attribute__((weak)) void hook(float*) {}", True),
        ("[[gnu::weak]] void hook(float*) {}", True),
        ("#define HOOK __attribute__((noinline, __weak__))\nHOOK void hook(float*) {}", True),
        ('#pragma weak hook\nextern "C" void hook(float*) {}', True),
        ("__attribute__((noinline)) void hook(float*) {}", False),
        ("static bool both(int weak) { return !(weak); }\nvoid hook(float*) {}", False),
    ],
)
def test_a_weak_function_may_be_another_files(tmp_path: Path, text: str, weak: bool) -> None:
    program = tmp_path / "weak.cu"
    work = "  k1<<<1, 1>>>(x);\n  k1<<<1, 1>>>(y);\n  hook(x);\n  k2<<<1, 1>>>(y);\n"
    work += "  return cudaDeviceSynchronize();\n}\n"
    program.write_text(f"{text}\n{HEAD}{work}")
    done = compile_file(str(program), Options(force=True)).text.decode()
    assert ("hook sees all of this as done" in done) == weak
    assert "k2<<<1, 1, 0, kesco->stream" in done


@pytest.mark.parametrize("weak", ["touch", "k1"])
def test_weak_code_of_the_device_may_be_another_files(tmp_path: Path, weak: str) -> None:
    """With relocatable device code the linker may take another file's function, or another file's kernel."""
    program = tmp_path / "weak.cu"
    attribute = {name: "__attribute__((weak)) " if name == weak else "" for name in ("touch", "k1")}
    program.write_text(
        f"{attribute['touch']}__device__ __noinline__ void touch(float* p) {{ *p += 1; }}\n"
        f"{attribute['k1']}__global__ void k1(float* p) {{ touch(p); }}\n__global__ void k2(float* p) {{ *p += 2; }}\n"
        "int main() {\n  float *x, *y;\n  cudaMalloc(&x, 4), cudaMalloc(&y, 4);\n  k1<<<1, 1>>>(x);\n"
        "  k2<<<1, 1>>>(y);\n  return cudaDeviceSynchronize();\n}\n"
    )
    result = compile_file(str(program), Options(force=True))
    assert not any(one.schedule.streams > 1 for one in result.functions if one.dfg.graph), result.text.decode()


def test_names_in_a_header_that_the_hooks_have(tmp_path: Path) -> None:
    (tmp_path / "names.h").write_text("void kesco_after(int);\n")
    program = tmp_path / "program.cu"
    program.write_text(f'#include "names.h"\n{HEAD}  k1<<<1, 1>>>(x);\n  return cudaDeviceSynchronize();\n}}\n')
    result = compile_file(str(program), Options(fikit=True))
    assert b"kesco_after(0)" not in result.text
    assert any("names that the hooks need" in d.message for d in result.diagnostics)
    (tmp_path / "names.h").write_text("")
    assert b"kesco_after(0)" in compile_file(str(program), Options(fikit=True)).text


def test_memory_that_is_given_back_on_the_default_stream_may_be_handed_out_again(tmp_path: Path) -> None:
    """The allocation behind it may be the same memory, with nothing for the device to do in between."""
    program, written, broken = tmp_path / "program.cu", tmp_path / "written.cu", tmp_path / "broken.cu"
    program.write_text(
        f"{KERNELS}int main() {{\n  float *x, *y, *z;\n  cudaMalloc(&z, 256);\n  cudaMallocAsync(&x, 256, 0);\n"
        "  k1<<<1, 1>>>(x);\n  k1<<<1, 1>>>(z);\n  cudaFreeAsync(x, 0);\n  cudaMallocAsync(&y, 256, 0);\n"
        "  k2<<<1, 1>>>(z);\n  k2<<<1, 1>>>(y);\n  return cudaDeviceSynchronize();\n}\n"
    )
    text = compile_file(str(program), Options(force=True)).text.decode()
    joins = [line for line in text.splitlines() if "cudaStreamWaitEvent(cudaStreamLegacy" in line]
    assert [line.rpartition("kesco: ")[2].partition(" ")[0] for line in joins] == ["cudaFreeAsync"] * 2
    assert text.index(joins[-1]) < text.index("cudaFreeAsync(x, 0)") < text.index("k2<<<1, 1, 0, kesco->stream")
    written.write_text(text)
    assert not any(one.problems for one in verify_files(str(program), str(written), Options()))
    broken.write_text(text.replace(joins[0], ""))
    assert any(one.problems for one in verify_files(str(program), str(broken), Options()))
