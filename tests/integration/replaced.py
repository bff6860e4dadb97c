"""The dry run's CUDA runtime in the place of the real one, for programs that are linked against that."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Runtime:
    """The dry run's runtime where a program looks for the real one."""

    folder: Path

    def environment(self) -> dict[str, str]:
        return {**os.environ, "LD_LIBRARY_PATH": str(self.folder), "CUDA_DRY_RUN_BLIND": "1"}
