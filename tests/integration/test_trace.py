"""Traces without a GPU: the library in a program, with a CUPTI that makes activities up; records, files, numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from kesco.cli import main
from kesco.errors import InputError, ToolchainError, UsageError
from kesco.ir.activity import Activities, Activity
from kesco.toolchain.cuda import Cuda, find_cuda
from kesco.toolchain.model import Toolchain
from kesco.toolchain.native import compiler
from kesco.toolchain.places import Places
from kesco.toolchain.tracer import cupti
from kesco.tracing import trace
from kesco.tracing.overlap import common, numbers, timeline, union
from kesco.tracing.perfetto import read, to_json
from kesco.tracing.record import joined
from kesco.tracing.record import read as read_record

FAKE = Path(__file__).parent / "trace" / "fake_cupti.cpp"
# What the driver does with the library that CUDA_INJECTION64_PATH names.
DRIVER = """import ctypes, os, sys
ctypes.CDLL(os.environ["CUDA_INJECTION64_PATH"]).InitializeInjection()
print("ran", *sys.argv[1:])
"""
RECORD = """V 1 130001 77
K 5000 9000 0 1 14 64 1 1 256 1 1 32 0 512 0 _Z6squarePKfPfl
M 1000 6000 0 1 13 4000 1
X something newer
K 9000 8000 0 1 14 64 1 1 256 1 1 32 0 512 0 backwards
S 12000 13000 0 1 13 4
Y 2000 13500 1 4294967295 4
Y 2000 2100 1 14 2
D 2
E cuptiActivityEnable 35
M 20000 21"""


@pytest.fixture(scope="module")
def faked(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Cuda:
    """A toolkit whose CUPTI is the one of this folder."""
    real, _ = find_cuda(Places.current(os.environ), str(toolchain.cuda_path))
    try:
        include, _ = cupti(real)
    except ToolchainError:
        pytest.skip("no CUPTI headers on this machine")
    root = tmp_path_factory.mktemp("toolkit")
    (root / "include").symlink_to(include)
    (root / "lib64").mkdir()
    library = root / "lib64" / "libcupti.so.13"
    folders = ("-isystem", str(include), "-isystem", str(real.headers))
    command = (*compiler(os.environ), "-std=c++17", "-shared", "-fPIC", "-w", *folders, str(FAKE), "-o", str(library))
    subprocess.run([*command, "-Wl,-soname,libcupti.so.13"], check=True)
    return replace(real, root=root)


def program(*arguments: str) -> list[str]:
    return [sys.executable, "-c", DRIVER, *arguments]


def test_a_program_is_traced_and_goes_on_as_without_it(faked: Cuda, capfd: pytest.CaptureFixture[str]) -> None:
    found, said = trace(faked, program("a b", "--json"), 60)
    assert capfd.readouterr().out == "ran a b --json\n"
    assert [(one.kind, one.name, one.start, one.end, one.stream) for one in found.all] == [
        ("copy", "copy host to device", 0.0, 4.0, 13),
        ("kernel", "square", 2.0, 8.0, 14),
        ("wait", "the host waits for the device", 3.0, 23.0, -1),
        ("kernel", "square", 6.0, 12.0, 15),
        ("memset", "memset", 20.0, 21.0, 13),
    ]
    assert found.all[0].bytes == 40_000
    assert found.all[1].detail == "<<<(64,1,1), (256,1,1), 512>>>, 32 registers, 0 B static"
    assert found.lost == 3 and [one.code for one in said] == ["K552"]


def test_a_program_that_fails_is_told_and_one_that_may_not_be_seen(
    faked: Cuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, said = trace(faked, [sys.executable, "-c", DRIVER + "sys.exit(7)"], 60)
    assert [one.code for one in said] == ["K553", "K552"] and "code 7" in said[0].message
    monkeypatch.setenv("FAKE_REFUSES", "1")
    with pytest.raises(InputError, match=r"CUPTI refused cuptiActivityEnable \(error \d+\)"):
        trace(faked, program(), 60)


def test_a_program_without_a_driver_and_a_machine_without_cupti(faked: Cuda, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="did not load the CUDA driver"):
        trace(faked, [sys.executable, "-c", ""], 60)
    with pytest.raises(ToolchainError, match="no CUPTI below"):
        trace(replace(faked, root=tmp_path, extra_include=()), program(), 60)
    with pytest.raises(ToolchainError, match="there is no such program"):
        trace(faked, ["./nothing"], 60)


def test_a_machine_without_clang_can_trace(
    faked: Cuda, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("KESCO_CLANG", "/there/is/none")
    monkeypatch.chdir(tmp_path)
    done = kesco("trace", "--cuda-path", str(faked.root), "--html", "run.html", "--", *program("x"))
    assert done.exit_code == 0, done.output
    (made,) = (one for one in tmp_path.glob("*.trace.json"))
    assert made.name.startswith("python") and "5 operations" not in done.output and "4 operations" in done.output
    page = (tmp_path / "run.html").read_text()
    assert "Streams of" in page and page.count('class="item bar-item') == 5 and "ran x" in capfd.readouterr().out


def test_a_record_that_ends_anywhere_is_read() -> None:
    record = read_record(RECORD)
    assert [one.kind for one in record.activities] == ["kernel", "copy", "memset", "wait"]
    assert record.lost == 2 and record.failed == ("cuptiActivityEnable (error 35)",)
    both = joined("app", [record, record])
    assert len(both.all) == 8 and both.lost == 4 and both.all[0].start == 0.0 and both.all[0].kind == "copy"
    for end in range(len(RECORD)):
        read_record(RECORD[:end])


# ---- numbers, files, commands ----------------------------------------------------------------------------------------


def run(*works: tuple[str, int, float, float]) -> Activities:
    found = (Activity(kind, kind, start, end, 0, 1, stream) for kind, stream, start, end in works)
    return Activities("app", tuple(sorted(found, key=lambda one: (one.start, one.end))))


SERIAL = run(("copy", 7, 0, 10), ("kernel", 7, 10, 20), ("kernel", 7, 25, 35), ("wait", 7, 0, 36))
ASYNC = run(("copy", 13, 0, 10), ("kernel", 14, 4, 14), ("kernel", 15, 4, 14), ("wait", -1, 0, 15))


def test_numbers_say_what_ran_beside_what() -> None:
    one, other = numbers(SERIAL), numbers(ASYNC)
    assert (one.span, one.busy, one.work, one.overlap, one.hidden, one.gaps, one.longest_gap) == (
        35,
        30,
        30,
        1,
        0,
        1,
        5,
    )
    assert (other.span, other.busy, other.work, other.hidden, other.gaps) == (14, 14, 30, 6, 0)
    assert (
        other.overlap == pytest.approx(30 / 14) and other.waiting == 15 and (other.kernels, other.operations) == (2, 3)
    )
    (stream,) = one.streams
    assert (stream.name, stream.operations, stream.busy, stream.idle) == ("stream 7", 3, 30, 5)
    assert [(stream.copies, stream.hidden) for stream in other.streams] == [(10, 6), (0, 0), (0, 0)]
    assert union([(3, 4), (0, 2), (1, 3)]) == [(0, 4)] and common([(0, 4), (6, 9)], [(3, 7)]) == 2
    empty = numbers(Activities("app", ()))
    assert (empty.span, empty.overlap, empty.streams) == (0, 0, ())


def test_a_timeline_has_a_lane_for_each_stream_and_one_for_the_host() -> None:
    view = timeline("run", ASYNC)
    assert [lane.name for lane in view.lanes] == ["stream 13", "stream 14", "stream 15", "host waits"]
    assert view.end == 15 and [len(lane.bars) for lane in view.lanes] == [1, 1, 1, 1]


def test_the_critical_path_of_a_run_is_what_ended_last_before_each_began() -> None:
    crossed = run(
        ("kernel", 1, 0, 10), ("kernel", 2, 0, 6), ("kernel", 1, 10, 12), ("kernel", 2, 10, 30), ("copy", 1, 30, 31)
    )
    chain = [(bar.start, bar.end) for bar in timeline("run", crossed).bars if bar.critical]
    assert sorted(chain) == [(0, 10), (10, 30), (30, 31)]
    assert not any(bar.critical for bar in timeline("run", SERIAL).bars)  # of one stream all are
    same = run(*(("kernel", n % 2, 5.0, 5.0) for n in range(9)))  # of no length, all at one time
    assert sum(bar.critical for bar in timeline("run", same).bars) == 1


def test_a_trace_is_what_perfetto_opens_and_is_read_again(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    file.write_text(to_json(SERIAL))
    assert read(file) == SERIAL
    events = json.loads(file.read_text())["traceEvents"]
    assert {one["ph"] for one in events} == {"X", "M"}
    assert all({"name", "ts", "dur", "pid", "tid"} <= one.keys() for one in events if one["ph"] == "X")
    names = [one["args"]["name"] for one in events if one["ph"] == "M"]
    assert names == ["GPU 0", "host", "stream 7, context 1"]
    good = file.read_text()
    changes = (('"version": 1', '"version": 2'), ('"dur"', '"dura"'), ('"kernel"', '"colonel"'), ("traceEvents", "t"))
    for bad in ("", "[]", "{}", good[:-9], *(good.replace(*change) for change in changes)):
        file.write_text(bad)
        with pytest.raises(UsageError) as problem:
            read(file)
        assert problem.value.diagnostics[0].code == "K554"


def kesco(*words: str) -> Result:
    return CliRunner().invoke(main, list(words))


def test_two_traces_are_compared(tmp_path: Path) -> None:
    names = [str(tmp_path / name) for name in ("serial.json", "async.json")]
    for name, one in zip(names, (SERIAL, ASYNC), strict=True):
        Path(name).write_text(to_json(one))
    page = tmp_path / "both.html"
    shown = kesco("compare", *names, "--html", str(page))
    lines = [line.split() for line in shown.output.splitlines()]
    assert ["span", "35.0", "µs", "14.0", "µs", "0.40"] in lines
    assert ["copies", "beside", "a", "kernel", "0", "ns", "6.00", "µs"] in lines
    assert ["Streams", "of", "async.json", "operations", "busy"] in [line[:5] for line in lines]
    assert ["stream", "13", "1", "10.0", "µs", "0", "ns", "10.0", "µs", "60", "%"] in lines
    assert "\x1b" not in shown.output
    assert "60 %" in page.read_text() and "Streams of serial.json" in page.read_text()
    assert page.read_text().count('class="item bar-item') == 8
    found = json.loads(kesco("compare", *names, "--json").output)
    assert found["speedup"] == 2.5 and found["after"]["copies_hidden_us"] == 6.0
    assert kesco("compare", *names, "-q").output == ""
    assert kesco("compare", names[0], str(tmp_path)).exit_code == 2


def test_a_report_shows_a_measured_run(tmp_path: Path, toolchain: Toolchain, repository: Path) -> None:
    example, out = str(repository / "examples/02_two_fields/fields.cu"), str(tmp_path / "o.cu")
    run_file, page = tmp_path / "run.json", tmp_path / "page.html"
    run_file.write_text(to_json(ASYNC))
    assert kesco("compile", example, "-o", out, "--trace", str(run_file)).exit_code == 2
    assert not Path(out).exists()
    done = kesco("compile", example, "-o", out, "--report", str(page), "--trace", str(run_file))
    assert done.exit_code == 0, done.output
    text = page.read_text()
    assert "run.json" in text and "measured" in text and text.count("bar-item") > 4 and 'id="g0-' in text
    assert kesco("compile", example, "-o", out, "--report", out).exit_code == 2
    assert kesco("compile", example, "-o", out, "--report", str(tmp_path / "no" / "page.html")).exit_code == 2
    assert kesco("compile", "-p", str(tmp_path), "--report", "pages", "--trace", str(run_file)).exit_code == 2
