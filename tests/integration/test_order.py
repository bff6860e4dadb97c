"""The order of issue: which copies go ahead of others, and what keeps its place because it must or may as well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kesco.diagnostics import Diagnostic, Severity
from kesco.emit.prologue import END
from kesco.errors import VerificationError
from kesco.ir.compilation import FunctionResult
from kesco.options import Options
from kesco.proving import verify, verify_files
from kesco.session import Session
from tests.integration.compiled import Compiled, compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """#include <cstdio>
#include <cstdlib>
#include <vector>
#define CHECK(e) do { cudaError_t r = (e); if (r != cudaSuccess) { puts(cudaGetErrorString(r)); exit(1); } } while (0)
#define QUIT(e) do { if ((e) != cudaSuccess) return 1; } while (0)
#define BACK(e) do { cudaError_t r = (e); if (r != cudaSuccess) return r; } while (0)
#define THROW(e) do { cudaError_t r = (e); if (r != cudaSuccess) throw r; } while (0)
#define SET(e) do { cudaError_t r = (e); if (r != cudaSuccess) failed = 1; } while (0)
#define BOTH(a, b) a; b
inline void check(cudaError_t code, int line) { if (code != cudaSuccess) { printf("%d\\n", line); exit(1); } }
inline void thrown(cudaError_t code) { if (code != cudaSuccess) throw code; }
__global__ void square(const float* a, float* b, long n) {
  for (long i = threadIdx.x; i < n; i += 32) b[i] = a[i] * a[i];
}
__global__ void add(const float* a, const float* b, float* c, long n) {
  for (long i = threadIdx.x; i < n; i += 32) c[i] = a[i] + b[i];
}
int elsewhere(int);
static int failed = 0;
"""
LATE = "  CHECK(cudaMemcpyAsync(late, p, bytes, cudaMemcpyHostToDevice));\n"
EARLY = "  CHECK(cudaMemcpyAsync(early, p + n, bytes, cudaMemcpyHostToDevice));\n"
SMALL = "  CHECK(cudaMemcpyAsync(small, p, 128, cudaMemcpyHostToDevice));\n"
KERNELS = """  square<<<1, 32>>>(early, x, n);
  square<<<1, 32>>>(x, y, n);
  add<<<1, 32>>>(y, late, z, n);
  square<<<1, 32>>>(small, x, 32);
  CHECK(cudaMemcpy(h.data(), z, bytes, cudaMemcpyDeviceToHost));
"""
NAMES = ("late", "early", "small", "x", "y", "z")
MADE = "".join(f"  CHECK(cudaMalloc(&{x}, bytes));\n" for x in NAMES) + "  CHECK(cudaMallocHost(&p, 2 * bytes));\n"


def program(copies: str = LATE + EARLY, kernels: str = KERNELS, made: str = MADE, before: str = "") -> str:
    return (
        f"{HEAD}{before}int main(int argc, char** argv) {{\n  const long n = argc * 1000;\n  int next = 0;\n"
        "  volatile long seen = n;\n  const size_t bytes = n * sizeof(float);\n"
        f"  std::vector<float> h(n, 2);\n  float *late, *early, *small, *x, *y, *z, *p;\n"
        f'{made}  p[0] = 1;\n{copies}{kernels}  printf("%f %d %ld\\n", h[0], next, seen);\n  return 0;\n}}\n'
    )


def compiled(folder: Path, text: str, **options: object) -> Compiled:
    source = folder / "input.cu"
    source.write_text(text)
    return compile_and_keep(source, Options(**options))  # type: ignore[arg-type]


def moved(one: Compiled) -> int:
    """How many statements have another place."""
    assert one.rewritten, [f.left_because for f in one.result.functions]
    return sum(change.moved for function in one.result.functions for change in function.reordered)


def codes(one: Compiled) -> list[str]:
    return [d.code for d in one.result.diagnostics]


def body(one: Compiled) -> str:
    """The output without what is inserted above the functions."""
    return one.result.text.decode().partition(END)[2]


def copied(one: Compiled) -> list[str]:
    """What the output copies to the device, in its order."""
    return re.findall(r"(?:cudaMemcpyAsync|cudaMemcpy|kesco_send|kesco_copy)\((\w+), .*HostToDevice", body(one))


def test_what_begins_the_longest_chain_is_copied_first(tmp_path: Path) -> None:
    one = compiled(tmp_path, program())
    assert moved(one) == 1
    assert copied(one) == ["early", "late"]
    assert one.result.text.count(b"// kesco: behind copies that are needed earlier") == 1
    said = [d for d in one.result.diagnostics if d.code == "K219"]
    places = [(d.notes[0].span.line, d.notes[0].span.column) for d in said if d.notes[0].span]
    lines = one.result.source.decode().split("\n")
    assert places == [(1 + lines.index(LATE.rstrip("\n")), 3)]


def test_the_output_is_proven_against_the_users_text(tmp_path: Path) -> None:
    one = compiled(tmp_path, program())
    (tmp_path / "output.cu").write_bytes(one.result.text)
    verdicts = verify_files(str(tmp_path / "input.cu"), str(tmp_path / "output.cu"), Options())
    assert [v.problems for v in verdicts] == [()]
    assert one.function("main").serial.sites[1].span.line < one.function("main").serial.sites[2].span.line


def test_places_are_those_of_the_users_text(tmp_path: Path) -> None:
    """For people, and for the lines that a compiler is told: a kept stretch is the same in both texts."""
    one = compiled(tmp_path, program())
    source, text = one.result.source, one.result.text
    assert all(source[a:b] == text[c : c + b - a] for a, b, c in one.result.kept)
    assert [c for *_, c in one.result.kept] == sorted(c for *_, c in one.result.kept)
    for site in one.function("main").region.sites:
        if site.label.startswith("cudaMemcpyAsync"):
            assert source[site.span.start : site.span.end].startswith(b"cudaMemcpyAsync(")
            assert source.count(b"\n", 0, site.span.start) + 1 == site.span.line


def test_small_copies_go_first(tmp_path: Path) -> None:
    one = compiled(tmp_path, program(EARLY + LATE + SMALL))
    assert copied(one) == ["small", "early", "late"]
    assert "ahead of large copies" in body(one)


def test_a_comment_goes_with_its_statement_and_empty_lines_stay(tmp_path: Path) -> None:
    one = compiled(tmp_path, program("  // late\n" + LATE + "\n  // early\n" + EARLY + "\n"))
    assert moved(one) == 1
    kept = [line.strip().partition("(")[0] for line in body(one).partition("p[0] = 1;")[2].split("\n")[1:]]
    kept = [line for line in kept if not line.startswith(("cuda", "KescoStreams"))]
    assert kept[:6] == ["// early", "CHECK", "", "// kesco: behind copies that are needed earlier", "// late", "CHECK"]


LOOPS = "  for (int i = 0; i < 2; ++i) CHECK(cudaMemcpyAsync({}, p{}, bytes, cudaMemcpyHostToDevice));\n"
MORE = {
    "behind a wait": "  CHECK(cudaDeviceSynchronize());\n" + LATE + EARLY,
    "loops": LOOPS.format("late", "") + LOOPS.format("early", " + n"),
    "a function that checks": LATE.replace("CHECK(", "check(").replace("));", "), __LINE__);") + EARLY,
    "plain calls": (LATE + EARLY).replace("CHECK(", "").replace("));", ");"),
    "a vector's data": (LATE + EARLY).replace("Async", "").replace("p + n", "h.data()").replace("p, ", "h.data(), "),
    "end of main": (LATE + EARLY).replace("CHECK(", "check(").replace("));", "), 1);"),
}


@pytest.mark.parametrize("name", MORE)
def test_statements_that_move(name: str, tmp_path: Path) -> None:
    one = compiled(tmp_path, program(MORE[name]), copies="move")
    assert copied(one) == ["early", "late"], body(one)


STORES = (LATE + EARLY).replace("CHECK(", "SET(")
REFUSED = {
    "nothing to gain": LATE.replace("late", "early") + EARLY.replace("early", "late"),
    "a wait of the host": LATE + EARLY.replace("Async", ""),
    "a store in between": LATE + "  p[0] = 2;\n" + EARLY,
    "a declaration in between": LATE + "  int other = 3;\n" + EARLY,
    "a launch in between": LATE + "  square<<<1, 32>>>(x, y, n);\n" + EARLY,
    "a directive in between": LATE + "#if 1\n" + EARLY + "#endif\n",
    "a directive above": "#define N n\n" + LATE + EARLY,
    "a comment of its own": LATE + "  // now the other\n\n" + EARLY,
    "a comment of several lines": "  /* first\n   */\n" + LATE + EARLY,
    "another on its line": LATE + EARLY.rstrip("\n") + " next = 1;\n",
    "a macro that makes both": "  BOTH(cudaMemcpyAsync(late, p, bytes, cudaMemcpyHostToDevice),\n"
    "       cudaMemcpyAsync(early, p + n, bytes, cudaMemcpyHostToDevice));\n",
    "blocks": "  {\n" + LATE + "  }\n  {\n" + EARLY + "  }\n",
    "a way out with objects": (LATE + EARLY).replace("CHECK(", "QUIT("),
    "an exception": (LATE + EARLY).replace("CHECK(", "THROW("),
    "an exception of a function": (LATE + EARLY).replace("CHECK(", "thrown("),
    "a store where it failed": STORES,
    "a store of the status": (LATE + EARLY).replace("CHECK(", "next = (int)(").replace("));", "));"),
    "an argument that counts": LATE.replace("p, ", "p + next++, ") + EARLY,
    "an argument that is called": LATE.replace("p, ", "p + elsewhere(1), ") + EARLY,
    "an argument that is volatile": LATE.replace("bytes", "seen * 4") + EARLY,
    "an argument that the device may write": LATE.replace("p, ", "p + (int)p[1], ") + EARLY,
    "a counter from outside": LATE.replace("  CHECK", "  for (next = 0; next < 2; ++next) CHECK") + EARLY,
    "one allocation": LATE + EARLY.replace("early,", "late + n / 2,"),
    "another direction": "  CHECK(cudaMemcpyAsync(late, small, bytes, cudaMemcpyDeviceToDevice));\n" + EARLY,
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_statements_that_stay(name: str, tmp_path: Path) -> None:
    one = compiled(tmp_path, program(REFUSED[name]), force=True, copies="move")
    assert moved(one) == 0, body(one)


AT_EXIT = {
    "a static object": 'struct Told { ~Told() { printf("%d\\n", failed); } };\nstatic Told told;\n',
    "what was asked for": 'static void tell() { printf("%d\\n", failed); }\nstatic int asked = atexit(tell);\n',
}


@pytest.mark.parametrize("what", AT_EXIT)
def test_what_runs_at_exit_may_look_so_nothing_goes_past_a_check_that_ends_the_process(
    what: str, tmp_path: Path
) -> None:
    assert moved(compiled(tmp_path, program(before=AT_EXIT[what]))) == 0


def test_what_must_keep_its_order_does_before_the_proof_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kesco.ordering._same", lambda regions, *others: {one.span for one in regions})
    one = compiled(tmp_path, program(LATE + EARLY + LATE.replace("bytes", "64")))
    assert re.findall(r"\((\w+), p[^,]*, (\w+), cudaMemcpyHostToDevice", body(one)) == [
        ("early", "bytes"), ("late", "bytes"), ("late", "64")
    ]  # fmt: skip


def function(parameters: str) -> str:
    """The copies and kernels in a function of its own."""
    return (
        f"void work({parameters}, float* small, float* x, float* y, float* z, float* p, long n, size_t bytes) {{\n"
        f"  std::vector<float> h(n);\n{LATE}{EARLY}{KERNELS}}}\n"
    )


@pytest.mark.parametrize("kind", ["*", "* __restrict__"])
def test_pointers_from_outside_are_told_apart_by_guards_or_promises_only(kind: str, tmp_path: Path) -> None:
    """Where a guard fails, or with KESCO_STREAMS=1, one stream has to be the serial program."""
    text = program(before=function(f"float{kind} late, float{kind} early"))
    one = compiled(tmp_path, text, force=True)
    assert one.function("work").rewritten and not one.function("work").reordered
    assert one.function("main").reordered


def test_copies_that_stay_on_the_default_stream_keep_their_order(tmp_path: Path) -> None:
    text = program(MORE["a vector's data"])
    assert moved(compiled(tmp_path, text, copies="move")) == 1
    assert moved(compiled(tmp_path, text, copies="keep", force=True)) == 0


def test_the_order_is_kept_where_that_is_asked_for(tmp_path: Path) -> None:
    assert moved(compiled(tmp_path, program(), order="keep")) == 0


def test_tasks_keep_their_order(tmp_path: Path) -> None:
    text = program(kernels=KERNELS.replace("  square", "#pragma kesco task priority(3)\n  square", 1))
    assert moved(compiled(tmp_path, text, force=True)) == 0


def test_a_function_that_stays_serial_keeps_its_text(tmp_path: Path) -> None:
    one = compiled(tmp_path, program(kernels="  add<<<1, 32>>>(late, early, z, n);\n"))
    assert not one.result.changed


def test_the_proof_is_asked_before_an_order_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two copies to one place, of which the second begins the chain: were they exchanged, the proof would see it."""
    other = LATE.replace("(late, p,", "(early, p,")
    text = program(other + EARLY + LATE.replace("n * 4", "64") + SMALL)
    assert copied(compiled(tmp_path, text)) == ["small", "early", "early", "late"]
    assert "K221" not in codes(compiled(tmp_path, text))
    monkeypatch.setattr("kesco.issue._order", lambda run: [3, 1, 0, 2] if len(run) == 4 else [*range(len(run))])
    one = compiled(tmp_path, text)
    assert moved(one) == 0
    assert codes(one).count("K221") == 1


def test_where_the_proof_does_not_follow_the_text_keeps_its_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuses(session: Session, functions: tuple[FunctionResult, ...], text: bytes) -> None:
        if any(one.reordered for one in functions):
            raise VerificationError(Diagnostic("K402", Severity.ERROR, "not proven"))
        verify(session, functions, text)

    monkeypatch.setattr("kesco.pipeline.verify", refuses)
    one = compiled(tmp_path, program())
    assert moved(one) == 0 and copied(one) == ["late", "early"]
    (said,) = (d for d in one.result.diagnostics if d.code == "K221")
    assert said.message.startswith("'main': the order of the text is kept") and said.severity is Severity.REMARK
    assert said.span == one.function("main").region.span


SHORT = "    square<<<1, 32>>>(late, z, n);\n"
LONG = "    square<<<1, 32>>>(early, x, n);\n"
REST = "    square<<<1, 32>>>(x, y, n);\n    add<<<1, 32>>>(y, y, y, n);\n    add<<<1, 32>>>(y, z, small, n);\n"


def again(launches: str = SHORT + LONG + REST) -> str:
    """Launches that run again and again."""
    loop = f"  for (int i = 0; i < argc; ++i) {{\n{launches}    CHECK(cudaDeviceSynchronize());\n  }}\n"
    zeros = "".join(f"  CHECK(cudaMemset({name}, 0, bytes));\n" for name in ("late", "early"))
    return program(zeros + "  CHECK(cudaDeviceSynchronize());\n", loop)


def launched(one: Compiled) -> list[str]:
    """What the launches in the loop write, in the order of the output."""
    return re.findall(r"<<<.*>>>\((?:\w+, )+?(\w+), n\)", body(one))


def test_in_a_graph_what_begins_the_longest_chain_is_launched_first(tmp_path: Path) -> None:
    one = compiled(tmp_path, again(), emit="graph")
    assert moved(one) == 1 and len(one.function("main").plan.replays) == 1
    assert launched(one) == ["x", "z", "y", "y", "small"]
    assert "// kesco: behind launches that begin a longer chain" in body(one)


@pytest.mark.parametrize(("first", "second"), [(SHORT, LONG), (LONG, SHORT)], ids=["as written", "behind the other"])
def test_the_longest_chain_is_the_one_that_takes_longest(tmp_path: Path, first: str, second: str) -> None:
    """Two kernels, of which one has a loop in a loop, are more than three that have one."""
    loops = "for (long i = 0; i < n; ++i) for (long k = 0; k < n; ++k) y[i] += x[i] * x[k];"
    slow = f"__global__ void slow(const float* x, float* y, long n) {{ {loops} }}\n"
    text = again(first + second + REST).replace(SHORT, SHORT.replace("square", "slow"))
    one = compiled(tmp_path, slow + text, emit="graph")
    assert launched(one)[:2] == ["z", "x"] and moved(one) == (first is LONG)


def test_hooks_name_the_places_of_the_users_text(tmp_path: Path) -> None:
    one = compiled(tmp_path, again(), emit="graph", fikit=True)
    source = one.result.source.decode().split("\n")
    rows = re.findall(r'KescoLaunchSite\), "\w+", "input.cu", (\d+), (\d+), "main"', one.result.text.decode())
    found = [source[int(line) - 1][int(column) - 1 :] for line, column in rows]
    assert found[:2] == [LONG.strip(), SHORT.strip()]


LAUNCHES_STAY = {
    "on streams": (SHORT + LONG + REST, "streams"),
    "that depend on each other": (SHORT.replace("z", "early") + LONG + REST, "graph"),
    "of one length": (SHORT + LONG + "    add<<<1, 32>>>(x, z, small, n);\n", "graph"),
    "of kernels whose effects are stated": (SHORT.replace("square", "told") + LONG + REST, "graph"),
}


@pytest.mark.parametrize("name", LAUNCHES_STAY)
def test_launches_that_stay(name: str, tmp_path: Path) -> None:
    launches, emit = LAUNCHES_STAY[name]
    told = "#pragma kesco kernel(told) reads(a) writes(b)\n__global__ void told(const float* a, float* b, long n);\n"
    text = again(launches).replace("int elsewhere(int);", told + "int elsewhere(int);")
    assert moved(compiled(tmp_path, text, emit=emit, force=True)) == 0


def test_launches_with_pointers_from_outside_stay(tmp_path: Path) -> None:
    """As above, in a function that is promised different memory, and one that has its own."""
    pointers = ", ".join(f"float* __restrict__ {name}" for name in NAMES)
    loop = f"  for (int i = 0; i < n; ++i) {{\n{SHORT}{LONG}{REST}    CHECK(cudaDeviceSynchronize());\n  }}\n"
    one = compiled(
        tmp_path, again().replace("int main(", f"void work({pointers}, long n) {{\n{loop}}}\nint main("), emit="graph"
    )
    assert one.function("work").plan.replays and not one.function("work").reordered
    assert one.function("main").reordered
