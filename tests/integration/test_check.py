"""`kesco check`: planted races are found with the right pair of lines, correct programs are left in peace."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from integration.compiled import compile_and_keep

from kesco.check import Prepared, Report, Run, endings, observe, prepare
from kesco.check.places import Places
from kesco.errors import InputError
from kesco.options import Options
from kesco.toolchain import dryrun
from kesco.toolchain.model import Toolchain
from kesco.verify.races import Findings

HERE = Path(__file__).parent / "check"
ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "workloads"
MANIFEST = tomllib.loads((WORKLOADS / "manifest.toml").read_text("utf-8"))


def cases(name: str) -> list[str]:
    return re.findall(r"^  CASE\((\w+)\);", (HERE / name).read_text(), re.MULTILINE)


def marked(word: str, case: str) -> int:
    """The line that a comment marks."""
    lines = (HERE / "planted.cu").read_text().splitlines()
    (line,) = [i for i, text in enumerate(lines, 1) if re.search(rf"// {word}: {case}$", text)]
    return line


def prepared(path: Path, folder: Path, *flags: str) -> Prepared:
    return prepare(str(path), (), Options(flags=flags), folder)


def run(program: Prepared, *arguments: str) -> Report:
    return observe(program, Run(arguments, limit=30))


@pytest.fixture(scope="module")
def planted(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(HERE / "planted.cu", tmp_path_factory.mktemp("planted"))


@pytest.fixture(scope="module")
def correct(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(HERE / "correct.cu", tmp_path_factory.mktemp("correct"))


@pytest.mark.parametrize("case", cases("planted.cu"))
def test_a_planted_race_is_found_with_both_lines(planted: Prepared, case: str) -> None:
    report = run(planted, case)
    pairs = {(d.notes[0].span.line, d.span.line) for d in report.diagnostics if d.span and d.notes[0].span}
    assert pairs == {(marked("first", case), marked("second", case))}
    code = "K603" if case.startswith("stale") else "K602" if case == "pointers_in_memory" else "K601"
    assert {d.code for d in report.diagnostics} == {code}


@pytest.mark.parametrize("case", cases("correct.cu"))
def test_a_correct_program_is_left_in_peace(correct: Prepared, case: str) -> None:
    report = run(correct, case)
    assert report.diagnostics == ()
    assert report.operations >= 1


# ---- the programs of the field ---------------------------------------------------------------------------------------


def small(name: str) -> list[str]:
    return [*MANIFEST[name]["small"], "--no-check"]


@pytest.mark.parametrize("name", sorted(MANIFEST))
def test_the_hand_written_workloads_have_no_race(name: str, toolchain: Toolchain, tmp_path: Path) -> None:
    report = run(prepared(WORKLOADS / name / "async.cu", tmp_path), *small(name))
    assert report.diagnostics == ()
    assert report.kernels > 1


LEFT_OUT = "WAIT_LEFT_OUT"  # in the environment: the number of the wait that a run of the output leaves out


def leave_out(lines: list[str]) -> list[str]:
    """The waits of a text that every run needs, each of which can now be left out when it runs."""
    waits = [i for i, line in enumerate(lines) if line.lstrip().startswith("cudaStreamWaitEvent(kesco->stream")]
    for number, i in enumerate(waits):
        lines[i] = f'if (std::atoi(std::getenv("{LEFT_OUT}")) != {number}) {lines[i].lstrip()}'
    return [lines[i] for i in waits]


MUTATED = ("img", "m2", "hits")
OUTPUTS = [*((name, "serial") for name in MUTATED), ("bs", "managed")]
if os.environ.get("KESCO_THOROUGH"):
    OUTPUTS += [(name, style) for name in sorted(MANIFEST) for style in ("serial", "managed")]


@pytest.mark.parametrize(("name", "style"), dict.fromkeys(OUTPUTS))
def test_the_output_has_no_race(
    name: str, style: str, toolchain: Toolchain, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the output of three of them has one as soon as any one of its waits is gone."""
    lines = compile_and_keep(WORKLOADS / name / f"{style}.cu").lines
    waits = leave_out(lines) if style == "serial" and name in MUTATED else []
    (tmp_path / "output.cu").write_text("\n".join(lines))
    program = prepared(tmp_path / "output.cu", tmp_path, f"-I{WORKLOADS / name}")
    monkeypatch.setenv(LEFT_OUT, "-1")
    assert run(program, *small(name)).diagnostics == ()
    for number, wait in enumerate(waits):
        monkeypatch.setenv(LEFT_OUT, str(number))
        report = run(program, *small(name))  # which elements a sparse product reads is in memory
        assert report.races or (name == "hits" and report.possible), f"nothing found without: {wait}"


# ---- runs that end otherwise -----------------------------------------------------------------------------------------

ODD = """
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
__global__ void set(int *p) { *p = 1; }
__global__ void part(float *x, int offset) { x[offset + threadIdx.x] = 1; }
__global__ void chosen(float *x, const int *at) { x[at[threadIdx.x]] = 1; }
__global__ void half(float *x) { x[threadIdx.x] = 1; }
__global__ void unseen(float *x, float *const *y);
int main(int, char **argv) {
  int *p, value = 0;
  cudaMalloc(&p, 1 << 20);
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  float *x = reinterpret_cast<float *>(p);
  set<<<1, 1, 0, s>>>(p);
  cudaStreamSynchronize(s);
  if (!strcmp(argv[1], "spin")) for (; value == 0; usleep(1000))
    cudaMemcpy(&value, p, 4, cudaMemcpyDeviceToHost);
  if (!strcmp(argv[1], "crash")) *reinterpret_cast<volatile int *>(8) = 1;
  if (!strcmp(argv[1], "fail")) { fprintf(stderr, "wrong result\\n"); return 3; }
  if (!strcmp(argv[1], "ipc")) { cudaIpcMemHandle_t h; cudaIpcGetMemHandle(&h, p); }
  if (!strcmp(argv[1], "parts")) for (int i = 0; i < 8; ++i) part<<<1, 32, 0, i % 2 ? s : t>>>(x, 32 * i);
  if (!strcmp(argv[1], "chosen")) for (int i = 0; i < 2; ++i) chosen<<<1, 32, 0, i ? s : t>>>(x, p + 32 * (i + 1));
  if (!strcmp(argv[1], "halves")) { half<<<1, 32, 0, s>>>(x); half<<<1, 32, 0, t>>>(x + 32); }
  if (!strcmp(argv[1], "write")) {
    char *h;
    cudaMallocHost(&h, 64);
    cudaMemcpyAsync(h, p, 64, cudaMemcpyDeviceToHost, s);
    fwrite(h, 1, 64, stdout);
  }
}
"""


@pytest.fixture(scope="module")
def odd(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    folder = tmp_path_factory.mktemp("odd")
    (folder / "odd.cu").write_text(ODD)
    return prepared(folder / "odd.cu", folder)


@pytest.mark.parametrize(
    ("case", "code", "said"),
    [
        ("spin", "K613", "did not end within 1 seconds"),
        ("crash", "K614", "SIGSEGV"),
        ("ipc", "K610", "cudaIpcGetMemHandle is not supported"),
    ],
)
def test_a_run_without_an_end_is_one_message(odd: Prepared, case: str, code: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        observe(odd, Run((case,), limit=1))
    (problem,) = caught.value.diagnostics
    assert problem.code == code
    assert said in problem.message
    assert problem.help


def test_a_record_that_cannot_be_written_is_one_message(odd: Prepared, tmp_path: Path) -> None:
    ran = dryrun.run_program(odd.folder / "program", ("x",), tmp_path / "nowhere" / "record", tmp_path, 10)
    places = Places.of(odd.toolchain)
    (problem,) = endings.how_it_ended("odd.cu", ran, Findings(), places, 10)
    assert problem.code == "K616"


def test_a_program_that_fails_is_a_warning(odd: Prepared) -> None:
    (warning,) = run(odd, "fail").diagnostics
    assert warning.code == "K615"
    assert warning.notes[0].message == "it said: wrong result"


def test_parts_that_are_not_known_are_only_possible_races(odd: Prepared) -> None:
    report = run(odd, "chosen")
    assert [d.code for d in report.diagnostics] == ["K602"]
    assert (report.races, report.possible) == (0, 1)


@pytest.mark.parametrize("case", ["parts", "halves"])
def test_parts_that_are_apart_are_none(odd: Prepared, case: str) -> None:
    assert run(odd, case).diagnostics == ()


def test_a_system_call_on_watched_memory_works_and_is_seen(odd: Prepared) -> None:
    (race,) = run(odd, "write").diagnostics
    assert race.code == "K601"
    assert "the host reads 'h'" in race.message


def kesco(*arguments: str, folder: Path) -> tuple[int, str, str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "kesco", "check", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stdout, done.stderr


def test_the_command_line(toolchain: Toolchain, tmp_path: Path) -> None:
    code, _, said = kesco(str(HERE / "planted.cu"), "--", "missing_wait", folder=tmp_path)
    assert code == 1
    assert re.search(r"planted\.cu:\d+:\d+: error\[K601\]: 'twice' on stream \d", said)
    assert said.splitlines()[-1].endswith("1 race")
    code, out, _ = kesco("--json", str(HERE / "planted.cu"), "--", "missing_wait", folder=tmp_path)
    assert code == 1
    assert json.loads(out)["races"] == 1
    code, _, said = kesco("nowhere.cu", folder=tmp_path)
    assert (code, "K102" in said) == (3, True)


def test_what_is_not_the_runtime_is_named(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("int elsewhere(); int main() { return elsewhere(); }\n")
    code, _, said = kesco("a.cu", folder=tmp_path)
    assert code == 3
    assert "error[K611]: the program cannot be linked without 'elsewhere()'" in said
    (tmp_path / "b.cpp").write_text("int elsewhere() { return 0; }\n")
    code, _, said = kesco("a.cu", "--with", "b.cpp", folder=tmp_path)
    assert code == 0
    assert "K617" in said


LIBRARIES = """
#include <cstdlib>
extern "C" {
int cublasCreate_v2(void **);
int cublasSetStream_v2(void *, cudaStream_t);
int cublasDestroy_v2(void *);
int cublasSgemm_v2(void *, int, int, int, int, int, const float *, const float *, int, const float *, int,
                   const float *, float *, int);
int cufftPlan1d(int *, int, int, int);
int cufftSetStream(int, cudaStream_t);
int cufftExecC2C(int, void *, void *, int);
}
__global__ void fill(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = 1; }
int main(int, char **argv) {
  float *x, *y, *z, one = 1;
  for (float **p : {&x, &y, &z}) cudaMalloc(p, 4096);
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
  void *handle;
  int plan, guard = 7;
  cublasCreate_v2(&handle);
  cublasSetStream_v2(handle, argv[1][0] == 'b' ? t : s);
  cufftPlan1d(&plan, 512, 0, 1);
  cufftSetStream(plan, argv[1][0] == 'f' ? t : s);
  if (guard != 7) return 1;
  fill<<<1, 256, 0, s>>>(y, 256);
  cublasSgemm_v2(handle, 0, 0, 32, 32, 32, &one, x, 32, y, 32, &one, z, 32);  // reads what was filled
  cufftExecC2C(plan, z, z, -1);  // reads what the product is
  cublasDestroy_v2(handle);
  cudaDeviceSynchronize();
}
"""


def test_calls_of_libraries_are_operations_of_their_handles_streams(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(LIBRARIES)
    program = prepared(tmp_path / "a.cu", tmp_path)

    def messages(case: str) -> list[str]:
        found = run(program, case).diagnostics
        assert {one.code for one in found} <= {"K602"}
        return sorted(one.message.split(", and nothing")[0] for one in found)

    assert messages("none") == []
    product = "'cublasSgemm' on stream 1 (made in line 19) and 'fill' in line 27 may touch the same bytes of 'p'"
    assert product in messages("b")
    assert any(one.startswith("'cufftExecC2C' on stream 1") for one in messages("f"))


DEFAULT_STREAMS = """
#include <thread>
__global__ void set(int *p) { *p = 1; }
int main() {
  int *p;
  cudaMalloc(&p, 4);
  std::thread([&] { set<<<1, 1>>>(p); }).join();
  std::thread([&] { set<<<1, 1>>>(p); }).join();
  cudaDeviceSynchronize();
}
"""


def test_the_default_stream_of_each_thread(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(DEFAULT_STREAMS)
    assert kesco("a.cu", folder=tmp_path)[0] == 0
    code, _, said = kesco("--flags", "--default-stream per-thread", "a.cu", folder=tmp_path)
    assert code == 1
    assert "'set' on the default stream of its thread writes 'p'" in said


def test_strict_counts_possible_races(toolchain: Toolchain, tmp_path: Path) -> None:
    (tmp_path / "odd.cu").write_text(ODD)
    assert kesco("odd.cu", "--", "chosen", folder=tmp_path)[0] == 0
    assert kesco("--strict", "odd.cu", "--", "chosen", folder=tmp_path)[0] == 1
