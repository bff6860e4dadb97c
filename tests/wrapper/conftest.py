"""A folder to build in, and a cache that the tests share: what is known about a source is known to all of them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from wrapper.building import Yard

from kesco.toolchain.model import Toolchain


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory, headers: Path) -> Path:
    return shutil.copytree(headers, tmp_path_factory.mktemp("build-cache") / "cache")


@pytest.fixture(scope="session")
def headers(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> Path:
    """What kesco keeps beside the sources of a build: the toolkit's headers, precompiled once for all tests."""
    cache = tmp_path_factory.mktemp("headers")
    yard = Yard(tmp_path_factory.mktemp("first"), cache, toolchain.cuda_path)
    yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o")
    shutil.rmtree(cache / "kesco" / "build", ignore_errors=True)
    return cache


@pytest.fixture
def yard(tmp_path: Path, shared_cache: Path, toolchain: Toolchain) -> Yard:
    """A folder of the test's own, with nvcc on PATH, the system's or that of the wheels."""
    if toolchain.nvcc is None:
        pytest.skip("no nvcc")
    return Yard(tmp_path, shared_cache, toolchain.cuda_path)


@pytest.fixture(scope="module")
def common_yard(tmp_path_factory: pytest.TempPathFactory, shared_cache: Path, toolchain: Toolchain) -> Yard:
    """One folder for all tests of a module: what is built there is built once."""
    if toolchain.nvcc is None:
        pytest.skip("no nvcc")
    return Yard(tmp_path_factory.mktemp("common"), shared_cache, toolchain.cuda_path)
