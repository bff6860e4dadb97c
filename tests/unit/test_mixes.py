"""Mixes without a GPU: made-up programs wait for the common start and tell made-up times."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from kesco.bench.build import Build, read
from kesco.bench.mix_model import Host, in_turns, schemes_of
from kesco.bench.mix_plots import plot
from kesco.bench.mix_results import Shared, compared, lines, to_json
from kesco.bench.mix_results import read as read_results
from kesco.bench.mixes import SCHEMES, Mix, Task, load
from kesco.bench.mps import queues
from kesco.bench.sharing import Outcome, share
from kesco.errors import UsageError
from kesco.model.gpu import KernelCost, Kind, Machine, Step

ROOT = Path(__file__).resolve().parents[2] / "workloads"
MIX = Mix("MP-0", "a before two b", "mp0", (Task("a", "a", 9, ("--n", "4"), 0.0), Task("b1", "b", 1, (), 0.1),
                                              Task("b2", "b", 1, (), 0.1)))  # fmt: skip
# Counts itself ready, waits for the start, and tells a time for each task that it does. With MPS it is faster.
PROGRAM = """\
#!{python}
import ctypes, fcntl, mmap, os, sys, time
tasks = {tasks}
if "CUDA_MPS_PIPE_DIRECTORY" in os.environ and int(os.environ["CUDA_DEVICE_MAX_CONNECTIONS"]) > {queues}:
    with open(os.path.join(os.environ["CUDA_MPS_LOG_DIRECTORY"], "server.log"), "a") as log:
        log.write("[Info] started\\nError: no queues are left\\n")
    sys.exit("out of memory")
with open(os.environ["MP_START"], "r+b") as file:
    words = (ctypes.c_int64 * 512).from_buffer(mmap.mmap(file.fileno(), 4096))
    for round in range(int(os.environ["MP_ROUNDS"])):
        fcntl.flock(file, fcntl.LOCK_EX)
        words[0] += len(tasks)
        fcntl.flock(file, fcntl.LOCK_UN)
        while words[1 + round] == 0:
            time.sleep(0.001)
        with open({log!r}, "a") as log:
            log.write(os.path.basename(sys.argv[0]) + " " + " ".join(sys.argv[1:]) + "\\n")
        if {fails} and round == {fails} - 1:
            sys.exit("out of memory")
        for name, took in tasks:
            took += 100 if round == 0 else 0
            print("task", name, took / 2 if "CUDA_MPS_PIPE_DIRECTORY" in os.environ else took, {result})
"""
CONTROL = """\
#!{python}
import os, sys, time
pipe = os.path.join(os.environ["CUDA_MPS_PIPE_DIRECTORY"], "control")
if "-f" in sys.argv:
    open(pipe, "w").close()
    while os.path.exists(pipe):
        time.sleep(0.005)
else:
    said = sys.stdin.read()
    if "quit" in said:
        os.unlink(pipe)
    else:
        print({servers})
"""


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def made_up(folder: Path, failing: str = "", wrong: str = "", queues: int = 32, fails: int = 1) -> Build:
    import sys

    times = {"serial": 40.0, "kesco": 20.0, "zones": 30.0, "zones-fair": 25.0}
    programs = []
    for of, kind in [(of, kind) for of in ("a", "b") for kind in ("serial", "kesco")] + [
        ("MP-0", "zones"), ("MP-0", "zones-fair")
    ]:  # fmt: skip
        tasks = [(of, times[kind])] if of != "MP-0" else [("b", times[kind]), ("a", 10.0), ("b", 50.0)]
        text = PROGRAM.format(python=sys.executable, tasks=tasks, log=str(folder / "log"),
                              queues=queues, fails=fails if kind == failing else 0,
                              result=5.5 if kind == wrong else 5.0)  # fmt: skip
        program(folder / f"{of}-{kind}", text)
        one = {"workload": of, "style": "tasks", "program": kind, "path": f"{of}-{kind}"}
        programs.append(one | {"streams": 1, "waits": 0})
    made = {"cuda": "13.0", "flags": "", "commit": "abc"}
    (folder / "build.json").write_text(json.dumps({"made": made, "programs": programs}))
    return read(folder)


def outcomes(build: Build, *names: str, rounds: int = 1, starts: int = 1) -> dict[str, Outcome]:
    schemes = [SCHEMES[name] for name in ("alone", *names)]
    found = list(share(build, [MIX], schemes, rounds, timeout=30.0, repeats=-(-rounds // starts)))
    assert len(found) == starts
    return {one.scheme: one for one in found[-1]}


def test_times_from_a_common_start(tmp_path: Path) -> None:
    found = outcomes(made_up(tmp_path), "baseline", "zones", "threads", rounds=3, starts=2)
    assert found["baseline"].times == {"a": (40.0,) * 3, "b1": (40.0,) * 3, "b2": (40.0,) * 3}
    assert found["zones"].times == {"a": (10.0,) * 3, "b1": (30.0,) * 3, "b2": (50.0,) * 3}
    assert found["threads"].problem == "'MP-0' was not built for threads"
    log = (tmp_path / "log").read_text().splitlines()
    alone = ["a-serial --n 4", "b-serial ", "b-serial "]
    assert log[:9] == [one for one in alone for _ in range(3)]  # one after another; two rounds behind one that warms up
    assert [sorted(log[n : n + 3]) for n in (9, 12, 15)] == [alone] * 3  # together, round by round
    assert log[18:24] == ["MP-0-zones --n 4 -- --"] * 3 + [alone[0]] * 2 + [alone[1]]  # and the third round
    assert len(log) == 21 + 14


def test_what_fails_or_is_wrong_has_no_times(tmp_path: Path) -> None:
    found = outcomes(made_up(tmp_path, failing="kesco", wrong="zones"), "kesco", "zones", "zones-fair")
    assert found["kesco"].problem.endswith("-kesco: exit code 1: out of memory")
    assert found["zones"].problem == "a: result 5.5, the serial program's is 5"
    assert found["zones"].times == {}
    assert found["zones-fair"].times["a"] == (10.0,)


def test_a_program_that_fails_in_a_later_round(tmp_path: Path) -> None:
    """Those that wait for the next common start go on then, and end."""
    found = outcomes(made_up(tmp_path, failing="kesco", fails=3), "kesco", "zones", rounds=4)
    assert found["kesco"].problem.endswith("-kesco: exit code 1: out of memory")
    assert found["zones"].times["a"] == (10.0,) * 4


def test_mps_is_started_asked_and_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    build = made_up(tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    program(tmp_path / "bin/nvidia-cuda-mps-control", CONTROL.format(python=sys.executable, servers="4711"))
    assert outcomes(build, "mps")["mps"].times["a"] == (20.0,)
    program(tmp_path / "bin/nvidia-cuda-mps-control", CONTROL.format(python=sys.executable, servers=""))
    assert outcomes(build, "mps")["mps"].problem == "MPS serves nobody: the programs run beside it"


def test_clients_of_mps_share_its_queues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that asks for more than are left ends before the start; then all ask for fewer."""
    import sys

    assert [queues(clients) for clients in (1, 3, 4, 96, 200)] == [32, 32, 24, 1, 1]
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    program(tmp_path / "bin/nvidia-cuda-mps-control", CONTROL.format(python=sys.executable, servers="4711"))
    assert outcomes(made_up(tmp_path, queues=8), "mps")["mps"].times["a"] == (20.0,)
    problem = outcomes(made_up(tmp_path, queues=1), "mps")["mps"].problem
    assert "ended before the start (1): out of memory (MPS: Error: no queues are left)" in problem


def shared() -> Shared:
    def one(scheme: str, a: float, b: float) -> Outcome:
        return Outcome("MP-0", scheme, {"a": (a, a + 2), "b1": (b, b), "b2": (b, b)}, {})

    rows = (one("alone", 10, 10), one("alone-kesco", 9, 5), one("baseline", 40, 20), one("threads", 11, 25))
    return Shared((*rows, Outcome("MP-0", "mps", {}, {}, "no MPS")), {"gpu": "made up"})


def test_what_the_times_come_to(tmp_path: Path) -> None:
    found = shared()
    assert found.overall("MP-0", "baseline") == 41
    assert found.speed("MP-0", "threads") == pytest.approx(41 / 25)
    assert found.speed("MP-0", "threads", task="b1") == pytest.approx(0.8)
    assert (found.bound("MP-0"), found.bound("MP-0", "b1")) == (10, 5)  # of a the serial program alone takes 11
    assert found.closeness("MP-0", "threads") == pytest.approx(10 / 25)
    text = "\n".join(lines(found, [MIX]))
    assert "mps          no MPS" in text
    row = next(line.split() for line in text.splitlines()[::-1] if line.startswith("threads"))
    assert row[1:] == ["1.64", "-", "-", "0.40", "1.09", "1.20", "0.80"]
    times = {"a": (11.0, 11.0), "b1": (5.0, 5.0), "b2": (20.0, 20.0)}
    model = replace(found, outcomes=(replace(found.outcomes[0], times=times), *found.outcomes[1:3]))
    off = list(compared(model, replace(found, outcomes=found.outcomes[:2]), [MIX]))
    assert [line.split() for line in off if line.startswith("alone ")] == [["alone", "+0%", "-50%", "+100%", "+82%"]]
    assert [line.split() for line in off if line.startswith("baseline ")] == [["baseline", *"----"]]
    assert off[-1] == "8 times; half of them are off by at most 0%, all by 100%"
    (tmp_path / "mixes.json").write_text(to_json(found))
    assert read_results(tmp_path / "mixes.json") == found
    picture = plot(found, [MIX])
    assert picture == plot(found, [MIX])
    assert "MP-0" in picture
    (tmp_path / "mixes.json").write_text("{}")
    with pytest.raises(UsageError):
        read_results(tmp_path / "mixes.json")


def test_the_mixes_of_the_paper() -> None:
    mixes = load(ROOT)
    assert [(m.name, [(t.program, t.priority) for t in m.tasks]) for m in mixes] == [
        ("MP-1", [("img", 9), ("vec", 5), ("vec", 5), ("hits", 1)]), ("MP-2", [("ml", 9), ("dl", 5), ("bs", 1)]),
    ]  # fmt: skip
    for mix in mixes:
        merged = (ROOT / f"mp/{mix.program}.cu").read_text()
        for task in mix.tasks:
            assert f"#pragma kesco task priority({task.priority}) name({task.name})" in merged
            assert f'report("{task.program}", ' in (ROOT / f"mp/{task.program}.cu").read_text()
    with pytest.raises(UsageError):
        load(ROOT, ["MP-3"])


def test_processes_that_take_turns() -> None:
    """Two that take 1 and 3 alone: the first is done when both had 1, the second when nobody else is left."""
    assert in_turns([3.0, 1.0]) == [4.0, 2.0]
    assert in_turns([2.0, 2.0, 2.0]) == [6.0, 6.0, 6.0]


def test_the_model_of_each_scheme() -> None:
    """Two tasks of two kernels that fill half of the GPU's slots each, of 100 and 50 microseconds."""

    def host(number: int, time: float, streams: int) -> Host:
        cost = KernelCost(time, 132 * 4, 256)
        work = tuple(Step(Kind.LAUNCH, 1000 * number + n % streams, cost) for n in range(2))
        return Host(work, (number, number))

    tasks = [host(0, 100.0, 2), host(1, 50.0, 1)]
    one = Host((*tasks[0].steps, *tasks[1].steps), (0, 0, 1, 1))
    machine = Machine(launch=0.0, start=0.0)
    mix = Mix("MP-0", "", "", (Task("a", "a", 9, (), 0.0), Task("b", "b", 1, (), 0.0)))
    found = schemes_of(mix, tasks, {"zones": one, "zones-fair": one}, machine)
    assert found["alone"] == [200.0, 100.0]
    assert found["alone-kesco"] == [100.0, 100.0]
    assert found["baseline"] == [300.0, 200.0]
    assert found["mps"] == [200.0, 100.0]  # one kernel of each at a time
    assert found["threads"] == found["one-thread"] == found["zones-fair"]
    assert found["threads"][0] == 100.0  # two kernels fill the GPU; the lower task waits
    assert found["threads"][1] == pytest.approx(200.0)
