"""The recorder in front of the CUDA runtime, which here is the dry run's: it changes nothing, and records the same.

Program, recorder and runtime are in one process, and runtime and recorder both write a record. The two must agree line
by line: the same addresses, streams, events and stacks of the program. On a GPU the runtime is the real one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from integration.replaced import Runtime
from integration.test_check import DEFAULT_STREAMS, HERE, ODD, ROOT, cases, marked

from kesco.check import Prepared, Run, endings, observe, prepare
from kesco.check.places import Places
from kesco.errors import InputError, ToolchainError
from kesco.options import Options
from kesco.source import Span
from kesco.toolchain import recorder
from kesco.toolchain.model import Toolchain
from kesco.toolchain.runtimes import Kind, cxx_compiler
from kesco.verify.races import Findings
from kesco.verify.trace import Failed, Trace, Unsupported, read

BY_THE_HOST = {"overwritten_source", "read_too_early", "managed"}  # the host's own accesses are not seen on a GPU
CALLS = ["kinds_of_memory", "arrays", "names", "errors", "graphs"]
SILENT = "no version information available"  # says the loader, since the dry run's runtime has no versions


def built(name: str, runtime: Runtime, folder: Path, *flags: str) -> Prepared:
    return prepare(str(HERE / f"{name}.cu"), (), Options(flags=flags), folder, gpu=True)


@pytest.fixture(scope="module")
def planted(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return built("planted", runtime, tmp_path_factory.mktemp("planted program"))  # names with spaces are no obstacle


@pytest.fixture(scope="module")
def correct(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return built("correct", runtime, tmp_path_factory.mktemp("correct"))


@pytest.fixture(scope="module")
def calls(runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return built("calls", runtime, tmp_path_factory.mktemp("calls"))


def run(program: Prepared, case: str, runtime: Runtime, recorded: bool, front: str = "") -> tuple[str, str, str]:
    """What a program prints, the record of the dry run's runtime, and that of the recorder."""
    folder = program.folder
    own, before = folder / f"own-{case}", folder / f"recorder-{case}"
    before.unlink(missing_ok=True)
    environment = {
        **runtime.environment(), "CUDA_DRY_RUN_RECORD": str(own), "CUDA_DRY_RUN_KERNELS": str(folder / "kernels")
    }  # fmt: skip
    if recorded:
        environment["LD_LIBRARY_PATH"] += f":{folder}"
        environment |= {
            "CUDA_RECORDER_RECORD": str(before),
            "CUDA_RECORDER_KERNELS": str(folder / "kernels"),
            "CUDA_RECORDER_PRELOAD": "",
            "LD_PRELOAD": f"{Kind.RECORDER.value} {front}".strip(),
        }
    done = subprocess.run(
        [folder / "program", case], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    assert [line for line in done.stderr.splitlines() if SILENT not in line] == []
    texts = [path.read_bytes().rstrip(b"\0").decode() if path.exists() else "" for path in (own, before)]
    return done.stdout, texts[0], texts[1]


STACK_AT = {"S": 3, "A": 4, "F": 1, "K": 1, "M": 1, "L": 1, "R": 2, "W": 2, "H": 2, "Z": 0}


def comparable(text: str, program: Prepared) -> list[tuple[str, ...]]:
    """The lines of a record, with places of the program for numbers of stacks.

    Left out: where an array is, which nobody is told, and when the default stream is met first, which for the dry run
    may be in a call that fails.
    """
    for number, base in enumerate(re.findall(r"^A \d+ y (\w+) ", text, re.MULTILINE)):
        text = re.sub(rf"\b{base}\b", f"{number:x}", text)
    trace = read(text)
    places = Places.of(program.toolchain)
    places.load(trace)
    result = []
    for line in text.splitlines():
        letter, *words = line.split(" ")
        if letter in STACK_AT:
            at = STACK_AT[letter]
            stack: tuple[Span, ...] = places.stack(int(words[at]))
            words[at] = " ".join(f"{one.path}:{one.line}" for one in stack)
        if letter not in "PE" and not (letter == "S" and words[2] == "l"):
            result.append((letter, *words))
    return result


def same(program: Prepared, case: str, runtime: Runtime) -> list[tuple[str, ...]]:
    plain, _, _ = run(program, case, runtime, recorded=False)
    said, own, before = run(program, case, runtime, recorded=True)
    assert said == plain
    lines = comparable(before, program)
    assert lines == comparable(own, program)
    assert lines[-1] == ("Q",)
    return lines


@pytest.mark.parametrize("case", cases("planted.cu"))
def test_the_record_of_a_planted_race_is_the_same(planted: Prepared, runtime: Runtime, case: str) -> None:
    assert len(same(planted, case, runtime)) > 10


@pytest.mark.parametrize("case", cases("correct.cu"))
def test_the_record_of_a_correct_program_is_the_same(correct: Prepared, runtime: Runtime, case: str) -> None:
    assert len(same(correct, case, runtime)) > 10


@pytest.mark.parametrize("case", CALLS)
def test_the_record_of_rarer_calls_is_the_same(calls: Prepared, runtime: Runtime, case: str) -> None:
    letters = [line[0] for line in same(calls, case, runtime)]
    assert "U" not in letters
    assert letters.count("Z") == (2 if case == "errors" else 0)


def test_errors_are_passed_on_and_said(calls: Prepared, runtime: Runtime) -> None:
    said, _, before = run(calls, "errors", runtime, recorded=True)
    assert "cudaFree(gone): cudaErrorInvalidValue" in said
    errors = [(e.function, e.name) for e in read(before).events if isinstance(e, Failed)]
    (launch,) = [e for e in read(before).events if isinstance(e, Failed) and e.function == "cudaLaunchKernel"]
    places = Places.of(calls.toolchain)
    places.load(read(before))
    line = places.of_stack(launch.stack)
    assert line is not None
    assert "set<<<1, 5000" in (HERE / "calls.cu").read_text().splitlines()[line.line - 1]
    assert errors[:4] == [
        ("cudaFree", "cudaErrorInvalidValue"),
        ("cudaMemcpy", "cudaErrorInvalidValue"),
        ("cudaMemset", "cudaErrorInvalidValue"),
        ("cudaMalloc", "cudaErrorMemoryAllocation"),
    ]


def test_kernels_have_the_names_of_their_device_code(calls: Prepared, runtime: Runtime) -> None:
    lines = same(calls, "names", runtime)
    names = [line[3] for line in lines if line[0] == "K"]
    assert names == ["_ZN12_GLOBAL__N_15innerIfEEvPT_", "_ZL6hiddenPf", "_Z5countPf", "_Z6gatherPKPfS_"]
    assert set(names) <= set(calls.effects)
    (launch,) = [line for line in lines if line[0] == "K" and line[3] == names[-1]]
    assert [word for word in launch if word.startswith("*")] == ["*2"]  # 'a', through a copy of a copy


def test_threads_keep_their_books(calls: Prepared, runtime: Runtime) -> None:
    said, _, before = run(calls, "threads", runtime, recorded=True)
    assert said.splitlines()[0] == "joined"
    lines = [line.split(" ") for line in before.splitlines()]
    letters = [line[0] for line in lines]
    assert (letters.count("F"), letters.count("U"), letters.count("E")) == (4 * 200 * 2, 0, 0)
    assert letters.count("A") == 4 * 200 * 2 + 6  # three of device memory, one pinned, two symbols
    live: set[str] = set()
    for letter, *words in lines:
        if letter == "A":
            assert words[2] not in live
            live.add(words[2])
        elif letter == "F":
            live.remove(words[0])


def test_what_the_program_starts_is_not_recorded(calls: Prepared, runtime: Runtime) -> None:
    said, _, _ = run(calls, "starts_another", runtime, recorded=True)
    assert "[] []" in said.splitlines()


@pytest.fixture(scope="module")
def front(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> str:
    made = tmp_path_factory.mktemp("front") / "front.so"
    command = [*cxx_compiler(toolchain), "-x", "c", "-shared", "-fPIC", str(HERE / "front.c"), "-o", str(made), "-ldl"]
    subprocess.run(command, check=True)
    return str(made)


def test_unknown_calls_go_through_untouched_and_are_named(calls: Prepared, runtime: Runtime, front: str) -> None:
    said, _, before = run(calls, "opens", runtime, recorded=True, front=front)
    assert said.splitlines()[:3] == [
        "cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess): cudaSuccess",
        "cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess): cudaSuccess",
        "0x1234",
    ]
    trace = read(before)
    (unknown,) = [one for one in trace.events if isinstance(one, Unsupported)]
    assert unknown.function == "cudaIpcOpenMemHandle"
    places = Places.of(calls.toolchain)
    places.load(trace)
    line = places.of_stack(unknown.stack)
    assert line is not None
    assert "cudaIpcOpenMemHandle" in (HERE / "calls.cu").read_text().splitlines()[line.line - 1]


def test_a_symbol_has_one_name_in_the_record(calls: Prepared, runtime: Runtime, front: str) -> None:
    _, _, before = run(calls, "opens", runtime, recorded=True, front=front)
    lines = [line.split(" ") for line in before.splitlines()]
    (base,) = [int(line[3], 16) for line in lines if line[0] == "A" and line[-1] == "table"]
    launch, vague = [line for line in lines if line[0] == "K"]
    assert (launch[7], vague[7]) == ("=", "?")
    assert int.from_bytes(bytes.fromhex(launch[8]), "little") == base + 12
    assert not [line for line in lines if line[0] == "A" and line[4] == "12345"]  # that call failed


def test_memory_that_is_given_out_again_before_its_end_is_heard_of(
    calls: Prepared, runtime: Runtime, front: str
) -> None:
    _, _, before = run(calls, "opens", runtime, recorded=True, front=front)
    lines = comparable(before, calls)
    pinned = [line for line in lines if line[0] == "F" or line[:1] + line[2:3] == ("A", "p")]
    assert [line[0] for line in pinned] == ["A", "F", "A"]
    assert [line[4] for line in pinned if line[0] == "A"] == ["65536", "64"]
    line = int(pinned[1][2].split(" ")[0].rsplit(":", 1)[1])
    assert "cudaFreeHost(host)" in (HERE / "calls.cu").read_text().splitlines()[line - 1]


# ---- the command -----------------------------------------------------------------------------------------------------


@pytest.fixture
def instead(runtime: Runtime, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in runtime.environment().items():
        monkeypatch.setenv(name, value)


@pytest.mark.usefixtures("instead")
@pytest.mark.parametrize("case", cases("planted.cu"))
def test_a_planted_race_is_found(planted: Prepared, case: str) -> None:
    report = observe(planted, Run((case,), limit=30))
    pairs = {(d.notes[0].span.line, d.span.line) for d in report.diagnostics if d.span and d.notes[0].span}
    assert pairs == (set() if case in BY_THE_HOST else {(marked("first", case), marked("second", case))})


@pytest.mark.usefixtures("instead")
@pytest.mark.parametrize("case", cases("correct.cu"))
def test_a_correct_program_is_left_in_peace(correct: Prepared, case: str) -> None:
    report = observe(correct, Run((case,), limit=30))
    assert report.diagnostics == ()
    assert report.operations >= 1


@pytest.mark.usefixtures("instead")
def test_errors_of_the_runtime_are_warnings(calls: Prepared) -> None:
    report = observe(calls, Run(("errors",), limit=30))
    codes = [d.code for d in report.diagnostics]
    assert codes.count("K603") == 2
    said = {d.message: [note.message for note in d.notes] for d in report.diagnostics if d.code == "K620"}
    assert said["cudaSetDevice returned cudaErrorInvalidDevice: that call is not in the record"] == []
    first = said["cudaFree returned cudaErrorInvalidValue: that call is not in the record"]
    assert first == ["so did cudaMemcpy", "so did cudaMemset"]
    assert set(codes) == {"K603", "K620"}


@pytest.mark.usefixtures("instead")
def test_a_run_that_ends_otherwise_gets_other_advice(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "odd.cu").write_text(ODD)
    program = prepare(str(tmp_path / "odd.cu"), (), Options(), tmp_path, gpu=True)
    for case, code, said in (("spin", "K613", "within 1 seconds"), ("crash", "K614", "SIGSEGV")):
        with pytest.raises(InputError) as caught:
            observe(program, Run((case,), limit=1))
        (problem,) = caught.value.diagnostics
        assert (problem.code, said in problem.message, "dry run" in str(problem.help)) == (code, True, False)
    (warning,) = observe(program, Run(("fail",), limit=30)).diagnostics
    assert (warning.code, "results came from the GPU" in str(warning.help)) == ("K615", True)
    assert {d.code for d in observe(program, Run(("chosen",), limit=30)).diagnostics} == {"K602"}


@pytest.mark.usefixtures("instead")
def test_a_record_without_room_leaves_the_program_alone(calls: Prepared) -> None:
    with pytest.raises(InputError) as caught:
        observe(calls, Run(("no_room",), limit=60))
    (problem,) = caught.value.diagnostics
    assert problem.code == "K616"
    assert re.search(r"[1-9]\d{4} operations recorded until then", problem.notes[0].message)


@pytest.mark.usefixtures("instead")
def test_a_record_that_cannot_be_opened_leaves_the_program_alone(calls: Prepared, tmp_path: Path) -> None:
    program = calls.folder / "program"
    ran = recorder.run_program(calls.toolchain, program, ("names",), tmp_path / "no" / "record", tmp_path, 30)
    assert ran.returncode == 0
    places = Places.of(calls.toolchain)
    problem = endings.how_it_ended("calls.cu", ran, Findings(), places, 30, True, gpu=True)[0]
    assert problem.code == "K616"


def test_what_is_not_in_the_record_is_said_once(calls: Prepared) -> None:
    places = Places.of(calls.toolchain)
    places.load(Trace(0, {}, (), True))
    findings = Findings(unsupported=(Unsupported(1, "cudaIpcOpenMemHandle"), Unsupported(2, "cudaIpcOpenMemHandle")))
    found = endings.how_it_ended("a.cu", recorder.Ran(0), findings, places, 1, gpu=True)
    assert [d.code for d in found] == ["K619", "K617"]
    assert endings.how_it_ended("a.cu", recorder.Ran(0), findings, places, 1)[0].code == "K617"


def kesco(*arguments: str, folder: Path, **environment: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-m", "kesco", "check", "--gpu", *arguments],
        cwd=folder, capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, **environment, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"},
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_without_a_gpu_there_is_one_message(runtime: Runtime, tmp_path: Path) -> None:
    code, said = kesco(str(HERE / "planted.cu"), "--", "missing_wait", folder=tmp_path, CUDA_VISIBLE_DEVICES="")
    assert code == 5
    assert "error[K618]: there is no GPU" in said
    assert said.count("error[") == 1


def test_what_nvcc_refuses_is_one_message(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text("#ifndef __clang__\n#error only for clang\n#endif\nint main() {}\n")
    code, said = kesco("a.cu", folder=tmp_path)
    assert (code, "error[K621]" in said, "only for clang" in said) == (3, True, True)


def test_without_a_shared_runtime_there_is_one_message(toolchain: Toolchain, tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text(
        "#!/bin/sh\n"
        "echo 'program: error while loading shared libraries: libcudart.so.13: cannot open shared object file' >&2\n"
        "exit 127\n"
    )
    program.chmod(0o755)
    with pytest.raises(ToolchainError) as caught:
        recorder.run_program(toolchain, program, (), tmp_path / "record", tmp_path / "kernels", 10)
    assert [d.code for d in caught.value.diagnostics] == ["K622"]
    assert "libcudart.so.13" in caught.value.diagnostics[0].message


def test_the_default_stream_of_each_thread(runtime: Runtime, tmp_path: Path) -> None:
    (tmp_path / "a.cu").write_text(DEFAULT_STREAMS)
    environment = runtime.environment()
    code, said = kesco("a.cu", folder=tmp_path, **environment)
    assert code == 0, said
    code, said = kesco("--flags", "-O2 --default-stream per-thread", "a.cu", folder=tmp_path, **environment)
    assert code == 1
    assert "'set' on the default stream of its thread writes 'p'" in said


def test_flags_that_would_spoil_the_record_are_left_out() -> None:
    flags = "-O2 -O 3 -DN=1 -Xcompiler -O3 -cudart static --cudart=none --optimize 2 -g -Xcompiler -Wall,-O1 -lfoo"
    assert recorder._kept(flags.split()) == "-DN=1 -Xcompiler -O3 -g -Xcompiler -Wall,-O1 -lfoo".split()


# ---- on a GPU --------------------------------------------------------------------------------------------------------


@pytest.mark.gpu
@pytest.mark.parametrize("case", cases("planted.cu"))
def test_a_planted_race_is_found_on_a_gpu(planted: Prepared, case: str) -> None:
    report = observe(planted, Run((case,), limit=60))
    sure = [d for d in report.diagnostics if d.code in ("K601", "K603")]
    pairs = {(d.notes[0].span.line, d.span.line) for d in sure if d.span and d.notes[0].span}
    assert pairs == (set() if case in BY_THE_HOST else {(marked("first", case), marked("second", case))})


@pytest.mark.gpu
@pytest.mark.parametrize("case", cases("correct.cu"))
def test_a_correct_program_is_left_in_peace_on_a_gpu(correct: Prepared, case: str) -> None:
    assert observe(correct, Run((case,), limit=60)).diagnostics == ()


@pytest.mark.gpu
@pytest.mark.parametrize("case", [*CALLS, "threads"])
def test_the_recorder_changes_no_result_on_a_gpu(calls: Prepared, case: str, tmp_path: Path) -> None:
    command = [str(calls.folder / "program"), case]
    alone = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    ran = recorder.run_program(calls.toolchain, Path(command[0]), (case,), tmp_path / "r", calls.folder / "kernels", 60)
    assert (ran.returncode, ran.said) == (alone.returncode, alone.stderr + alone.stdout)
