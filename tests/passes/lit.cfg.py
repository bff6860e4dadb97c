"""lit's settings for the tests of the plugins; `test_passes.py` builds them and runs lit with its parameters."""

import os
import sys
from pathlib import Path

import lit.formats

config.name = "kesco passes"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".ll", ".cu"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(lit_config.params["plugins"]) / "lit")
programs = Path(lit_config.params["programs"])
if programs.is_dir():  # clang++ for CUDA, kesco and kesco-clang++, where ScheduleAction can be tried
    config.available_features.add("cuda-clang")
if os.environ.get("KESCO_THOROUGH"):
    config.available_features.add("thorough")
config.environment |= {
    "KESCO_PROGRAM": str(programs / "kesco"),
    "KESCO_CLANGXX": str(programs / "clang++"),
    "XDG_CACHE_HOME": str(Path(lit_config.params["plugins"]) / "cache"),
}
for name, path in (
    ("%clang", f"{programs / 'clang++'} --cuda-gpu-arch=sm_75"),
    ("%wrapper", f"{programs / 'kesco-clang++'} --cuda-gpu-arch=sm_75"),
    ("%kesco", f"-fplugin={lit_config.params['plugins']}/libkesco.so"),
    ("%nm", str(Path(lit_config.params["tools"]) / "llvm-nm")),
    ("%opt", str(Path(lit_config.params["tools"]) / "opt")),
    ("%plugins", lit_config.params["plugins"]),
    ("%filecheck", str(Path(sys.executable).with_name("filecheck"))),
):
    config.substitutions.append((name, path))
