"""The policy's rules in every interleaving of small sets of tasks.

tests/native/policy_driver.cpp says what they are. It is compiled with the policy's own sources. With KESCO_THOROUGH
also under the address and undefined behaviour sanitizers, and against policies with a fault, which it must find.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kesco.fikit import compare, synthetic
from kesco.fikit.gpu import Machine
from kesco.fikit.policy import Kind
from kesco.ir import kfikit
from kesco.toolchain.native import built, compiler

THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
ROOT = Path(__file__).resolve().parent.parent.parent
RUNTIME = ROOT / "kesco" / "runtime" / "fikit"
DRIVER = ROOT / "tests" / "native" / "policy_driver.cpp"
SANITIZED = ("-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


def make(folder: Path, *flags: str) -> Path:
    """The driver with the policy of a folder."""
    sources = (*sorted(folder.glob("policy*.cpp")), folder / "costs_file.cpp", DRIVER)
    return built("policy_driver", sources, (f"-I{folder}", *flags))


def drive(program: Path, *words: str) -> tuple[int, str]:
    limit = 3000 if THOROUGH else 300  # with sanitizers, on a machine that does other things as well
    done = subprocess.run([program, *words], capture_output=True, text=True, timeout=limit, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.fixture(scope="module")
def driver() -> Path:
    return make(RUNTIME, *(SANITIZED if THOROUGH else ("-O2",)))


# With the sanitizers a run takes minutes.
EXPLORED = [(Kind.QUANTILE, 5000), (Kind.STRICT, 0), *([(kind, 0) for kind in Kind] if THOROUGH else [])]


@pytest.mark.parametrize(("kind", "age"), list(dict.fromkeys(EXPLORED)))
def test_no_interleaving_breaks_a_rule(driver: Path, kind: Kind, age: int) -> None:
    code, said = drive(driver, "explore", str(int(kind)), str(age))
    assert code == 0, said
    found = re.match(r"runs (\d+) grants (\d+)", said)
    assert found and int(found[1]) > 40_000 and int(found[2]) > int(found[1]), said
    assert (int(said.split()[-1]) > 10_000) == (kind >= Kind.MEAN), said  # launched on credits


@pytest.mark.parametrize("kind", list(Kind))
def test_no_long_run_breaks_a_rule(driver: Path, kind: Kind) -> None:
    for seed in range(20 if THOROUGH else 3):
        code, said = drive(driver, "random", str(int(kind)), str(seed))
        assert code == 0, said


def test_no_run_beside_a_busy_holder_breaks_a_rule(driver: Path) -> None:
    for seed in range(20 if THOROUGH else 4):
        code, said = drive(driver, "beside", str(seed))
        assert code == 0, said
        found = re.fullmatch(r"runs 1 grants (\d+) credited (\d+) beside (\d+)\n", said)
        assert found and int(found[2]) > 100 and int(found[3]) > 100, said


def test_a_million_launches_allocate_nothing(driver: Path) -> None:
    code, said = drive(driver, "million", str(int(Kind.QUANTILE)))
    found = re.fullmatch(r"launches (\d+) decisions (\d+) allocations 0\n", said)
    assert code == 0 and found and int(found[1]) > 1_000_000, said
    assert int(found[2]) == 1_500_001


def test_the_daemon_reads_the_costs_that_a_store_has(driver: Path, tmp_path: Path) -> None:
    store = compare.measured(synthetic.trace(3), Machine())
    file = tmp_path / "costs"
    file.write_text(kfikit.to_text(store))
    code, said = drive(driver, "costs", str(file))
    assert code == 0, said
    assert said.splitlines() == kfikit.to_text(store).splitlines()[1:]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("kesco-fikit-costs 1\nend\n", "not a file of costs, version 2"),
        ("kesco-fikit-costs 2\ntask a\n", "cut off"),
        ("kesco-fikit-costs 2\nkernel 1 0\nend\n", ":2: damaged"),
        ("kesco-fikit-costs 2\ntask a\nkernel 1 1 2 3\nend\n", ":3: damaged"),
        ("kesco-fikit-costs 2\ntask a\nkernel 1 1 1 0 9" + " 1" * 129 + "\nend\n", ":3: damaged"),  # knots that descend
        ("kesco-fikit-costs 2\nbook a\nend\n", ":2: damaged"),
    ],
)
def test_costs_that_are_damaged_are_refused(driver: Path, tmp_path: Path, text: str, why: str) -> None:
    (tmp_path / "costs").write_text(text)
    code, said = drive(driver, "costs", str(tmp_path / "costs"))
    assert code == 1
    assert why in said


# What each fault breaks must be found: a checker that never fails is no checker.
FAULTS = [
    ("policy_events.cpp", "    task.idle = false;\n    ++task", "    ++task", "filling stops|free is only|higher task"),
    ("policy_decide.cpp", "filling_.until - begin < time", "false", "it fits"),
    ("policy_decide.cpp", "if (flights_ >= settings.inflight_launches)\n        return false;", "", "not too many"),
    ("policy_decide.cpp", "occupied(task, ticket) <= most", "1 > 0", "not too much time"),
    ("policy_decide.cpp", "bool late = settings.deadline_ns &&", "bool late = false &&", "deadline"),
    ("policy_decide.cpp", "!(settings.age_ns &&", "!(false &&", "older"),
    ("policy_decide.cpp", "all_of(out, order_[0], KESCO_GRANT_HOLDER);", "", "holder is never held"),
    ("policy_decide.cpp", "(acting == 0 && beside()) || away(at_rank(acting))", "acting + 1 < active_", "higher task"),
    ("policy_events.cpp", "tasks[order_[0]]->beside.on() &&", "", "no more than grants do"),
    ("policy_decide.cpp", "    task.drop_ticket(0, now_);\n", "", "counters|once"),
    ("policy_decide.cpp", "wake = std::min(wake, task.tickets[0].since + limit);", "continue;", "wants to be asked"),
    ("policy_events.cpp", "task->drop_ticket(place, now_);", "", "counters"),
    ("policy_events.cpp", "at_rank(rank - 1).state.priority < priority", "false", "highest priority"),
    (
        "policy_decide.cpp",
        "    filling_ = {};\n    Grants",
        "    Grants",
        "a credit ends when|nothing of a higher task",
    ),
    ("policy_credit.cpp", "filler_ != &task ||", "", "one fills"),
    ("policy_credit.cpp", "if (other != rank && at_rank(other)", "if (false && at_rank(other)", "nothing of a higher"),
    (
        "policy_credit.cpp",
        "state.waiting && at_rank(other).state.priority >= task",
        "state.waiting && at_rank(other).state.priority > task",
        "nobody of its priority",
    ),
    ("policy_credit.cpp", "++credit.number;", "credit.number = 1;", "a new number"),
    ("policy_credit.cpp", "rank == 0 || rank < acting", "rank < acting", "the holder needs none|one fills"),
    ("policy_credit.cpp", "lasted < settings.react_ns", "false", "only after a while"),
    ("policy_credit.cpp", "until = now_ + lasted;", "until = now_ + 100000;", "no longer than it has been idle"),
    ("policy_rule.cpp", "launches >= credit->flight_launches", "false", "no more in flight than"),
    ("policy_rule.cpp", "outstanding <= credit->flight_ns", "true || outstanding", "nor for longer"),
    ("policy_rule.cpp", "outstanding > left || predicted > left - outstanding", "false", "done in time"),
]


@pytest.mark.skipif(not THOROUGH, reason="compiles the policy a dozen times; with KESCO_THOROUGH=1")
@pytest.mark.parametrize(("file", "right", "wrong", "rule"), FAULTS)
def test_a_fault_is_found(tmp_path: Path, file: str, right: str, wrong: str, rule: str) -> None:
    folder = tmp_path / "fikit"
    shutil.copytree(RUNTIME, folder)
    text = (folder / file).read_text()
    assert right in text
    (folder / file).write_text(text.replace(right, wrong))
    sources = [DRIVER, folder / "costs_file.cpp", *folder.glob("policy*.cpp")]
    command = [*compiler(os.environ), "-std=c++17", "-O1", "-w", f"-I{folder}", *sources]
    subprocess.run([*command, "-o", tmp_path / "driver"], check=True, timeout=120)
    said = ""
    for words in (("explore", "5", "5000"), ("explore", "2", "0"), ("explore", "3", "0"), ("random", "5", "1")):
        code, said = drive(tmp_path / "driver", *words)
        if code == 1:
            break
    assert re.search(f"broken: .*({rule})", said), said
