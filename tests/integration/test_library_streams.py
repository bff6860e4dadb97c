"""Calls of CUDA's libraries on streams: the proof sees which stream a handle has, and who else may use the handle."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.emit.handles import SHARES
from kesco.errors import VerificationError
from kesco.frontend.library_table import library_calls, shares
from kesco.ir.flow import Region, Role, Site
from kesco.options import Options
from kesco.proving import verify_files

HEADER = Path(__file__).parent.parent / "golden" / "library_calls" / "cuda" / "include" / "libraries.h"
HEAD = f'#include "{HEADER}"\n__global__ void k(float* x) {{ x[0] += 1; }}\nvoid unseen();\n'
MEMORY = (
    "  float *x, *y, *z, *w, a = 2;\n  cudaMalloc(&x, 4), cudaMalloc(&y, 4), cudaMalloc(&z, 4), cudaMalloc(&w, 4);\n"
)
HANDLES = "  cublasHandle_t g, h;\n  cublasCreate(&g);\n  cublasCreate(&h);\n"
ENDS = "  cublasDestroy(g);\n  cublasDestroy(h);\n"
PAIR = "  cublasSaxpy(g, 1, &a, x, 1, y, 1);\n  cublasSaxpy(h, 1, &a, z, 1, w, 1);\n"
KERNELS = "  k<<<1, 1>>>(y);\n  k<<<1, 1>>>(w);\n"

pytestmark = pytest.mark.usefixtures("toolchain")


def compiled(
    folder: Path, main: str, before: str = "", *, ends: str = ENDS, options: Options | None = None
) -> Compiled:
    program = folder / "program.cu"
    program.write_text(f"{HEAD}{before}int main(int count, char**) {{\n{MEMORY}{HANDLES}{main}{ends}  return 0;\n}}\n")
    return compile_and_keep(program, options)


def calls(region: Region) -> list[Site]:
    return [s for s in region.sites if s.label.startswith(("cublasS", "cufftE", "curandG", "cusparseS", "cusolverDnS"))]


def roles(done: Compiled, name: str = "main") -> list[Role]:
    return [s.role for s in calls(done.function(name).region)]


def edges(done: Compiled) -> set[tuple[str, str]]:
    dfg = done.function("main").dfg
    return {(dfg.region.sites[a].label, dfg.region.sites[b].label) for a, b in dfg.graph.edges}


def set_streams(done: Compiled) -> list[str]:
    """What sets streams in the text: the handle, and the stream by its number, or 0."""
    text = done.result.text.decode()
    found = re.findall(r"(?:SetStream|kesco_blas)\(([\w.\[\]]+), (?:kesco->stream\[(\w+)\]|(0))\)", text)
    return [f"{handle} {stream or 'default'}" for handle, stream, _ in found]


# ---- what moves


def test_two_handles_overlap(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR + KERNELS)
    assert roles(done) == [Role.MOVABLE] * 2
    assert edges(done) == {("cublasSaxpy#1", "k#1"), ("cublasSaxpy#2", "k#2")}
    assert set_streams(done) == ["g 0", "h 1"]


def test_one_handle_of_cublas_works_on_two_streams_with_a_workspace_on_each(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR.replace("(h,", "(g,") + KERNELS)
    assert edges(done) == {("cublasSaxpy#1", "k#1"), ("cublasSaxpy#2", "k#2")}
    assert set_streams(done) == ["g 0", "g 1"]
    assert done.refuses(done.lines) == ""
    plain = "\n".join(done.lines).replace("  kesco_blas(g", "  cublasSetStream(g").split("\n")
    assert "the workspace of g" in done.refuses(plain)


def test_a_handle_that_works_in_a_call_too_has_a_workspace_of_its_own_there(tmp_path: Path) -> None:
    other = "static void work(cublasHandle_t g, float* x, float* y, float a) { cublasSaxpy(g, 1, &a, x, 1, y, 1); }\n"
    done = compiled(tmp_path, PAIR.partition("\n")[0] + "\n  work(g, x, w, a);\n" + KERNELS, other)
    assert set_streams(done) == ["g default", "g 0", "g default"]
    assert "KescoOn(kesco->stream[1]), work(g, x, w, a);" in done.result.text.decode()


def test_two_calls_with_one_plan_are_in_order(tmp_path: Path) -> None:
    plan = "  cufftHandle p;\n  cufftPlan1d(&p, 1, 0x29, 1);\n"
    two = "".join(f"  cufftExecC2C(p, (float2*){one}, (float2*){one}, 1);\n" for one in "yw")
    assert ("cufftExecC2C#1", "cufftExecC2C#2") in edges(compiled(tmp_path, plan + two + KERNELS))


def test_two_handles_with_one_vector_are_in_order(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR.replace("z, 1, w", "y, 1, w") + KERNELS)
    assert ("cublasSaxpy#1", "cublasSaxpy#2") in edges(done)


def test_a_result_for_the_host_is_a_join_and_one_for_the_device_is_not(tmp_path: Path) -> None:
    dot = "  cublasSdot(g, 1, x, 1, y, 1, {});\n" + KERNELS
    assert roles(compiled(tmp_path, PAIR + dot.format("&a"))) == [Role.MOVABLE, Role.MOVABLE, Role.JOIN]
    on_device = "  cublasSetPointerMode(g, 1);\n" + dot.format("z")
    assert roles(compiled(tmp_path, on_device + KERNELS)) == [Role.MOVABLE]
    maybe = "  if (count > 2) cublasSetPointerMode(g, 1);\n" + dot.format("z")
    assert roles(compiled(tmp_path, maybe + KERNELS)) == [Role.MOVABLE]  # it may write to the device in any case


def test_a_number_on_the_device_is_read_there(tmp_path: Path) -> None:
    text = "  cublasSetPointerMode(g, 1);\n  k<<<1, 1>>>(z);\n  cublasSaxpy(g, 1, z, x, 1, y, 1);\n  k<<<1, 1>>>(w);\n"
    assert edges(compiled(tmp_path, text)) == {("k#1", "cublasSaxpy")}


def test_a_number_on_the_host_is_read_before_the_call_comes_back(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR + "  a = 3;\n" + PAIR + KERNELS)
    assert roles(done) == [Role.MOVABLE] * 4
    main = done.function("main")
    assert all(main.region.sites[join.target].label.startswith("cublasDestroy") for join in main.plan.joins)


def test_the_stream_is_not_set_twice_for_calls_in_a_row(tmp_path: Path) -> None:
    again = "  cublasSaxpy(g, 1, &a, x, 1, y, 1);\n"
    assert set_streams(compiled(tmp_path, again + PAIR + KERNELS)) == ["g 0", "h 1"]


@pytest.mark.parametrize("way", ["", "  if (count > 2) unseen();\n", "  cublasGetStream(g, nullptr);\n"])
def test_the_default_stream_is_put_back_where_somebody_could_see_the_difference(tmp_path: Path, way: str) -> None:
    done = compiled(tmp_path, PAIR + KERNELS + way, ends=ENDS if way else "")
    assert "g default" in set_streams(done)


def test_the_example(tmp_path: Path) -> None:
    example = Path(__file__).parents[2] / "examples/13_libraries/layers.cu"
    done = compile_and_keep(example, Options(flags=("-I", str(HEADER.parent))))
    assert set_streams(done) == ["blas 0", "blas 1"]


HEAD_OF_WORK = "static void work(cublasHandle_t g, cublasHandle_t h, float* x, float* y, float* z, float* w) {{\n"
WORK = HEAD_OF_WORK + "  float a = 2;\n{}}}\n"


def test_a_function_of_this_file_is_right_for_all_handles_that_it_is_given(tmp_path: Path) -> None:
    again = PAIR + KERNELS + "  cublasSaxpy(h, 1, &a, z, 1, w, 1);\n"
    text = "  work(g, h, x, y, z, w);\n  work(h, {}, x, y, z, w);\n"
    apart = compiled(tmp_path, text.format("g"), WORK.format(again)).function("work")
    one = compiled(tmp_path, text.format("h"), WORK.format(again)).function("work")
    ordered = [
        {(r.dfg.region.sites[a].label, r.dfg.region.sites[b].label) for a, b in r.dfg.graph.edges} for r in (apart, one)
    ]
    assert not any(("cublasSaxpy#1", "cublasSaxpy#2") in edges for edges in ordered)


def test_a_stream_is_set_again_where_another_name_may_be_the_same_handle(tmp_path: Path) -> None:
    last = "  cublasSaxpy(h, 1, &a, z, 1, w, 1);\n"
    done = compiled(
        tmp_path, "  work(g, h, x, y, z, w);\n  work(h, h, x, y, z, w);\n", WORK.format(last + PAIR + KERNELS + last)
    )
    assert done.refuses(done.lines) == ""
    assert set_streams(done) == ["h 0", "h default", "g 1", "g default", "h 0", "h default"]


# ---- what does not


@pytest.mark.parametrize(
    "main",
    [
        "  cudaStream_t s;\n  cudaStreamCreate(&s);\n  cublasSetStream(g, s);\n  cublasSetStream(h, s);\n",
        "  cublasSetWorkspace(g, x, 4);\n  cublasSetWorkspace(h, x, 4);\n",
        "  kept[0] = g;\n  kept[1] = h;\n  unseen();\n",
        "  given(g);\n  given(h);\n",
        "  if (count > 2) g = h = kept[0];\n",
        "  std::thread t([&] { cublasSaxpy(g, 1, &a, x, 1, y, 1), cublasSaxpy(h, 1, &a, x, 1, y, 1); });\n",
    ],
    ids=["a stream of the program's", "a workspace", "kept", "given", "another", "a thread"],
)
def test_a_handle_that_is_not_known_stays(tmp_path: Path, main: str) -> None:
    done = compiled(
        tmp_path,
        main + PAIR + KERNELS,
        "#include <thread>\ncublasHandle_t kept[2];\nvoid given(cublasHandle_t handle);\n",
    )
    assert not set_streams(done)
    assert Role.MOVABLE not in roles(done)


@pytest.mark.parametrize(
    "call",
    [
        "  if (cublasSaxpy(g, 1, &a, x, 1, y, 1) != CUBLAS_STATUS_SUCCESS) return 1;\n",
        "  [&] { cublasSaxpy(g, 1, &a, x, 1, y, 1); }();\n",
        "  cublasSaxpy(count ? g : h, 1, &a, x, 1, y, 1);\n",
    ],
    ids=["condition", "lambda", "one of two"],
)
def test_a_call_in_front_of_which_nothing_can_be_said_stays(tmp_path: Path, call: str) -> None:
    done = compiled(tmp_path, KERNELS + call + KERNELS + "  cublasSaxpy(h, 1, &a, z, 1, w, 1);\n")
    assert done.refuses(done.lines) == ""
    assert any(line.startswith("h ") for line in set_streams(done))
    assert not any(line.startswith("g ") for line in set_streams(done))


@pytest.mark.parametrize(
    "options",
    [Options(emit="graph"), Options(prefetch=True), Options(memory="reuse")],
    ids=["graph", "prefetch", "reuse"],
)
def test_no_call_moves_with_what_only_the_text_is_read_for(tmp_path: Path, options: Options) -> None:
    assert not set_streams(compiled(tmp_path, PAIR + KERNELS, options=options))


def test_a_handle_that_came_in_stays(tmp_path: Path) -> None:
    work = "void work(cublasHandle_t g, cublasHandle_t h) {\n" + MEMORY + PAIR + KERNELS + "}\n"
    assert Role.MOVABLE not in roles(compiled(tmp_path, "  unseen();\n  work(g, h);\n", work), "work")
    assert Role.MOVABLE in roles(compiled(tmp_path, "  work(g, h);\n", work), "work")  # nobody else calls it


def test_a_function_with_a_librarys_name_is_opaque(tmp_path: Path) -> None:
    program = tmp_path / "program.cu"
    text = (HEADER.read_text().replace("#pragma GCC system_header", "") + HEAD.partition("\n")[2]).replace(
        "#pragma once", ""
    )
    program.write_text(f"{text}int main() {{\n{MEMORY}{HANDLES}{PAIR}{KERNELS}{ENDS}}}\n")
    done = compile_and_keep(program)
    assert not set_streams(done)
    assert all(s.foreign for region in done.session.of_ir() for s in calls(region))


# ---- the proof


MORE = "  cudaDeviceSynchronize();\n" + PAIR + "  unseen();\n" + PAIR + KERNELS


def changed(done: Compiled, old: str, new: str) -> list[str]:
    lines = "\n".join(done.lines)
    assert old in lines
    return lines.replace(old, new, 1).split("\n")


def test_the_proof_accepts_what_was_written(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR + KERNELS + MORE)
    assert set_streams(done)
    assert done.refuses(done.lines) == ""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  cublasSetStream(g, kesco->stream[0]);", "  cublasSetStream(g, kesco->stream[1]);"),
        ("  cublasSetStream(g, kesco->stream[0]);", "  if (count > 2) cublasSetStream(g, kesco->stream[0]);"),
        ("  k<<<1, 1, 0, kesco->stream[0]>>>(y);", "  k<<<1, 1, 0, kesco->stream[1]>>>(y);"),
    ],
    ids=[
        "another stream",
        "on some paths",
        "the kernel's stream",
    ],
)
def test_the_proof_refuses_a_wrong_stream(tmp_path: Path, old: str, new: str) -> None:
    done = compiled(tmp_path, PAIR + KERNELS + MORE)
    assert done.refuses(changed(done, old, new))


def test_the_proof_refuses_a_call_for_the_host_on_a_stream(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR + KERNELS + "  cublasSdot(g, 1, x, 1, y, 1, &a);\n" + PAIR)
    assert "cublasSdot" in done.refuses(changed(done, "  cublasSetStream(g, 0);", ""))


@pytest.mark.parametrize(
    "new", ["", "  if (count > 2) cublasSetStream(g, 0);"], ids=["not put back", "put back at times"]
)
def test_the_proof_refuses_a_handle_that_keeps_a_stream_of_kescos(tmp_path: Path, new: str) -> None:
    kept = "static cublasHandle_t kept;\n"  # which code at exit may look at
    done = compiled(tmp_path, "  kept = g;\n" + PAIR + KERNELS + "  unseen();\n", kept, ends="")
    assert done.refuses(changed(done, "  cublasSetStream(g, 0);", new))


def test_the_proof_refuses_a_stream_of_another_set(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR + KERNELS)
    again = "  kesco = &kesco_streams();\n"
    call = "  cublasSaxpy(g, 1, &a, x, 1, y, 1);"
    assert done.refuses(changed(done, call, again + call))


def test_the_proof_refuses_a_stream_in_a_function_that_was_not_rewritten(tmp_path: Path) -> None:
    other = (
        "static void work(cublasHandle_t g, float* x, float* y, float a) {\n  cublasSaxpy(g, 1, &a, x, 1, y, 1);\n"
        "  unseen();\n}\n"
    )
    done = compiled(tmp_path, PAIR + KERNELS + "  work(g, x, y, a);\n", other)
    assert "work" in done.refuses(changed(done, "  cublasSetStream(g, 0);", ""))


def test_a_pair_of_files_is_proven(tmp_path: Path) -> None:
    done = compiled(tmp_path, PAIR + KERNELS + MORE)
    serial, written = tmp_path / "program.cu", tmp_path / "written.cu"
    written.write_bytes(done.result.text)
    assert not [p for verdict in verify_files(str(serial), str(written), Options()) for p in verdict.problems]
    wrong = changed(done, "  cublasSetStream(g, kesco->stream[0]);", "  cublasSetStream(g, kesco->stream[1]);")
    written.write_text("\n".join(wrong))
    assert [p for verdict in verify_files(str(serial), str(written), Options()) for p in verdict.problems]


def test_nothing_is_written_that_is_not_proven(tmp_path: Path) -> None:
    try:
        compiled(
            tmp_path, "  for (int i = 0; i < count; ++i) {\n" + PAIR + KERNELS + "    if (i == 3) unseen();\n  }\n"
        )
    except VerificationError as error:
        pytest.fail(str(error))


# ---- what real programs have around such calls


def test_a_macro_that_returns_where_a_call_of_a_library_failed_costs_no_concurrency(tmp_path: Path) -> None:
    macro = "#define BLAS(call) do { cublasStatus_t s = (call); if (s != CUBLAS_STATUS_SUCCESS) return 1; } while (0)\n"
    done = compiled(tmp_path, KERNELS + "  BLAS(cublasSaxpy(g, 1, &a, x, 1, y, 1));\n" + KERNELS, macro)
    assert done.function("main").rewritten


def test_an_error_message_does_not_make_the_order_of_evaluation_matter(tmp_path: Path) -> None:
    check = (
        "struct Pair {\n  float x, y;\n};\n"
        "static Pair both(Pair p) {\n  Pair q;\n  q.x = p.y;\n  q.y = p.x;\n  return q;\n}\n"
        "static Pair sum(Pair p, Pair q) { return q.x > p.x ? p : q; }\n"
        "static const char* name_of(cudaError_t e) { return cudaGetErrorName(e); }\n"
        "template <class T> void check(T e) {\n"
        '  if (e) std::fprintf(stderr, "%s", name_of((cudaError_t)e)), std::exit(1);\n}\n'
        "void more(Pair* p) { p[0] = sum(p[1], both(p[2])); }\n"
    )
    head = "#include <cstdio>\n#include <cstdlib>\n"
    done = compiled(tmp_path, "  check(cublasSaxpy(h, 1, &a, z, 1, w, 1));\n" + PAIR + KERNELS, head + check)
    assert set_streams(done)


def test_an_exception_before_any_launch_keeps_nothing_serial(tmp_path: Path) -> None:
    work = (
        "#include <vector>\nvoid work(std::vector<float>& v) {\n" + MEMORY + HANDLES + "  v.assign(9, 1.0f);\n"
        "  cublasSaxpy(g, 1, v.data(), x, 1, y, 1);\n  cublasSaxpy(h, 1, v.data(), z, 1, w, 1);\n"
        + KERNELS
        + ENDS
        + "}\n"
    )
    assert roles(compiled(tmp_path, PAIR + "  unseen();\n", work), "work") == [Role.MOVABLE] * 2


# ---- one handle on several streams


ONE = PAIR.replace("(h,", "(g,")


def test_a_program_that_asks_how_much_memory_is_left_keeps_a_handle_on_one_stream(tmp_path: Path) -> None:
    asks = "  size_t left, all;\n  cudaMemGetInfo(&left, &all);\n"
    done = compiled(tmp_path, asks + ONE + KERNELS)
    assert ("cublasSaxpy#1", "cublasSaxpy#2") in edges(done)
    assert "kesco_blas" not in done.result.text.decode()


def test_calls_of_a_library_are_scheduled_without_a_kernel_in_the_file(tmp_path: Path) -> None:
    program = tmp_path / "program.cu"
    head = HEAD.replace("__global__ void k(float* x) { x[0] += 1; }\n", "")
    program.write_text(f"{head}int main(int count, char**) {{\n{MEMORY}{HANDLES}{ONE}{ENDS}  return 0;\n}}\n")
    assert set_streams(compile_and_keep(program, Options(force=True))) == ["g 0", "g 1"]


def test_what_is_written_and_what_is_analysed_agree_on_who_shares() -> None:
    assert {name for name in library_calls() if shares(name)} == {*SHARES}


RETURNS = "#define BLAS(call) do { cublasStatus_t s = (call); if (s != CUBLAS_STATUS_SUCCESS) return 1; } while (0)\n"
CHECKED = (
    "  for (int i = 0; i < 9; ++i) {\n    BLAS(cublasSaxpy(g, 1, &a, x, 1, y, 1));\n"
    "    BLAS(cublasSaxpy(g, 1, &a, z, 1, w, 1));\n  }\n"
)


def test_handles_of_mains_own_are_nobodys_behind_it(tmp_path: Path) -> None:
    done = compiled(tmp_path, CHECKED + KERNELS, RETURNS)
    assert set_streams(done) == ["g 0", "g 1"]
    assert not done.result.diagnostics


def test_code_at_exit_may_use_the_handles_that_it_knows(tmp_path: Path) -> None:
    last = "cublasHandle_t kept;\nfloat* last;\nstruct Last {\n  ~Last() {\n    float a = 2;\n"
    last += "    cublasSaxpy(kept, 1, &a, last, 1, last, 1);\n  }\n} at_exit;\n"
    knows = "  kept = g, last = y;\n"
    assert not set_streams(compiled(tmp_path, knows + CHECKED + KERNELS, RETURNS + last))


SOLVER = """\
struct Failed {};
static void check(cublasStatus_t s) { if (s != CUBLAS_STATUS_SUCCESS) throw Failed(); }
class Solver {
 public:
  Solver(float* x, float* y, float* z) : x_(x), y_(y), z_(z) { check(cublasCreate(&handle_)); }
  ~Solver() { END cublasDestroy(handle_); }
  void step() { add(y_); add(z_); }

 private:
  void add(float* to) {
    const float a = 2;
    check(cublasSaxpy(handle_, 1, &a, x_, 1, to, 1));
    k<<<1, 1>>>(to);
  }
  float *x_, *y_, *z_;
  cublasHandle_t handle_;
};
"""


def solved(folder: Path, end: str) -> Compiled:
    main = "  try {\n    Solver solver(x, y, z);\n    for (int i = 0; i < count; ++i) solver.step();\n"
    main += "  } catch (Failed&) {\n    return 1;\n  }\n"
    return compiled(folder, main, SOLVER.replace("END", end))


def test_a_handle_may_be_destroyed_on_any_stream(tmp_path: Path) -> None:
    """Where a check throws, the destructor finds the handle on the stream of the call that failed."""
    done = solved(tmp_path, "")
    assert "KescoOn(kesco->stream[1]), add(z_);" in done.result.text.decode()
    assert "K221" not in {one.code for one in done.result.diagnostics}


def test_a_destructor_that_works_with_a_handle_finds_it_on_the_default_stream(tmp_path: Path) -> None:
    done = solved(tmp_path, "float a = 2; cublasSaxpy(handle_, 1, &a, x_, 1, y_, 1);")
    assert "kesco_blas" not in done.result.text.decode()


def test_a_handle_that_a_failed_call_left_on_a_stream_is_worked_with_by_nobody_else(tmp_path: Path) -> None:
    solver = SOLVER.replace("END", "").replace(" private:", " public:")
    main = (
        "  {\n    Solver solver(x, y, z);\n    for (int i = 0; i < count; ++i) {\n      try {\n        solver.step();\n"
    )
    main += "      } catch (Failed&) {\n      }\n      cublasSaxpy(solver.handle_, 1, &a, y, 1, y, 1);\n    }\n  }\n"
    assert "kesco_blas" not in compiled(tmp_path, main, solver).result.text.decode()


@pytest.mark.parametrize("end", ["exit(0);", "if (count > 3) exit(1);"])
def test_code_at_exit_may_use_the_handles_that_it_knows_where_the_process_ends(tmp_path: Path, end: str) -> None:
    last = "cublasHandle_t kept;\nfloat* last;\nstruct Last {\n  ~Last() {\n    float a = 2;\n"
    last += "    cublasSaxpy(kept, 1, &a, last, 1, last, 1);\n  }\n} at_exit;\n"
    main = "  kept = g, last = y;\n" + PAIR.replace("(h,", "(g,") + f"  {end}\n" + KERNELS
    done = compiled(tmp_path, main, "#include <cstdlib>\n" + last)
    assert "kesco_blas" not in done.result.text.decode()
    assert set_streams(compiled(tmp_path, main, "#include <cstdlib>\n" + last.replace("cublasSaxpy", "//")))
