"""What uses the results of a turn and waits for the next one: which loops, what the proof refuses, and what is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kesco.emit.deferred import same_text, without_deferred, written
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file
from kesco.proving import verify_files
from kesco.session import Session

pytestmark = pytest.mark.usefixtures("toolchain")

HEAD = """\
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>
#define CHECK(x) do { if ((x) != cudaSuccess) { fprintf(stderr, "no\\n"); exit(1); } } while (0)
__global__ void k(float* x, float f) { x[threadIdx.x] += f; }
const int n = 4, bytes = n * sizeof(float);
struct Plain { int at; float weight; };
struct Noted { int at; ~Noted() { puts("gone"); } };
struct Totals { double sum = 0; int count = 0; };
static float sum(const float* of) { float found = 0; for (int j = 0; j < n; ++j) found += of[j]; return found; }
static int calls = 0;
static int counted() { return ++calls; }
void unseen();
struct Refers { int& it; };
struct Ring { int at; Ring* next; };
static float* left;
static void set(float* f, int i) { *f = i; }
"""
USES = "for (int j = 0; j < n; ++j) total += out[j];"
HOME = "cudaMemcpy(out.data(), d, bytes, cudaMemcpyDeviceToHost);"
DEFERRED = {
    "two in one declaration": f"extra += 1; k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) step += j;",
    "an array of its own": f"k<<<1, n>>>(d, 1.f); {HOME} float mine[32]; for (int j = 0; j < n; ++j) mine[j] = out[j]; total += sum(mine);",  # noqa: E501
    "a vector of its own": f"k<<<1, n>>>(d, 1.f); {HOME} std::vector<float> mine(out); for (float one : mine) total += one;",  # noqa: E501
    "a struct of the turn before": f"plain = plains[i]; k<<<1, n>>>(d, 1.f); {HOME} {USES} total += plain.at;",
    "a number that a function sets": f"float f = 0.f; set(&f, i); k<<<1, n>>>(d, f); {HOME} {USES} total += f;",
    "a number that is pushed": f"k<<<1, n>>>(d, 1.f); float f = 0.f; cudaMemcpy(&f, d, 4, cudaMemcpyDeviceToHost); {HOME} {USES} found.push_back(f);",  # noqa: E501
    "a vector that is there": f"k<<<1, n>>>(d, 1.f); {HOME} {USES}",
    "checks that end the process": f"k<<<1, n>>>(d, 1.f); CHECK(cudaGetLastError()); CHECK({HOME[:-1]}); {USES}",
    "a wait in front of the copy": f"k<<<1, n>>>(d, 1.f); cudaDeviceSynchronize(); {HOME} {USES}",
    "output": f'k<<<1, n>>>(d, 1.f); {HOME} {USES} printf("%d %f\\n", i, total);',
    "input of the next turn": f"for (int j = 0; j < n; ++j) in[j] = i; cudaMemcpy(d, in.data(), bytes, cudaMemcpyHostToDevice); k<<<1, n>>>(d, 1.f); {HOME} {USES}",  # noqa: E501
    "a number of the turn": f"float f = 0.f; k<<<1, n>>>(d, i); cudaMemcpy(&f, d, 4, cudaMemcpyDeviceToHost); {HOME} {USES} total += f;",  # noqa: E501
    "a struct of the turn": f"Plain p = {{i, 2.f}}; k<<<1, n>>>(d, p.weight); {HOME} {USES} total += p.at;",
    "something new at its end": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} made = new Plain{{i, total}};",
    "a vector of the turn": f"std::vector<float> mine(n); k<<<1, n>>>(d, i); cudaMemcpy(mine.data(), d, bytes, cudaMemcpyDeviceToHost); {USES.replace('out', 'mine')}",  # noqa: E501
    "an array of the turn": "float mine[32]; k<<<1, n>>>(d, 1.f); cudaMemcpy(mine, d, bytes, cudaMemcpyDeviceToHost); "
    + USES.replace("out", "mine"),
    "a stream of the library": f'k<<<1, n>>>(d, 1.f); {HOME} {USES} std::cout << i << " " << total << std::endl;',
    "a function": f"k<<<1, n>>>(d, 1.f); {HOME} total += sum(out.data());",
    "a member": f"k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) totals.sum += out[j]; ++totals.count;",
    "a turn that is left out": f"if (i == 3) continue; k<<<1, n>>>(d, 1.f); {HOME} {USES}",
    "a turn that is the last": f"if (i == 8) break; k<<<1, n>>>(d, 1.f); {HOME} {USES}",
    "page-locked memory": "k<<<1, n>>>(d, 1.f); cudaMemcpy(locked, d, bytes, cudaMemcpyDeviceToHost); "
    + USES.replace("out", "locked"),
    "a result of another kind in between": f"k<<<1, n>>>(d, 1.f); {HOME} k<<<1, n>>>(e, 2.f); cudaMemcpy(in.data(), e, bytes, cudaMemcpyDeviceToHost); for (int j = 0; j < n; ++j) total += in[j];",  # noqa: E501
}
KEPT = {
    "a struct that the next turn needs": f"k<<<1, n>>>(d, plain.weight); {HOME} {USES} Plain other = {{i, total}}; plain = other;",  # noqa: E501
    "a number by its bytes": f"int f = extra; k<<<1, n>>>(d, f); {HOME} {USES} memcpy(&extra, &total, 4);",
    "a number by a function of the compiler's": f"k<<<1, n>>>(d, extra); {HOME} {USES} __builtin_add_overflow(i, 1, &extra);",  # noqa: E501
    "a number by another name": f"k<<<1, n>>>(d, extra); {HOME} {USES} int* p = std::addressof(extra); *p = i;",
    "a number by a member": f"Refers both{{extra}}; k<<<1, n>>>(d, extra); {HOME} {USES} both.it = i;",
    "a reference to one of two": f"int f = i, g = 3; const int& most = std::max(f, g); k<<<1, n>>>(d, 1.f); {HOME} {USES} total += most + f;",  # noqa: E501
    "a reference to a number that goes": f"const int& f = i * 2; k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) total += out[j] * f;",  # noqa: E501
    "a lambda that refers to a number": f"int f = i; auto ask = [&] {{ return f; }}; k<<<1, n>>>(d, 1.f); {HOME} {USES} total += ask() + f;",  # noqa: E501
    "a struct that points to itself": f"Ring ring = {{i, nullptr}}; ring.next = &ring; k<<<1, n>>>(d, 1.f); {HOME} {USES} total += ring.next->at + ring.at;",  # noqa: E501
    "what it declares is named behind it": f"k<<<1, n>>>(d, 1.f); {HOME} int step = 2; {USES} i += step - 1; cudaGetLastError();",  # noqa: E501
    "it ends the process": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} if (total > 1e9f) exit(3);",
    "the process may end": f"if (limit > 99) exit(0); k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) calls += out[j] > 0;",  # noqa: E501
    "it may throw what somebody catches": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} total += out.at(limit);",
    "it names its function": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} puts(__func__);",
    "memory of the function": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} left = (float*)__builtin_alloca(4); *left = total;",
    "a number that it changes by a call": f"k<<<1, n>>>(d, extra); extra = 0; {HOME} for (int j = 0; j < n; ++j) set(&total, extra++);",  # noqa: E501
    "the next launch needs it": f"k<<<1, n>>>(d, total); {HOME} {USES}",
    "a number of the head": f"k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) limit -= out[j] > 1e9f;",
    "managed memory": "k<<<1, n>>>(managed, 1.f); cudaDeviceSynchronize(); " + USES.replace("out", "managed"),
    "unified, by a pointer": "k<<<1, n>>>(managed, 1.f); cudaDeviceSynchronize(); float* p = managed; "
    + USES.replace("out", "p"),
    "it writes what is copied up": f"cudaMemcpy(d, out.data(), bytes, cudaMemcpyHostToDevice); k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) out[j] *= 0.5f;",  # noqa: E501
    "both print": f'printf("turn\\n"); k<<<1, n>>>(d, 1.f); {HOME} {USES} printf("%f\\n", total);',
    "both draw": f"k<<<1, n>>>(d, rand() % 3); {HOME} for (int j = 0; j < n; ++j) total += out[j] * (rand() % 2);",
    "both count": f"k<<<1, n>>>(d, counted()); {HOME} for (int j = 0; j < n; ++j) total += out[j] * counted();",
    "code that is not seen, which may print": f'unseen(); k<<<1, n>>>(d, 1.f); {HOME} {USES} printf("%f\\n", total);',
    "it returns": f"k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) if (out[j] > 9.f) return 1.0;",
    "it ends the loop": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} if (total > 9.f) break;",
    "it throws": f'k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) if (out[j] > 9.f) throw std::runtime_error("large");',  # noqa: E501
    "it calls CUDA": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} cudaMemset(d, 0, bytes);",
    "a destructor behind it": f'Noted noted{{i}}; k<<<1, n>>>(d, 1.f); {HOME} {USES} printf("%f\\n", total);',
    "a reference to what a turn makes": f"const std::string& name = std::to_string(i); k<<<1, n>>>(d, 1.f); {HOME} for (char one : name) total += one;",  # noqa: E501
    "a pointer to a number of the turn": f"float f = 1.f; float* p = &f; k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) total += *p * out[j];",  # noqa: E501
    "a reference to a variable": f"float& alias = total; k<<<1, n>>>(d, alias); {HOME} for (int j = 0; j < n; ++j) total += out[j];",  # noqa: E501
    "a variable that is aligned": f"alignas(64) float mine[32]; k<<<1, n>>>(d, 1.f); {HOME} for (int j = 0; j < n; ++j) mine[j] = out[j]; total += sum(mine) + ((size_t)mine & 63);",  # noqa: E501
    "an address that is left": f"float f = i; left = &f; k<<<1, n>>>(d, 1.f); {HOME} {USES} total += *left;",
    "an address in a vector": "std::vector<float> mine(n); left = mine.data(); k<<<1, n>>>(d, 1.f); cudaMemcpy(mine.data(), d, bytes, cudaMemcpyDeviceToHost); for (int j = 0; j < n; ++j) total += left[j] + mine[j];",  # noqa: E501
    "it may end by std::terminate": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} if (total > 1e9f) std::terminate();",
    "it may end by a trap": f"k<<<1, n>>>(d, 1.f); {HOME} {USES} if (total > 1e9f) __builtin_trap();",
    "memory that the next turn frees": f"delete made; made = nullptr; k<<<1, n>>>(d, 1.f); {HOME} {USES} made = new Plain{{i, total}};",  # noqa: E501
    "nothing is at work": f"{HOME} k<<<1, n>>>(d, 1.f); cudaDeviceSynchronize(); {HOME} {USES} in[0] = total; cudaMemcpy(e, in.data(), 4, cudaMemcpyHostToDevice);",  # noqa: E501
}

ONE = "a vector that is there"
IN_ITS_TURN = {**KEPT, ONE: DEFERRED[ONE]}
"""With one that is kept, as something in the file might speak against all."""


def text_of(bodies: Iterable[str]) -> str:
    """A program with one function for each body of a loop."""
    lines = [body.replace("; ", ";\n    ") for body in bodies]
    functions = [
        f"double run{number}(float* d, float* e, float* managed, float* locked, int limit) {{\n"
        "  std::vector<float> out(n), in(n), found;\n  float total = 0;\n  Totals totals;\n"
        "  int extra = 0, step = 1;\n  Plain plain{};\n  Plain* made = nullptr;\n  std::vector<Plain> plains(10);\n"
        f"  for (int i = 0; i < limit; ++i) {{\n    {body}\n  }}\n"
        "  return total + totals.sum + totals.count + found.size() + extra + step + plain.at;\n}\n"
        for number, body in enumerate(lines)
    ]
    calls = "".join(f'  printf("%f\\n", run{n}(d, e, managed, locked, 10));\n' for n in range(len(functions)))
    return (
        f"{HEAD}{''.join(functions)}int main() {{\n  float *d, *e, *managed, *locked;\n  cudaMalloc(&d, bytes);\n"
        "  cudaMalloc(&e, bytes);\n  cudaMallocManaged(&managed, bytes);\n  cudaMallocHost(&locked, bytes);\n"
        f"{calls}}}\n"
    )


def compiled(bodies: Iterable[str], folder: Path) -> Compilation:
    source = folder / "app.cu"
    source.write_text(text_of(bodies))
    return compile_file(str(source), Options(launches="keep"))


@pytest.fixture(scope="module")
def deferred(tmp_path_factory: pytest.TempPathFactory) -> Compilation:
    return compiled(DEFERRED.values(), tmp_path_factory.mktemp("deferred"))


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Compilation:
    return compiled(IN_ITS_TURN.values(), tmp_path_factory.mktemp("kept"))


def names(done: Compilation, table: dict[str, str]) -> set[str]:
    return {list(table)[int(one.turn.function.removeprefix("run"))] for one in done.deferred}


def test_results_are_used_later(deferred: Compilation) -> None:
    assert names(deferred, DEFERRED) == set(DEFERRED)
    assert same_text(deferred.text, deferred.source)
    assert [one.code for one in deferred.diagnostics].count("K224") == len(deferred.deferred)
    first = next(one for one in deferred.deferred if one.turn.function == "run0")
    assert first.held == ()  # what both are is not known, and the kept part changes one of them


def test_results_are_used_in_their_turn(kept: Compilation) -> None:
    assert names(kept, IN_ITS_TURN) == {ONE}


CHANGES = {
    "it is run behind the copy": lambda text: _moved(text, ".run();", behind="DeviceToHost"),
    "it is run at the end of the turn": lambda text: _moved(text, ".run();", behind="// kesco: until here"),
    "the last one is not run": lambda text: text.replace("kesco_deferred_0.run();  // kesco: what the last", "// "),
    "something stands behind the loop": lambda text: text.replace(
        "\n  kesco_deferred_0.run()", "\n  ++total;\n  kesco_deferred_0.run()"
    ),
    "the counter is not held": lambda text: text.replace("[&, i]", "[&]"),
    "the copy is kept, too": lambda text: _moved(text, ".keep(", behind="cudaGetLastError"),
    "the class is another one": lambda text: text.replace("    work = nullptr;\n", ""),
}


def _moved(text: str, what: str, behind: str) -> str:
    """The text with its first line with `what` behind the first one with `behind` that follows, or stands before."""
    lines = text.split("\n")
    at = next(n for n, line in enumerate(lines) if what in line and "kesco_deferred_0" in line)
    line = lines.pop(at)
    to = next(n for n, other in enumerate(lines) if behind in other and "#define" not in other)
    return "\n".join([*lines[: to + 1], line, *lines[to + 1 :]])


TURN = f'k<<<1, n>>>(d, 1.f); cudaGetLastError(); {HOME} {USES} printf("%d\\n", i);'


def test_the_proof_follows_what_is_written(tmp_path: Path) -> None:
    done = compiled([TURN], tmp_path)
    session = Session(done.path, Options(launches="keep"))
    assert session.deferred_problems(done.text) == []
    assert len(without_deferred(done.text)) == len(done.text)
    (tmp_path / "out.cu").write_bytes(done.text)
    assert not any(one.problems for one in verify_files(done.path, str(tmp_path / "out.cu"), Options()))


@pytest.mark.parametrize("name", CHANGES)
def test_the_proof_refuses(name: str, tmp_path: Path) -> None:
    done = compiled([TURN], tmp_path)
    text = CHANGES[name](done.text.decode()).encode()
    assert text != done.text
    session = Session(done.path, Options(launches="keep"))
    assert session.deferred_problems(text) or written(text) is None or not same_text(text, done.source)


def test_what_keeps_it_is_said(tmp_path: Path) -> None:
    source = tmp_path / "app.cu"
    turn = f"k<<<1, n>>>(d, total);\n    {HOME}\n    {USES}"
    source.write_text(
        f"{HEAD}int main() {{\n  float *d, total = 0;\n  cudaMalloc(&d, bytes);\n  std::vector<float> out(n);\n"
        f'  for (int i = 0; i < 9; ++i) {{\n    {turn}\n  }}\n  printf("%f\\n", total);\n}}\n'
    )
    notes = [note for one in compile_file(str(source), Options()).diagnostics for note in one.notes]
    told = [note for note in notes if "cannot be kept until the next turn has launched" in note.message]
    assert [note.span.line for note in told if note.span is not None] == [turn_line(source, "k<<<")]


WHOLE = {
    "a host function in flight": "cudaLaunchHostFunc(nullptr, [](void*) { ++calls; }, nullptr);",
    "how numbers are rounded": "std::fesetround(FE_UPWARD);",
}


@pytest.mark.parametrize("name", WHOLE)
def test_files_that_keep_it(name: str, tmp_path: Path) -> None:
    """As `TURN` with one more statement, which keeps each loop of a file as it is."""
    source = tmp_path / "app.cu"
    text = "#include <cfenv>\n" + text_of([TURN])
    for wanted, more in ((1, ""), (0, WHOLE[name])):
        source.write_text(text.replace("int main() {\n", f"int main() {{\n  {more}\n"))
        assert len(compile_file(str(source), Options(launches="keep")).deferred) == wanted


def test_a_header_that_catches(tmp_path: Path) -> None:
    """Whoever goes on behind an exception keeps what may throw in its turn."""
    (tmp_path / "tries.h").write_text("template <class F> void tried(F f) {\n  try { f(); } catch (...) {}\n}\n")
    source = tmp_path / "app.cu"
    turn = f"k<<<1, n>>>(d, 1.f); {HOME} std::vector<float> mine(rand()); for (float one : mine) total += one;"
    text = text_of([turn]).replace("int main() {\n", 'int main() {\n  tried([] { puts(""); });\n')
    for wanted, head in ((1, "template <class F> void tried(F f) { f(); }\n"), (0, '#include "tries.h"\n')):
        source.write_text(head + text)
        assert len(compile_file(str(source), Options(launches="keep")).deferred) == wanted


@pytest.mark.parametrize("head", ["if (limit > 3)\n  for (", "switch (limit) default:\n  for ("])
def test_loops_that_are_no_statement_of_a_block(head: str, tmp_path: Path) -> None:
    """Nothing can be declared in front of them; the other loop of the file does not suffer."""
    source = tmp_path / "app.cu"
    first, rest = text_of([TURN, TURN]).split("  for (int i = 0;", 1)
    source.write_text(f"{first}  {head}int i = 0;{rest}")
    done = compile_file(str(source), Options(launches="keep"))
    assert [one.turn.function for one in done.deferred] == ["run1"]


def turn_line(source: Path, word: str) -> int:
    return next(n for n, line in enumerate(source.read_text().split("\n"), 1) if line.strip().startswith(word))


def test_waits_that_stay_keep_it(tmp_path: Path) -> None:
    source = tmp_path / "app.cu"
    source.write_bytes(compiled([TURN], tmp_path).source)
    assert compile_file(str(source), Options(launches="keep", syncs="keep")).deferred == ()
