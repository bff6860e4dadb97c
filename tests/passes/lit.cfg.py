"""lit's settings for the tests of the plugins; `test_passes.py` builds them and runs lit with both parameters."""

import sys
from pathlib import Path

import lit.formats

config.name = "kesco passes"  # noqa: F821 (lit defines it)
config.test_format = lit.formats.ShTest(False)  # noqa: F821
config.suffixes = [".ll"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(lit_config.params["plugins"]) / "lit")  # noqa: F821
for name, path in (
    ("%opt", str(Path(lit_config.params["tools"]) / "opt")),  # noqa: F821
    ("%plugins", lit_config.params["plugins"]),  # noqa: F821
    ("%filecheck", str(Path(sys.executable).with_name("filecheck"))),
):
    config.substitutions.append((name, path))  # noqa: F821
