"""Programs whose text hides something: macros, other compilers, code that no call names, threads, very deep nesting."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import read_host_side

from kesco import pipeline
from kesco.emit.prologue import Parts, is_genuine, prologue
from kesco.errors import InputError
from kesco.options import Options
from kesco.pipeline import Compilation, FunctionResult, compile_file
from kesco.toolchain.compile import check_compiles
from kesco.toolchain.model import Toolchain

pytestmark = pytest.mark.usefixtures("toolchain")

KERNELS = """\
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] -= 2; }
"""
BUFFERS = "float *x, *y, *z; cudaMalloc(&x, 4096); cudaMalloc(&y, 4096); cudaMalloc(&z, 4096);\n"
LAUNCHES = "  k1<<<1, 64>>>(x); k2<<<1, 64>>>(y); k3<<<1, 64>>>(z);\n  cudaDeviceSynchronize();\n"
PLAIN = f"int main() {{ {BUFFERS}{LAUNCHES}}}\n"
SWAP = "float* t = cur; cur = nxt; nxt = t;"
GLOBALS = "static float *cur, *nxt;\n"


@pytest.fixture(autouse=True)
def _text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """These are about the reading of the text: the IR's knows of some that nobody can call what is not in the file."""
    monkeypatch.setattr("kesco.analysis.host_regions.better.hopeful", lambda *_: False)


_FEATURES = ("__has_builtin(", "__cpp_exceptions")


def comparable(toolchain: Toolchain, condition: str) -> None:
    """Of features two versions differ, so that nothing is said where libclang is of another one than clang."""
    if toolchain.libclang_major != toolchain.clang_major and any(one in condition for one in _FEATURES):
        pytest.skip("libclang is of another version than clang: programs that ask for features stay serial")


def around(middle: str) -> str:
    """A main in which `middle` may exchange `cur` and `nxt` before kernels use them."""
    return (
        f"int main() {{ {BUFFERS}  cur = x; nxt = y;\n  {middle}\n"
        "  k1<<<1, 64>>>(cur);\n  k2<<<1, 64>>>(y);\n  k3<<<1, 64>>>(z);\n  cudaDeviceSynchronize(); }\n"
    )


def compiled(folder: Path, text: str, *flags: str, **headers: str) -> Compilation:
    for name, content in headers.items():
        (folder / f"{name}.h").write_text(content)
    path = folder / "app.cu"
    path.write_text(KERNELS + text)
    return compile_file(str(path), Options(flags=flags))


def function(result: Compilation, name: str = "main") -> FunctionResult:
    return next(f for f in result.functions if f.region.function == name)


def ordered(one: FunctionResult, first: str, second: str) -> bool:
    """Whether the second operation is behind the first, or nothing was moved at all."""
    sites = {s.label: s.number for s in one.region.sites}
    streams = one.schedule.as_dict()
    waits = {(w.source, w.target) for w in one.plan.waits}
    pair = sites[first], sites[second]
    return not one.rewritten or streams[pair[0]] == streams[pair[1]] or pair in waits


def test_a_plain_program_is_rewritten(tmp_path: Path) -> None:
    """What the others are compared with."""
    result = compiled(tmp_path, GLOBALS + around(""))
    assert function(result).rewritten
    assert not ordered(function(result), "k1", "k2")
    assert "push_macro" not in result.text.decode()


# ---- other compilers ------------------------------------------------------------------------------------------------


PICKED = PLAIN.replace("k1<<<1, 64>>>(x)", "k1<<<1, 64>>>(PICK(x, y))")


def choice(condition: str) -> str:
    return f"{condition}\n#define PICK(p, q) q\n#else\n#define PICK(p, q) p\n#endif\n"


@pytest.mark.parametrize(
    "condition",
    [
        "#ifdef __clang__",
        "#if defined(__NVCC__) && __CUDACC_VER_MAJOR__ >= 12",
        "#if __GNUC__ >= 7",
        "#if 1 && \\\n  defined(__clang__)",
        "#if __has_builtin(__builtin_assume)",
        "#ifdef __OPTIMIZE__",
        "#define NEW __CUDACC_VER_MAJOR__\n#if NEW > 11",
        'const char* text = "/*";\n#ifdef __clang__ // */',
    ],
)
def test_code_for_one_compiler_stays_serial(tmp_path: Path, condition: str, toolchain: Toolchain) -> None:
    """Where it is used; a macro that nobody names does nothing."""
    comparable(toolchain, condition)
    one = function(compiled(tmp_path, choice(condition) + PICKED))
    assert "may depend on the compiler" in one.left_because
    assert function(compiled(tmp_path, choice(condition) + PLAIN)).rewritten


@pytest.mark.parametrize(
    "text",
    [
        PLAIN.replace("k1<<<1, 64>>>(x)", "k1<<<1, 64>>>(__GNUC__ > 5 ? x : y)"),
        "#define OLD (VERSION < 5)\n#define VERSION __GNUC__\n"
        + PLAIN.replace("k1<<<1, 64>>>(x)", "k1<<<1, 64>>>(OLD ? x : y)"),
        PLAIN.replace("k1<<<1, 64>>>(x)", "k1<<<1, 64>>>(__GNUC_PREREQ(5, 1) ? x : y)"),
        PLAIN.replace("int main() {", "int main() {\n#ifdef __clang__\n#pragma pack(push, 1)\n#endif\n"),
        "__device__ float* other;\n__global__ void k(float* q) {\n"
        "#if defined(__CUDA_ARCH__) && defined(__clang__)\n  q = other;\n#endif\n  *q = 1;\n}\n" + PLAIN,
    ],
    ids=["value", "macros", "macro of a header", "pragma", "device"],
)
def test_what_a_compiler_says_by_its_macros_stays_serial(tmp_path: Path, text: str) -> None:
    assert "may depend on the compiler" in function(compiled(tmp_path, text)).left_because


def test_a_header_for_one_compiler_keeps_the_file_serial(tmp_path: Path) -> None:
    header, outer = choice("#ifdef __clang__"), '#include "pick.h"\n'
    for text, flags in ((outer, ()), *(("", ("-include", str(tmp_path / f"{n}.h"))) for n in ("pick", "outer"))):
        one = function(compiled(tmp_path, text + PICKED, *flags, pick=header, outer=outer))
        assert re.search(r"may depend on the compiler \(PICK, line \d, is another for nvcc", one.left_because)
    header = "#ifdef __clang__\nstatic int pick = 1;\n#endif\n"
    one = function(compiled(tmp_path, outer + PLAIN, pick=header, outer=outer))
    assert "(line 2 of pick.h is another for nvcc than for clang" in one.left_because


@pytest.mark.parametrize(
    "condition",
    ["ifdef __CUDACC__", "if defined(_WIN32) || __cplusplus > 1", "ifndef __DRIVER_TYPES_H__", "ifdef __GNUC__",
     "if defined(__GNUC__) && defined (__linux__)", "ifdef _MSC_VER", "if 0 // __clang__",
     "ifdef __DEVICE_EMULATION__", "ifndef __SCITECH_SNAP__", "if defined __SUNPRO_CC", "if __GNUC__ >= 4",
     "ifdef __SSE2__", "if defined(__GCCXML__) || defined(__CUDACC_RTC__)", "if __STDC_VERSION__ >= 199901L",
     "ifdef CURAND_H_", "ifdef __cuda_cuda_h__", "if defined(__cpp_exceptions) || defined(_GLIBCXX_ATOMIC_BUILTINS)"],
)  # fmt: skip
def test_what_compilers_agree_on_is_no_obstacle(tmp_path: Path, condition: str, toolchain: Toolchain) -> None:
    comparable(toolchain, condition)
    assert function(compiled(tmp_path, choice(f"#{condition}") + PICKED)).rewritten


@pytest.mark.parametrize("flag", ["-isystem", "-iquote", "-I"])
def test_folders_of_headers_may_stand_right_behind_their_flag(tmp_path: Path, flag: str) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "size.h").write_text("#ifndef SIZE\n#define SIZE 64\n#endif\n")
    text = '#include "size.h"\n#if SIZE > 32 && defined(__GNUC__)\n#endif\n' + PLAIN
    assert function(compiled(tmp_path, text, f"{flag}{tmp_path / 'more'}")).rewritten


def test_what_only_concerns_messages_and_constants_of_headers_is_no_obstacle(tmp_path: Path) -> None:
    text = (
        "#include <cassert>\n#include <cfloat>\n#include <cmath>\n"
        "#ifdef __clang__\n#pragma clang diagnostic push\n#else\n#pragma GCC diagnostic push\n#endif\n"
        "float most() { assert(FLT_MAX > 1 && __func__[0]); return NAN; }\n"
    )
    assert function(compiled(tmp_path, text + PLAIN)).rewritten


def test_what_the_hosts_compiler_only_warns_of_is_no_obstacle(tmp_path: Path) -> None:
    text = PLAIN.replace("int main", "int sum(int n) {\n  register int all = n;\n  return all;\n}\nint main", 1)
    assert text != PLAIN and function(compiled(tmp_path, text)).rewritten


# ---- macros ---------------------------------------------------------------------------------------------------------

MACROS = {
    "minimum": "#define min(a, b) ((a) < (b) ? (a) : (b))\n#define max(a, b) ((a) > (b) ? (a) : (b))\n",
    "words of the prologue": "".join(f"#define {w} 5\n" for w in "count made found all ok limit guard Query".split()),
    "letters": "#define n 1000\n#define i 3\n#define s 4\n#define T float\n#define P 7\n",
    "within a comment": "/*\n#define lock 3\n*/\n",
}


@pytest.mark.parametrize("macros", MACROS.values(), ids=MACROS)
def test_macros_do_not_change_the_prologue(tmp_path: Path, toolchain: Toolchain, macros: str) -> None:
    result = compiled(tmp_path, macros + PLAIN)
    assert function(result).rewritten
    compiles(tmp_path, toolchain, result)


@pytest.mark.parametrize("compiler", ["clang", "nvcc"])
def test_macros_of_headers_and_flags(tmp_path: Path, toolchain: Toolchain, compiler: str) -> None:
    if compiler == "nvcc" and toolchain.nvcc is None:
        pytest.skip("no nvcc")
    text = "void f(float* __restrict__ x, float* __restrict__ y, float* __restrict__ z) {\n" + LAUNCHES[:-27] + "}\n"
    result = compiled(tmp_path, '#include "m.h"\n' + text, "-Dwanted=4", m=MACROS["minimum"] + "#define s 4\n")
    assert "for (int kesco_s = 0; kesco_s < 3; ++kesco_s)" in result.text.decode()
    (tmp_path / "out.cu").write_bytes(result.text)
    finished = check_compiles(toolchain, tmp_path / "out.cu", ("-Dwanted=4",), compiler)  # type: ignore[arg-type]
    assert finished.returncode == 0, finished.stderr


def compiles(folder: Path, toolchain: Toolchain, result: Compilation) -> None:
    (folder / "out.cu").write_bytes(result.text)
    finished = read_host_side(toolchain, folder / "out.cu")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("name", ["stream", "cudaStreamCreate", "KescoStreams", "const"])
def test_macros_with_names_of_inserted_lines(tmp_path: Path, toolchain: Toolchain, name: str) -> None:
    result = compiled(tmp_path, f"#define {name} {name}_\n{PLAIN}")
    if name == "cudaStreamCreate":  # it stands in the prologue only
        assert function(result).rewritten
        compiles(tmp_path, toolchain, result)
    else:
        assert f"the macro '{name}'" in function(result).left_because


def test_a_macro_that_changes_the_prologue_is_not_genuine() -> None:
    text = prologue(2, 1, Parts())
    assert is_genuine(text.encode())
    assert is_genuine(prologue(2, 1, Parts(copies=True, sends=True)).encode())
    assert is_genuine(prologue(2, 1, Parts(copies=True, fetches=True)).encode())
    assert is_genuine(prologue(2, 1, Parts(copies=True, sends=True, fetches=True, ranks=(0, 1))).encode())
    assert not is_genuine(f"#define cudaStreamCreate(s) evil(s)\n{text}".encode())
    mended = prologue(2, 1, Parts(), macros=("cudaStreamCreate",))
    assert is_genuine(f"#define cudaStreamCreate(s) evil(s)\n{mended}".encode())
    assert not is_genuine(mended.replace("#undef cudaStreamCreate", "#define cudaStreamCreate(s) evil(s)").encode())


def test_two_locals_of_one_name_from_one_macro(tmp_path: Path) -> None:
    declare = "#define D(v) float* cur = v;\n"
    for macro in ("{ float* cur = a; { float* cur = b; (void)cur; } stmt; }", "{ D(a) { D(b) (void)cur; } stmt; }"):
        body = "  M(x, y, (k1<<<1, 64>>>(cur)))\n  k2<<<1, 64>>>(x);\n  k3<<<1, 64>>>(z);\n"
        text = f"{declare}#define M(a, b, stmt) {macro}\nint main() {{ {BUFFERS}{body}}}\n"
        one = function(compiled(tmp_path, text))
        assert one.rewritten
        assert ordered(one, "k1", "k2")


# ---- code that no call names ----------------------------------------------------------------------------------------

ITERATOR = f"""\
struct It {{
  int i;
  It& operator++() {{ {SWAP} ++i; return *this; }}
  bool operator!=(const It& o) const {{ return i != o.i; }}
  int operator*() const {{ return i; }}
}};
struct R {{ It begin() const {{ return {{0}}; }} It end() const {{ return {{3}}; }} }};
"""
HIDDEN = {
    "a range's iterator": (ITERATOR, "for (int i : R{}) { (void)i; }"),
    "an iterator of this file only": (f"namespace {{\n{ITERATOR}}}\n", "for (int i : R{}) { (void)i; }"),
    "a local class": (
        "struct Base { virtual void tick() = 0; };\nvoid run(Base&);\n",
        f"struct L : Base {{ void tick() override {{ {SWAP} }} }} l; run(l);",
    ),
    "a local class' static method": (
        "void run(void (*)());\n",
        f"struct L {{ static void tick() {{ {SWAP} }} }}; run(L::tick);",
    ),
    "a friend": (
        f"void run();\nstruct F {{ friend void tick() {{ {SWAP} }} }};\n",
        "run();",
    ),
    "a union's method": (f"void run();\nunion U {{ int a; void tick() {{ {SWAP} }} }};\n", "run();"),
    "a lambda in a global": (f"static auto turn = [] {{ {SWAP} }};\n", "turn();"),
}


@pytest.mark.parametrize(("before", "middle"), HIDDEN.values(), ids=HIDDEN)
def test_code_that_no_call_names(tmp_path: Path, before: str, middle: str) -> None:
    assert ordered(function(compiled(tmp_path, GLOBALS + before + around(middle))), "k1", "k2")


@pytest.mark.parametrize("middle", ["for (float* p : all) k1<<<1, 64>>>(p);", "for (auto& e : many) (void)e;"])
def test_plain_ranges_are_no_barrier(tmp_path: Path, middle: str) -> None:
    types = "#include <vector>\nstruct E { E(const E&); };\n"
    uses = "float* all[2] = {x, y}; std::vector<E> many; "
    text = f"{types}int main() {{ {BUFFERS}{uses}{LAUNCHES.replace('cudaDevice', middle + ' cudaDevice')}}}\n"
    one = function(compiled(tmp_path, text))
    assert not any("range" in s.label for s in one.region.sites)
    assert one.rewritten


CALLBACK = "void set_callback(void (*)()); void poll();\n"


@pytest.mark.parametrize("where", ["taken", "not taken", "through another", "forced", "behind"])
def test_functions_of_headers_that_change_static_variables(tmp_path: Path, where: str) -> None:
    tick = f"inline void on_tick() {{ {SWAP} }}\n"
    use = "" if where == "not taken" else "set_callback(on_tick); "
    flags = ("-include", str(tmp_path / "a.h")) if where == "forced" else ()
    if where == "through another":
        header = f"{GLOBALS}static void turn() {{ {SWAP} }}\n"
        more = "inline void on_tick() { turn(); }\n"
        text, headers = '#include "a.h"\n#include "b.h"\n', {"a": header, "b": more}
    elif where == "behind":
        text, headers = f'{GLOBALS}#include "a.h"\n', {"a": tick}
    else:
        text, headers = "" if flags else '#include "a.h"\n', {"a": GLOBALS + tick}
    one = function(compiled(tmp_path, text + CALLBACK + around(use + "poll();"), *flags, **headers))
    assert ordered(one, "k1", "k2")


def test_functions_of_headers_that_call_static_functions(tmp_path: Path) -> None:
    header = (
        "static void helper(float* a, float* b);\nextern float* shared_buf;\n"
        "inline void on_tick() { helper(shared_buf, shared_buf); }\n"
    )
    text = "static void helper(float* a, float* b) { k1<<<1, 64>>>(a); k2<<<1, 64>>>(b); }\n"
    main = f"int main() {{ {BUFFERS}set_callback(on_tick); helper(x, y); poll(); cudaDeviceSynchronize(); }}\n"
    result = compiled(tmp_path, '#include "q.h"\n' + CALLBACK + text + main, q=header)
    assert function(result, "helper").region.guards, "it may be called with one buffer twice"


@pytest.mark.parametrize("kind", ["thread_local", "extern"])
def test_locals_that_outlive_a_call(tmp_path: Path, kind: str) -> None:
    value = "" if kind == "extern" else " = nullptr"
    step = (
        f"float* step(float* q) {{\n  {kind} float* cache{value};\n  if (!cache) cudaMalloc(&cache, 4096);\n"
        "  k1<<<1, 64>>>(cache);\n  k2<<<1, 64>>>(q);\n  return cache; }\n"
    )
    main = f"int main() {{ {BUFFERS}x = step(x); x = step(x); cudaDeviceSynchronize(); }}\n"
    assert ordered(function(compiled(tmp_path, step + main), "step"), "k1", "k2")


# ---- threads --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "#include <future>\nusing namespace std;\nvoid g() { auto f = async(launch::async, [] {}); f.get(); }\n",
        "#include <bits/std_thread.h>\nusing namespace std;\nvoid g() { thread t([] {}); t.join(); }\n",
        '#include "pool.h"\n',
    ],
)
def test_threads_by_other_names(tmp_path: Path, text: str) -> None:
    pool = "#include <thread>\ninline void g() { std::thread([] {}).join(); }\n"
    one = function(compiled(tmp_path, text + PLAIN, pool=pool))
    assert one.left_because == "the file starts host threads"


# ---- one statement ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("statement", ["k1<<<1, 64>>>(x), c = run(x);", "c = (k1<<<1, 64>>>(x), run(y));"])
def test_a_launch_and_a_call_behind_it_in_one_statement(tmp_path: Path, statement: str) -> None:
    """What the call must find done has no place between the two: once the output could not be proven."""
    run = "static int run(float* q) { k2<<<1, 64>>>(q); return 3; }\n"
    text = f"{run}int main(int c, char**) {{ {BUFFERS}{LAUNCHES}  {statement}\n  run(x); return c; }}\n"
    main = function(compiled(tmp_path, text))
    assert not main.rewritten
    assert "needs its own place" in main.left_because


# ---- depth ----------------------------------------------------------------------------------------------------------


def test_long_chains(tmp_path: Path) -> None:
    chain = " else ".join(f"if (c == {i}) k1<<<1, 64>>>(x);" for i in range(300))
    terms = " + ".join(["c"] * 3000)
    text = f"int main(int c, char**) {{ {BUFFERS}  {chain}\n  int sum = {terms}; (void)sum;\n{LAUNCHES}}}\n"
    assert function(compiled(tmp_path, text)).rewritten


def test_too_long_chains_end_in_one_message(tmp_path: Path) -> None:
    terms = " + ".join(["c"] * 8000)
    with pytest.raises(InputError) as caught:
        compiled(tmp_path, f"int main(int c, char**) {{ {BUFFERS}  int sum = {terms};\n{LAUNCHES}}}\n")
    assert [d.code for d in caught.value.diagnostics] == ["K106"]


def test_recursion_anywhere_ends_in_one_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def endless(*arguments: object) -> None:
        endless(*arguments)

    monkeypatch.setattr(pipeline, "plan_all", endless)
    with pytest.raises(InputError, match="nested too deeply"):
        compiled(tmp_path, PLAIN)


def test_the_prologue_holds_no_other_capital_names() -> None:
    """The front-end notes macros with small letters only: what else the prologue names has to be checked by hand."""
    found = set(re.findall(r"\b[A-Z_0-9]+\b", re.sub(r'//.*|"[^"]*"', "", prologue(2, 1, Parts(True, True, 1, 1)))))
    assert {w for w in found if not w.isdigit()} == {"CUDART_VERSION"}


THROWS = """\
#include <bitset>
#include <string>
KERNELSstruct List { float* p[4]; float* get(int i) const { if (i > 3) throw i; return p[i]; } };
static void refuse(int i) { throw i; }
static int checked(int i) { if (i > 3) refuse(i); return i; }
static void succeeds(cudaError_t e) { if (e != cudaSuccess) throw e; }
void work(float* a, float* b, const List& list, int i) {
  k1<<<1, 1>>>(a);
  k2<<<1, 1>>>(b);
  STATEMENT
  k2<<<1, 1>>>(b);
}
int main() { return 0; }
"""


@pytest.mark.parametrize(
    ("statement", "joined"),
    [
        ("float* p = list.get(i);", True),
        ("i = checked(i);", True),
        ("if (i > 3) refuse(i);", True),
        ('i = std::stoi("12");', True),
        ("i = std::bitset<8>(255).test(i);", True),
        ("succeeds(cudaGetLastError());", False),
        ("i = i + 1;", False),
    ],
)
def test_work_is_joined_before_what_may_throw(tmp_path: Path, statement: str, joined: bool) -> None:
    """Who catches it may wait for the default stream alone, and read what the kernels have written."""
    program = tmp_path / "throws.cu"
    program.write_text(THROWS.replace("KERNELS", KERNELS).replace("STATEMENT", statement))
    result = compile_file(str(program), Options(force=True))
    (work,) = (one for one in result.functions if one.region.function == "work")
    assert work.rewritten
    text = result.text.decode()
    before = text[text.index("k2<<<1, 1, 0") : text.rindex(statement.removeprefix("if (i > 3) "))]
    assert before.count("cudaStreamWaitEvent(cudaStreamLegacy") == (2 if joined else 0)


@pytest.mark.parametrize(
    "pointer",
    [
        "static_cast<Derived*>(base)->x",
        "((Derived&)*base).x",
        "base->either",
        "of_file",
    ],
)
def test_what_has_no_name_at_entry_is_not_compared_there(tmp_path: Path, pointer: str) -> None:
    """Members of a derived class, and of a union without a name: the output would not compile."""
    program = tmp_path / "members.cu"
    program.write_text(
        f"{KERNELS}struct Base {{ union {{ float* either; double* other; }}; float* known; }};\n"
        "struct Derived : Base { float* x; };\nstatic union { float* of_file; double* other; };\n"
        "void work(Base* base, float* a, float* b) {\n"
        f"  k1<<<1, 1>>>({pointer});\n  k2<<<1, 1>>>(a);\n  k2<<<1, 1>>>(b);\n}}\n"
        "int main() { return 0; }\n"
    )
    result = compile_file(str(program), Options(force=True))
    assert [one.region.function for one in result.functions if one.rewritten] == ["work"]
