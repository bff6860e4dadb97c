"""What all tests share: golden files, the gpu marker, the toolchain."""

from __future__ import annotations

import gc
import hashlib
import os
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from kesco.errors import ToolchainError
from kesco.toolchain.discover import discover
from kesco.toolchain.model import Toolchain
from tests.taken import THOROUGH

settings.register_profile("kesco", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("kesco")  # how busy a machine is says nothing of a test

FEWEST, SHARE = 1, 16
"""Of the cases of one test, where the whole suite runs: never fewer than so many, and one in so many."""
PAGES = 6
"""Of the pages of the documentation: one in so many."""
THIRDS = ("tests/integration/", "tests/wrapper/", "tests/property/", "tests/execution/")
"""Where a third of the tests run."""
DRAWN_FOR = os.environ.get("KESCO_SAMPLE", "")
"""Another word is another sample: one that is always the same hides what goes wrong in the rest."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite golden files; the diff is the review")


def pytest_configure(config: pytest.Config) -> None:
    """Workers take halves, and then from each other: what the tests of a file share is mostly made once."""
    gc.set_threshold(100_000)  # as the command does: most of what is built is kept
    if getattr(config.option, "dist", "no") == "load":
        config.option.dist = "worksteal"
    if (
        not THOROUGH
        and config.args_source is pytest.Config.ArgsSource.TESTPATHS
        and not (config.option.keyword or config.option.update_golden)
    ):
        os.environ["KESCO_SAMPLED"] = "1"  # xdist's workers are told so


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if os.environ.get("KESCO_SAMPLED"):
        left_out = _left_out(items)
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=list(left_out))
    marked = [item for item in items if item.get_closest_marker("gpu")]
    if marked and not _has_gpu():
        for item in marked:
            item.add_marker(pytest.mark.skip(reason="no NVIDIA GPU on this machine"))
    for item in items:
        if item.get_closest_marker("thorough") and not THOROUGH:
            item.add_marker(pytest.mark.skip(reason="takes long; with KESCO_THOROUGH=1"))


def pytest_xdist_auto_num_workers() -> int:
    """One more than there are processors: tests wait for programs that they start, and for clocks."""
    return (os.cpu_count() or 1) + 1


def _left_out(items: list[pytest.Item]) -> set[pytest.Item]:
    """Which tests and cases do not run: the same ones each time, and only of tests that take a compiler."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        quick = "toolchain" not in getattr(item, "fixturenames", ())
        top = item.nodeid.startswith("tests/test_") and "a_page_shows" not in item.nodeid
        if not (top or (quick and item.nodeid.startswith("tests/unit/"))):
            cases[item.nodeid.partition("[")[0]].append(item)
    left: set[pytest.Item] = set()
    for name, alike in cases.items():
        share = PAGES if "a_page_shows" in name else SHARE
        out = name.startswith(THIRDS) and _drawn(name) % 3 != 2
        alike.sort(key=lambda item: _drawn(item.nodeid))
        left.update(alike if out else alike[max(FEWEST, len(alike) // share) :])
    return left


def _drawn(name: str) -> int:
    """A number that is drawn for a name, the same one each time."""
    return int.from_bytes(hashlib.sha256(f"{DRAWN_FOR}{name}".encode()).digest()[:8], "big")


def _has_gpu() -> bool:
    program = shutil.which("nvidia-smi")
    if program is None:
        return False
    listed = subprocess.run([program, "-L"], capture_output=True, text=True, check=False)
    return listed.returncode == 0 and "GPU" in listed.stdout


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tests neither read nor write the user's cache, but one that all of xdist's workers share."""
    before = os.environ.get("XDG_CACHE_HOME")
    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if os.environ.get("PYTEST_XDIST_WORKER") else folder
    os.environ["XDG_CACHE_HOME"] = str(folder / "shared-cache")
    yield
    if before is None:
        del os.environ["XDG_CACHE_HOME"]
    else:
        os.environ["XDG_CACHE_HOME"] = before


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten instead of compared."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    """The toolchain of this machine; without one, its tests are skipped, but never in CI."""
    try:
        return discover()
    except ToolchainError as problem:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"no toolchain: {problem}")


@pytest.fixture(scope="session")
def repository() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def text_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The regions of the text's reading, also where the host's IR says more."""
    monkeypatch.setattr("kesco.analysis.host_regions.better.hopeful", lambda *_: False)
