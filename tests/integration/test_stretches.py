"""Several streams or one, decided as the program runs: where it is asked, and what the answer is.

The second part compiles the prologue for the host alone, with a runtime that counts calls instead of making them, and
a clock that is moved by hand.
"""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

import pytest

from kesco.emit.prologue import Parts, prologue
from kesco.options import Options
from kesco.pipeline import compile_file

KERNELS = """\
__global__ void up(float* x) { x[threadIdx.x] += 1; }
__global__ void both(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
"""
WORK = "up<<<1, 32>>>(x); up<<<1, 32>>>(y); both<<<1, 32>>>(x, y);"
BUFFERS = "float *x, *y; cudaMalloc(&x, 128); cudaMalloc(&y, 128);"


def rewritten(tmp_path: Path, body: str) -> list[str]:
    """The lines of the rewritten file that fetch streams or begin a stretch."""
    path = tmp_path / "app.cu"
    path.write_text(KERNELS + body)
    text = compile_file(str(path), Options(launches="keep")).text.decode()
    lines = text[text.index("// ---- kesco: end") :].splitlines()
    assert any("kesco->stream[1]" in line for line in lines), text
    return [line.strip().partition("  //")[0] for line in lines if "kesco_" in line]


MAIN_FETCH = "KescoStreams* kesco = &kesco_streams();"


def test_a_barrier_in_a_loop_of_main_begins_a_stretch(tmp_path: Path) -> None:
    body = f"int main() {{ {BUFFERS} for (int i = 0; i < 99; ++i) {{ {WORK}\n cudaDeviceSynchronize();\n }}\n}}\n"
    assert rewritten(tmp_path, body) == [MAIN_FETCH, "kesco = kesco_stretch(kesco, 0);"]


@pytest.mark.parametrize(
    "body",
    [
        f"int main() {{ {BUFFERS} {WORK} cudaDeviceSynchronize(); {WORK} cudaDeviceSynchronize(); }}\n",
        f"int main(int argc, char**) {{ {BUFFERS} {WORK} for (int i = 0; i < argc; ++i) cudaDeviceSynchronize(); }}\n",
    ],
    ids=["no loop", "no work in the loop"],
)
def test_what_is_not_repeated_is_not_timed(tmp_path: Path, body: str) -> None:
    assert rewritten(tmp_path, body) == [MAIN_FETCH]


def test_a_function_begins_a_stretch_at_its_entry(tmp_path: Path) -> None:
    body = f"void step(float* x, float* y) {{\n {WORK}\n cudaDeviceSynchronize();\n}}\n"
    main = f"int main() {{ {BUFFERS} for (int i = 0; i < 9; ++i) step(x, y); }}\n"
    found = [line for line in rewritten(tmp_path, body + main) if "_at_entry[]" not in line]
    assert found[0].startswith("KescoStreams* kesco = kesco_stretch(&kesco_streams")
    assert found[0].endswith(", 0, false);")
    assert found[1:] == ["kesco = kesco_stretch(kesco, 1);"]


def test_no_line_is_put_where_the_streams_are_not_fetched_yet(tmp_path: Path) -> None:
    body = f"void step(float* x, float* y) {{\n cudaDeviceSynchronize();\n {WORK}\n}}\n"
    main = f"int main() {{ {BUFFERS} for (int i = 0; i < 9; ++i) step(x, y); }}\n"
    assert not any("kesco_stretch" in line for line in rewritten(tmp_path, body + main))


RUNTIME = """\
#include <chrono>
#include <cstdio>
struct Clock {  // advanced by hand
  using duration = std::chrono::microseconds;
  using rep = duration::rep;
  using period = duration::period;
  using time_point = std::chrono::time_point<Clock>;
  static constexpr bool is_steady = true;
  static long ticks;
  static time_point now() { return ++looks, time_point(duration(ticks)); }
  static int looks;
};
long Clock::ticks = 0;
int Clock::looks = 0;
using cudaStream_t = int*;
using cudaEvent_t = int*;
enum cudaError_t { cudaSuccess };
enum { cudaEnableDefault, cudaEventDisableTiming };
enum cudaDriverEntryPointQueryResult { None };
#define CUDART_VERSION 12050
int synchronizes, records, waits;
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void**, unsigned, int, cudaDriverEntryPointQueryResult*) {
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { ++synchronizes; return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = new int; return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, int) { *e = new int; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { ++records; return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { ++waits; return cudaSuccess; }
"""
DRIVER = """\
// Prints for each repetition whether it ran on several streams (S) or on one (1), then the calls that were made.
int main(int count, char** arguments) {
  const int from = count > 5 ? std::atoi(arguments[5]) : 30;
  const int many = std::atoi(arguments[1]), one = std::atoi(arguments[2]), grown = std::atoi(arguments[3]);
  const int turns = std::atoi(arguments[4]);
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < turns; ++i) {
    kesco = kesco_stretch(kesco, 0);
    const bool single = kesco->stream[0] == kesco->stream[1];
    std::printf(!single ? "S" : kesco->stream[0] == nullptr ? "1" : "?");  // the one is the default stream
    cudaEventRecord(kesco->done[0], kesco->stream[0]);
    cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);
    const bool later = i >= from && (turns == 40 || count > 5 || !single);
    Clock::ticks += i == 24 ? 900 : later ? grown : single ? one : many;  // once the machine was busy
  }
  std::printf(" %d %d %d %d\\n", records, waits, synchronizes, Clock::looks);
}
"""


@pytest.fixture(scope="module")
def timed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stretches")
    text = prologue(2, 1, Parts(stretches=1)).replace("std::chrono::steady_clock", "Clock")
    (folder / "timed.cpp").write_text(RUNTIME + text + DRIVER)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Werror", "-pthread", "timed.cpp", "-o", "timed"], cwd=folder, check=True
    )
    return folder / "timed"


@pytest.mark.parametrize(
    ("times", "environment", "wanted"),
    [
        ((15, 5, 5), {}, ("SSSSS" + "11111") * 3 + "1" * 10),  # fifteen times each way, and one stream is faster
        ((5, 6, 5), {}, ("SSSSS" + "11111") * 3 + "S" * 10),  # slower by a fifth
        ((500, 510, 500), {}, ("SSSSS" + "11111") * 3 + "1" * 10),  # a little slower, but not by a twentieth
        ((5, 15, 5), {}, "SSSSS1111" + "S" * 31),  # hopeless
        ((5000, 5, 5000), {}, "S" * 40),  # more than two milliseconds: never tried
        ((15, 5, 9000), {}, ("SSSSS" + "11111") * 3 + "111" + "S" * 7),  # the work has grown: several streams again
        ((15, 5, 5), {"KESCO_STREAMS": "2"}, "S" * 40),  # said from outside: nothing is tried
        ((15, 5, 5), {"KESCO_STREAMS": "1"}, "1" * 40),
    ],
)  # fmt: skip
def test_the_faster_way_stays(
    timed: Path, times: tuple[int, int, int], environment: dict[str, str], wanted: str
) -> None:
    arguments = [str(one) for one in (*times, 40)]
    done = subprocess.run([timed, *arguments], env=environment, capture_output=True, text=True, check=True)
    modes, *counts, _ = done.stdout.split()
    several = wanted.count("S")
    switches = sum(a != b for a, b in itertools.pairwise(wanted))
    assert (modes, counts) == (wanted, [str(several), str(several), str(switches)])


def test_once_it_is_settled_it_seldom_looks_at_the_clock(timed: Path) -> None:
    """A look at the clock costs as much as a hundredth of the smallest repetitions."""
    done = subprocess.run([timed, "15", "5", "5", "350"], capture_output=True, text=True, check=True)
    trial, rest = 2 * 30, 2 * 320 / 16
    assert int(done.stdout.split()[-1]) == trial + rest
    done = subprocess.run([timed, "5", "6", "5", "350"], capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[-1]) == trial  # on several streams it stays until it is tried again


def test_work_that_grows_later_is_seen_by_the_next_look(timed: Path) -> None:
    done = subprocess.run([timed, "15", "5", "9000", "60", "33"], capture_output=True, text=True, check=True)
    looked_at = 30 + 16
    assert done.stdout.split()[0] == ("SSSSS" + "11111") * 3 + "1" * (looked_at + 3 - 30) + "S" * (60 - looked_at - 3)


def test_it_is_tried_again_much_later_since_chance_may_err(timed: Path) -> None:
    """Several streams took longer for the first thirty repetitions only."""
    done = subprocess.run([timed, "15", "5", "4", "450"], capture_output=True, text=True, check=True)
    modes = done.stdout.split()[0]
    first, last = modes.index("1" * 300), modes.rindex("1")
    assert set(modes[first : first + 350]) == {"1"}
    assert last < 425, "it went back to several streams"
    assert modes[last + 1 :] == "S" * (449 - last)


PACED = f"void step(float* x, float* y) {{\n {WORK}\n}}\n"


@pytest.mark.parametrize(
    ("calls", "timed"),
    [
        ("for (int i = 0; i < 9; ++i) step(x, y);", True),
        ("for (int i = 0; i < 9; ++i) all(x, y);", True),
        ("step(x, y);", False),
        ("step(x, y); step(y, x);", False),
    ],
    ids=["loop", "loop around a caller", "once", "twice"],
)
def test_a_function_without_a_wait_is_timed_if_it_runs_again_and_again(tmp_path: Path, calls: str, timed: bool) -> None:
    all_of_it = "static void all(float* x, float* y) { step(x, y); }\n"
    main = f"int main() {{ {BUFFERS} {calls} cudaDeviceSynchronize(); }}\n"
    found = rewritten(tmp_path, f"static {PACED}{all_of_it}{main}")
    fetches = [line for line in found if line.startswith("KescoStreams* kesco = ")]
    assert len(fetches) == 1
    assert ("kesco_paced(0" in fetches[0]) == timed


def test_a_function_that_other_files_call_is_timed(tmp_path: Path) -> None:
    assert any("kesco_paced(0, " in line for line in rewritten(tmp_path, PACED))


@pytest.mark.parametrize("head", ["for (int i = 0; i < argc; ++i)", "do", "while (argc < 99)"])
def test_a_loop_without_a_wait_is_timed_from_turn_to_turn(tmp_path: Path, head: str) -> None:
    tail = " while (++argc < 99);" if head == "do" else ""
    turn = f"{head} {{  // a turn\n  /* with */ // comments\n  ++argc;\n  {WORK}\n  }}{tail}\n"
    body = f"int main(int argc, char**) {{ {BUFFERS}\n  {turn} cudaDeviceSynchronize();\n}}\n"
    assert rewritten(tmp_path, body) == [MAIN_FETCH, "kesco = kesco_pace(kesco, 0);"]


@pytest.mark.parametrize(
    ("between", "inside"), [("", 0), (" other(x);", 1)], ids=["at the entry", "unseen code inside"]
)
def test_what_came_before_is_waited_for_once_and_not_in_each_turn(tmp_path: Path, between: str, inside: int) -> None:
    turn = f"for (int i = 0; i < n; ++i) {{\n{between} up<<<1, 32>>>(x);\n up<<<1, 32>>>(y);\n }}"
    path = tmp_path / "app.cu"
    path.write_text(f"{KERNELS}void other(float*);\nvoid step(float* x, float* y, int n) {{\n {turn}\n}}\n")
    text = compile_file(str(path), Options(launches="keep")).text.decode()
    loop = text[text.index("for (int i = 0; i < n") : text.rindex("up<<<")]
    barrier = "// kesco: streams of code not seen here come first"
    assert (loop.count(barrier), text.count(barrier)) == (inside, 1)


@pytest.mark.parametrize(("before", "barriers"), [("", 0), ("other(x); ", 1)], ids=["all is seen", "unseen code"])
def test_what_only_this_file_calls_waits_for_no_code_that_is_not_there(
    tmp_path: Path, before: str, barriers: int
) -> None:
    kept = "float *x, *y; Both() { cudaMalloc(&x, 128); cudaMalloc(&y, 128); } ~Both() { cudaFree(x); cudaFree(y); }"
    steps = f"template <int D> struct Both {{ {kept}\n  void step(int n) {{\n {before}{WORK}\n }}\n}};\n"
    main = "int main() {\n  Both<3> both;\n  for (int i = 0; i < 99; ++i) both.step(i);\n}\n"
    path = tmp_path / "app.cu"
    path.write_text(f"{KERNELS}void other(float*);\n{steps}{main}")
    text = compile_file(str(path), Options(launches="keep")).text.decode()
    assert "<<<1, 32, 0, kesco->stream[1]>>>" in text
    assert text.count("// kesco: streams of code not seen here come first") == barriers


def test_the_innermost_loops_are_timed(tmp_path: Path) -> None:
    inner = f"for (int i = 0; i < 99; ++i) {{ {WORK} }}\n"
    outer = f"for (int i = 0; i < 99; ++i) {{\n {inner} {inner} up<<<1, 32>>>(x);\n }}\n"
    found = rewritten(tmp_path, f"int main() {{ {BUFFERS}\n{outer}\n}}\n")
    assert found == [MAIN_FETCH, *(f"kesco = kesco_pace(kesco, {n});" for n in (0, 1))]


@pytest.mark.parametrize(
    "body",
    [
        f"for (int i = 0; i < argc; ++i) {{ {WORK}\n cudaDeviceSynchronize(); putchar(i);\n }}",  # a stretch
        f"for (int i = 0; i < argc; ++i) {{ up<<<1, 32>>>(x); }} {WORK}",  # one stream
        f"for (int i = 0; i < 40; ++i) {{ {WORK} }}",  # too few turns
        f"const int steps = 40; for (int i = 0; i < steps; ++i) {{ {WORK} }}",
        f"{WORK}",
    ],
)
def test_what_is_timed_otherwise_or_not_repeated_is_not_paced(tmp_path: Path, body: str) -> None:
    main = f"#include <cstdio>\nint main(int argc, char**) {{ {BUFFERS}\n{body}\n cudaDeviceSynchronize();\n}}\n"
    assert not any("kesco_pace" in line for line in rewritten(tmp_path, main))


DEVICE = """\
#include <algorithm>
#include <cstdio>
#include <cstdlib>
struct Event { double at; };  // when the device comes to it
using cudaStream_t = int*;
using cudaEvent_t = Event*;
enum cudaError_t { cudaSuccess };
enum { cudaEnableDefault, cudaEventDisableTiming };
enum cudaDriverEntryPointQueryResult { None };
#define CUDART_VERSION 12050
const cudaStream_t cudaStreamLegacy = new int;
double host, device;  // microseconds: now, and when the device will have done all that was issued
int records, made;
int query(cudaEvent_t event) { return event->at <= host ? 0 : 600; }
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** entry, unsigned, int,
                                             cudaDriverEntryPointQueryResult*) {
  if (std::string(name) == "cuEventQuery") *entry = reinterpret_cast<void*>(query);
  return cudaSuccess;
}
cudaError_t cudaFree(void*) { return cudaSuccess; }
cudaError_t cudaDeviceSynchronize() { std::abort(); }
cudaError_t cudaStreamCreate(cudaStream_t* s) { *s = new int; return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { ++made; *e = new Event{}; return cudaSuccess; }
cudaError_t cudaEventDestroy(cudaEvent_t e) { --made; delete e; return cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, int) { *e = new Event{}; return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t) {
  ++records, e->at = std::max(host, device);
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) {
  *ms = static_cast<float>((b->at - a->at) / 1000);
  return cudaSuccess;
}
"""
CALLS = """\
// Two threads call a function again and again. Prints on how many streams it ran, and how often it asked the device.
#include <thread>
int main(int, char** arguments) {
  for (int half = 0; half < 2; ++half) std::thread([&] {
    double issue[2], work[2];  // microseconds of host and device on several streams and on one
    for (int i = 0; i < 4; ++i) (i < 2 ? issue[i] : work[i - 2]) = std::atof(arguments[1 + i]);
    for (int i = 0; i < std::atoi(arguments[5]) / 2; ++i) {
      KescoStreams* kesco = kesco_paced(0);
      const bool way = kesco->stream[0] == nullptr;
      std::printf(way == (kesco->stream[1] == nullptr) ? way ? "1" : "S" : "?");
      host += issue[way];
      device = std::max(host, device) + work[way];
      host = std::max(host, device - 60 * work[way]);  // the driver's queue is full
    }
  }).join();
  std::printf(" %d %d\\n", records, made);
}
"""


@pytest.fixture(scope="module")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("paces")
    (folder / "paced.cpp").write_text("#include <string>\n" + DEVICE + prologue(2, 1, Parts(paces=1)) + CALLS)
    command = ["g++", "-std=c++17", "-Wall", "-Werror", "-pthread", "paced.cpp", "-o", "paced"]
    subprocess.run(command, cwd=folder, check=True)
    return folder / "paced"


@pytest.mark.parametrize(
    ("issue", "work", "wanted"),
    [
        ((14, 8), (6, 7), "1"),  # launching is all that takes time
        ((14, 8), (6, 13.8), "1"),  # the device is behind on one stream, and still not slower
        ((14, 8), (6, 20), "S"),  # it would be slower
        ((14, 8), (30, 50), "S"),  # the device has work enough
        ((14, 8), (100, 97), "1"),  # and gains nothing: more streams only cost time
        ((600, 8), (30, 50), "1"),  # launching takes more than half a millisecond
        ((14, 8), (700, 800), "S"),  # the work does
        ((14, 8), (700, 690), "1"),
    ],
)
def test_a_function_without_a_wait_runs_on_what_is_faster_on_the_device(
    paced: Path, issue: tuple[float, float], work: tuple[float, float], wanted: str
) -> None:
    arguments = [str(one) for one in (*issue, *work, 560)]
    done = subprocess.run([paced, *arguments], env={}, capture_output=True, text=True, check=True)
    ways, records, made = done.stdout.split()
    assert "?" not in ways
    assert set(ways[490:]) == {wanted}
    assert int(records) <= 70, "once it is settled it asks seldom"
    assert int(made) <= 20, "its threads have the same events"
    assert ways[:250].count("1") <= 30 or wanted == "1"
    if max(issue[0], work[0]) > 90:  # there is less to gain: the first executions are on several streams
        assert set(ways[:256]) == {"S"}
        assert ways.count("1") <= 12 or wanted == "1"


@pytest.mark.parametrize(("limit", "wanted"), [("2", "S"), ("1", "1")])
def test_a_function_without_a_wait_is_not_timed_where_it_is_said_from_outside(
    paced: Path, limit: str, wanted: str
) -> None:
    command = [paced, "14", "8", "6", "7", "50"]
    done = subprocess.run(command, env={"KESCO_STREAMS": limit}, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [wanted * 50, "0", "0"]


THREE = """\
// Prints for each repetition which prefetches are made: all (A), of what is large (L), or none, on one stream (N).
int main(int, char** arguments) {
  KescoStreams* kesco = &kesco_streams();
  for (int i = 0; i < 60; ++i) {
    kesco = kesco_stretch(kesco, 0);
    const bool single = kesco->stream[0] == nullptr;
    const char way = kesco->least == 1 ? 'A' : kesco->least == KescoStreams::large ? 'L' : 'N';
    std::printf("%c", single == (way == 'N') ? way : '?');
    Clock::ticks += std::atoi(arguments[way == 'A' ? 1 : way == 'N' ? 2 : 3]);
  }
}
"""


@pytest.fixture(scope="module")
def prefetching(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The part of the prologue that does not prefetch itself."""
    folder = tmp_path_factory.mktemp("prefetching")
    text = prologue(2, 1, Parts(stretches=1, prefetches=True)).replace("std::chrono::steady_clock", "Clock")
    ways, found, _ = text.partition("// The pages of a managed allocation")
    assert found
    (folder / "ways.cpp").write_text(RUNTIME + ways + "}\n" + THREE)
    subprocess.run(
        ["g++", "-std=c++17", "-Wall", "-Werror", "-pthread", "ways.cpp", "-o", "ways"], cwd=folder, check=True
    )
    return folder / "ways"


@pytest.mark.parametrize(
    ("times", "environment", "wanted"),
    [
        ((10, 20, 15), {}, "AAAAANNNNLLLLL" + "AAAAALLLLL" * 2 + "A" * 26),  # none takes twice as long
        ((10, 12, 11), {}, "AAAAANNNNNLLLLL" * 3 + "A" * 15),
        ((14, 12, 11), {}, "AAAAANNNNNLLLLL" * 3 + "L" * 15),
        ((14, 10, 11), {}, "AAAAANNNNNLLLLL" * 3 + "N" * 15),
        ((5000, 1, 1), {}, "A" * 60),
        ((14, 10, 11), {"KESCO_STREAMS": "2"}, "A" * 60),
        ((14, 10, 11), {"KESCO_STREAMS": "1"}, "N" * 60),  # the serial program
    ],
)
def test_it_finds_out_which_prefetches_pay(
    prefetching: Path, times: tuple[int, ...], environment: dict[str, str], wanted: str
) -> None:
    done = subprocess.run([prefetching, *map(str, times)], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == wanted
