"""What an answer depends on besides the files that a compiler read; no compiler runs here."""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from kesco.frontend.standard import is_standard_path, is_toolkit_path
from kesco.options import Options
from kesco.wrapper import analyse, entries
from kesco.wrapper.files import digest
from kesco.wrapper.includes import Includes, scan
from kesco.wrapper.running import Results


def scanned(folder: Path, text: str, *flags: str, system: tuple[str, ...] = ("sys",)) -> Includes:
    (folder / "src").mkdir(exist_ok=True)
    (folder / "src/a.cu").write_text(text)
    return scan("src/a.cu", text.encode(), flags, (), lambda _: False, system)


def test_where_a_file_would_be_found_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("two/pre.h", "two/quoted.h"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).touch()
    found = scanned(tmp_path, '#include "quoted.h"\n', "-I", "one", "-I", "two", "-include", "pre.h")
    assert {"two/pre.h", "two/quoted.h"} <= set(found.files)
    assert {"./pre.h", "one/pre.h", "src/quoted.h", "one/quoted.h"} <= set(found.missing)


def test_a_condition_that_only_the_device_sees(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = '#ifdef __CUDA_ARCH__\n#include "device.h"\n#endif\n#if __has_include("maybe.h")\n#endif\n'
    (tmp_path / "src").mkdir()
    (tmp_path / "src/device.h").write_text("# include <inner.h>\n")
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc/inner.h").touch()
    found = scanned(tmp_path, text, "-I", "inc")
    assert {"src/device.h", "inc/inner.h"} <= set(found.files)
    assert {"src/maybe.h", "inc/maybe.h"} <= set(found.missing)


def test_what_is_beside_the_source_is_no_hazard_if_its_folder_is_searched_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in ``src/util/timer.h``: ``#include "util/timer.h"`` with ``-I src``, also where a comment says so."""
    monkeypatch.chdir(tmp_path)
    for name in ("src/util/timer.h", "other/util/timer.h"):
        Path(name).parent.mkdir(parents=True)
        Path(name).write_text('// #include "util/timer.h"\n')
    text = '#include "util/timer.h"\n'
    assert scanned(tmp_path, text, "-I", "src", "-I", "other").hazard == ""
    assert "beside the source" in scanned(tmp_path, text).hazard  # without kesco it is not found at all
    assert "beside the source" in scanned(tmp_path, text, "-I", "other", "-I", "src").hazard
    assert "beside the source" in scanned(tmp_path, text, "-I", f"{tmp_path}/src").hazard  # __FILE__ is another one


def test_a_header_of_the_system_that_is_only_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = "#if __has_include(<nccl.h>)\n#endif\n"
    assert "sys/nccl.h" in scanned(tmp_path, text).missing
    Path("sys").mkdir()
    Path("sys/nccl.h").touch()
    assert "sys/nccl.h" in scanned(tmp_path, text).files


def test_a_project_in_a_folder_called_cuda_is_no_toolkit(tmp_path: Path) -> None:
    toolkit, project = tmp_path / "cuda-13.0/targets/x/include", tmp_path / "cuda/include"
    for folder in (toolkit / "cccl/cuda", project, tmp_path / "c++"):
        folder.mkdir(parents=True)
    (toolkit / "cuda_runtime_api.h").touch()
    assert is_standard_path(f"{toolkit}/cuda_fp16.h") and is_standard_path(f"{toolkit}/cccl/cuda/atomic")
    assert not is_standard_path(f"{project}/mine.h") and not is_standard_path(f"{tmp_path}/c++/mine.h")
    assert is_toolkit_path(f"{toolkit}/cublas_v2.h") and not is_toolkit_path(f"{project}/mine.h")
    assert is_toolkit_path("/venv/lib/python3.11/site-packages/nvidia/cu13/include/cufft.h")  # also with -I
    assert is_standard_path("/usr/lib/gcc/x86_64-linux-gnu/12/../../../../include/x86_64-linux-gnu/c++/12/bits/os.h")


def answered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *flags: str, then: Any = None) -> tuple[str, bool, Any]:
    """Why a source was left as it is, whether that is kept, and the options; `then` happens while it is compiled."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    own = tmp_path / "home/kesco/headers/empty.cu"  # made by kesco while it compiles, and named by clang
    source, header, asked = tmp_path / "a.cu", tmp_path / "a.h", list[Options]()
    for path in (source, header):
        path.write_text("int a;\n")
        os.utime(path, (1, 1))
    time.sleep(0.05)  # a file's time is that of the last tick of a clock

    def compiled(path: str, options: Options, observe: Any) -> Any:
        asked.append(options)
        own.parent.mkdir(parents=True, exist_ok=True)
        own.touch()
        if then:
            then(source, header)
        observe("includes", (str(header), str(own)))
        raise analyse.KescoError(analyse.Diagnostic("K100", analyse.Severity.ERROR, "left"))

    monkeypatch.setattr(analyse, "compile_file", compiled)
    nvcc = tmp_path / "nvcc"
    nvcc.write_text("#!/bin/sh\necho '#$ cudafe++ --c++14 --x a.cu'\necho '#$ gcc -D__CUDA_ARCH__=800 -E a.cu'\n")
    nvcc.chmod(nvcc.stat().st_mode | stat.S_IXUSR)
    key, cache = "ab" * 20, tmp_path / "cache"
    question = {
        "sources": {str(source): (key, digest([source.read_bytes()]))}, "flags": list(flags), "name": "nvcc",
        "compiler": str(nvcc), "arguments": [], "options": {}, "cache": str(cache),
    }  # fmt: skip
    request = tmp_path / "request"
    request.write_text(analyse.json.dumps(question))
    analyse.main(str(request))
    entry = entries.loads((tmp_path / "request.0").read_bytes())
    assert entry is not None
    return entry["why"], (cache / key[:2] / key).exists(), asked[0]


def test_what_the_compiler_builds_for_is_what_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why, kept, options = answered(tmp_path, monkeypatch, "-DX")
    assert ("left" in why, kept) == (True, True)
    assert options.flags == ("-DX", "-std=gnu++14", "--gpu-architecture=sm_80")
    assert answered(tmp_path, monkeypatch, "-std", "c++20")[2].flags[:2] == ("-std", "c++20")


def test_on_another_machine_native_means_another_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not answered(tmp_path, monkeypatch, "-arch", "native")[1]


@pytest.mark.parametrize("which", [0, 1])
def test_what_changes_while_it_is_compiled(which: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    why, kept, _ = answered(tmp_path, monkeypatch, then=lambda *files: files[which].write_text("int b;\n"))
    assert why.endswith(("a.cu", "a.h")[which] + " changed while it was compiled") and not kept


def test_a_result_whose_name_is_as_long_as_can_be(tmp_path: Path) -> None:
    name = str(tmp_path / ("n" * 253 + ".o"))
    assert Results(["-o", name], [(1, "", name)], []).arguments == ["-o", name]
    assert Results(["-o", name[:-30] + ".o"], [(1, "", name[:-30] + ".o")], []).pairs
