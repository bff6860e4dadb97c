"""What kesco makes of every program in the tree, and the model beside what was measured on a GPU.

`workloads/baseline.json` holds plans, their counts and modelled times; ``pytest --update-golden`` rewrites it, and the
diff is the review. Published figures are compared with it (`test_plans`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from kesco.bench import costs as prices
from kesco.bench import model as model_of_bench
from kesco.bench import programs as all_programs
from kesco.bench import recorded
from kesco.bench import results as kept
from kesco.bench.mixes import MERGED, STRATEGIES
from kesco.bench.model import errors, predicted
from kesco.bench.programs import compiled
from kesco.bench.regress import compare, read, states, to_json
from kesco.bench.results import Results
from kesco.bench.suite import STYLES, load
from kesco.model.gpu import Kind, makespan
from kesco.options import Options
from kesco.pipeline import Compilation, compile_file
from tests.taken import one_in

ROOT = Path(__file__).resolve().parents[2]
WORKLOADS = ROOT / "workloads"
COSTS = prices.read(WORKLOADS / "costs.toml")
MEASURED = kept.read(ROOT / "docs/bench/h200.json")
NEWER = kept.read(ROOT / "docs/bench/h100.json")
OF_OLD_PLANS = {"img", "hits"}
"""Of these only what is serial or by hand is left of the first file."""

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(scope="module", autouse=True)
def _compiled_once() -> Iterator[None]:
    """The baseline and the model look at the same results for the same programs."""
    known: dict[tuple[Path, Options], Compilation] = {}

    def once(path: str, options: Options) -> Compilation:
        key = Path(path).resolve(), options
        if key not in known:
            known[key] = compile_file(path, options)
        return known[key]

    with mock.patch.object(all_programs, "compile_file", once), mock.patch.object(model_of_bench, "compile_file", once):
        yield


def test_no_program_got_worse(update_golden: bool) -> None:
    before = read(WORKLOADS / "baseline.json")
    taken = {*(compiled_names() if update_golden else one_in(40, sorted(before)))}
    found = states(compiled(ROOT, taken.__contains__), COSTS)
    if update_golden:
        (WORKLOADS / "baseline.json").write_text(to_json(found))
        before = found
    worse, changed = compare({name: one for name, one in before.items() if name in taken}, found)
    assert [d.message for d in (*worse, *changed)] == []


def compiled_names() -> set[str]:
    """The names of all programs; none is compiled."""
    names: set[str] = set()
    assert list(compiled(ROOT, lambda name: bool(names.add(name)))) == []
    return names


def test_the_baseline_has_every_program() -> None:
    names = compiled_names()
    assert names >= read(WORKLOADS / "baseline.json").keys()  # some give the device nothing to do
    styles = {name.split("/")[1] for name in names if name.startswith("vec/")}
    assert styles == {*STYLES, "tasks"}
    mixed = {name.partition("/")[2] for name in names if name.startswith("MP-")}
    assert mixed == {f"tasks/{one}" for one in (*STRATEGIES, *MERGED)}
    assert {name.split("/")[1] for name in names if name.startswith("examples/")} >= {"01_image_pipeline", "08_copies"}


@pytest.fixture(scope="module")
def model() -> Results:
    return predicted(load(WORKLOADS), COSTS, ("1gb",), (32, 256))


@pytest.mark.thorough
def test_the_model_is_near_what_was_measured(model: Results) -> None:
    compared = errors(model, MEASURED)
    near: dict[str, bool] = {}
    for setting, _, said, measured in compared:
        near[setting.workload] = near.get(setting.workload, True) and abs(said / measured - 1) <= 0.15
    assert len(near) == 8
    assert sum(near.values()) >= 6, near
    small_blocks = [abs(said / measured - 1) for s, _, said, measured in compared if s.block == 32]
    assert max(small_blocks) <= 0.06


@pytest.mark.thorough
def test_the_model_ranks_the_variants_as_the_gpu_does(model: Results) -> None:
    for setting in model.settings():
        there = ("graph",) if setting.workload in OF_OLD_PLANS else ("kesco", "graph")
        ratio = {v: (model.speedup(setting, v), MEASURED.speedup(setting, v)) for v in there}
        for said, measured in ratio.values():
            assert said is not None
            assert measured is not None
            assert said > 1.05
            assert measured > 1.05
        if "kesco" not in there:
            continue
        said, measured = (model.speedup(setting, "graph", "kesco"), MEASURED.speedup(setting, "graph", "kesco"))
        assert said is not None
        assert measured is not None
        assert abs(said - measured) < 0.05


def test_the_model_reads_what_was_written_by_hand() -> None:
    (img,) = load(WORKLOADS, ["img"])
    here = [s for s in MEASURED.settings() if (s.workload, s.style, s.size) == ("img", "device", "1gb")]
    trace = recorded.traced(img, "device", "async", 100)  # the schedule of any size
    for setting in (one for one in here if one.block in (32, 256)):
        done = recorded.steps(trace, COSTS, f"img/1gb/{setting.block}")
        assert sum(step.kind is Kind.LAUNCH for step in done) == 11
        row = MEASURED.find(setting, "async")
        assert row is not None
        assert makespan(COSTS.machine, done) / 1000 == pytest.approx(kept.median(row), rel=0.05)


@pytest.mark.parametrize(("measured", "settings"), [(NEWER, 16), (MEASURED, 42)])
def test_what_was_measured_is_as_fast_as_the_expert(measured: Results, settings: int) -> None:
    large = [s for s in measured.settings() if s.style == "device" and s.size != "small"]
    ratios = [ratio for s in large if (ratio := measured.speedup(s, "kesco", over="async")) is not None]
    assert len(ratios) == settings
    assert min(ratios) >= 0.97
    mean = measured.mean_speedup(large, "kesco", over="async")
    assert mean is not None
    assert mean >= 0.999
    assert measured.problems == []
