"""What the integration tests share: the dry run's runtime where a program looks for the real one."""

from __future__ import annotations

import shutil

import pytest
from integration.replaced import Runtime

from kesco.toolchain.model import Toolchain
from kesco.toolchain.runtimes import runtime_library


@pytest.fixture(scope="session")
def runtime(toolchain: Toolchain, tmp_path_factory: pytest.TempPathFactory) -> Runtime:
    if toolchain.nvcc is None:
        pytest.skip("no nvcc found")
    folder = tmp_path_factory.mktemp("runtime")
    library = runtime_library(toolchain, folder)
    major = (toolchain.cuda_version or "13").split(".")[0]
    shutil.copy(library, folder / f"libcudart.so.{'11.0' if major == '11' else major}")
    return Runtime(folder)
