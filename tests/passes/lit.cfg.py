"""lit's settings for the tests of the plugins; `test_passes.py` builds them and runs lit with its parameters."""

import sys
from pathlib import Path

import lit.formats

config.name = "kesco passes"  # noqa: F821 (lit defines it)
config.test_format = lit.formats.ShTest(False)  # noqa: F821
config.suffixes = [".ll", ".cu"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(lit_config.params["plugins"]) / "lit")  # noqa: F821
programs = Path(lit_config.params["programs"])  # noqa: F821
if programs.is_dir():  # clang++ for CUDA, kesco and kesco-clang++, where ScheduleAction can be tried
    config.available_features.add("cuda-clang")  # noqa: F821
config.environment |= {  # noqa: F821
    "KESCO_PROGRAM": str(programs / "kesco"),
    "KESCO_CLANGXX": str(programs / "clang++"),
    "XDG_CACHE_HOME": str(Path(lit_config.params["plugins"]) / "cache"),  # noqa: F821
}
for name, path in (
    ("%clang", f"{programs / 'clang++'} --cuda-gpu-arch=sm_75"),
    ("%wrapper", f"{programs / 'kesco-clang++'} --cuda-gpu-arch=sm_75"),
    ("%kesco", f"-fplugin={lit_config.params['plugins']}/libkesco.so"),  # noqa: F821
    ("%nm", str(Path(lit_config.params["tools"]) / "llvm-nm")),  # noqa: F821
    ("%opt", str(Path(lit_config.params["tools"]) / "opt")),  # noqa: F821
    ("%plugins", lit_config.params["plugins"]),  # noqa: F821
    ("%filecheck", str(Path(sys.executable).with_name("filecheck"))),
):
    config.substitutions.append((name, path))  # noqa: F821
