"""lit's settings for the tests of the plugins; `test_passes.py` builds them and runs lit with both parameters."""

import sys
from pathlib import Path

import lit.formats

config.name = "kesco passes"
config.test_format = lit.formats.ShTest(False)
config.suffixes = [".ll"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(lit_config.params["plugins"]) / "lit")
for name, path in (
    ("%opt", str(Path(lit_config.params["tools"]) / "opt")),
    ("%plugins", lit_config.params["plugins"]),
    ("%filecheck", str(Path(sys.executable).with_name("filecheck"))),
):
    config.substitutions.append((name, path))
