"""Random programs as programs that run: without a GPU under `kesco check`, and with one (`scripts/delays.py`).

In: a text of several programs, or what kesco made of it. Out: the same with a `main` that calls each of them with
several inputs. Code that the programs do not see (`touch`, `elsewhere`) works on a stream of its own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from property.mutations import SELECTOR
from property.oracle import COUNTS, RUNS

from kesco.check import Prepared, Report, Run, observe, prepare
from kesco.diagnostics import Diagnostic
from kesco.options import Options

INPUT = f"""
#include <vector>
struct Input {{  // the same as in `oracle.letter`
  int argc;
  std::vector<std::vector<char>> words;
  std::vector<char*> argv;
  explicit Input(unsigned run) : words(256, std::vector<char>(16)) {{
    static const int counts[] = {{{", ".join(map(str, COUNTS))}}};
    argc = counts[run % {len(COUNTS)}];
    for (unsigned i = 0; i < words.size(); ++i) {{
      for (unsigned j = 0; j < words[i].size(); ++j) {{
        unsigned mixed = (run * 7919u + i * 104729u + j * 1299709u + 12345u) * 2654435761u;
        mixed = (mixed ^ mixed >> 15) * 2246822519u;
        words[i][j] = mixed >> 28 & 1 ? 'y' : 'n';
      }}
      argv.push_back(words[i].data());
    }}
  }}
}};
"""

DRY = """
#include <cstring>
__global__ void nothing() {}
static std::vector<float*> seen;
static cudaStream_t own() {
  static cudaStream_t stream = [] { cudaStream_t made; cudaStreamCreate(&made); return made; }();
  return stream;
}
void elsewhere() {
  nothing<<<1, 1>>>();
  for (float* p : seen) k_x<<<1, 32>>>(p);
  nothing<<<1, 1, 0, own()>>>();
  for (float* p : seen) k_x<<<1, 32, 0, own()>>>(p);
}
void touch(float* p) {
  seen.push_back(p);
  elsewhere();
}
static void all(int (*program)(int, char**)) {
  for (unsigned run = 0; run < RUNS; ++run) {
    Input input(run);
    for (int again = 0; again < 2; ++again) program(input.argc, input.argv.data());
    cudaDeviceSynchronize();
    seen.clear();
  }
}
"""


def as_library(text: str) -> str:
    """The text without a `main`; the program of that name is `main_`."""
    text = text.replace("float h[1024];", "float h[1024] = {};")
    text = re.sub(r"\bint main\(int argc, char\*\* argv\)", "int main_(int argc, char** argv)", text)
    return text.replace("int main() { return 0; }", "")


def called(name: str) -> str:
    """What a program is called in `as_library`."""
    return "main_" if name == "main" else name


def dry(text: str, programs: Iterable[str]) -> str:
    """A program for a dry run: all programs with all inputs of the oracle, each twice in a row."""
    calls = "\n".join(f"  all({called(name)});" for name in programs)
    return f"{SELECTOR}{as_library(text)}\n{INPUT}{DRY.replace('RUNS', str(RUNS))}int main() {{\n{calls}\n}}\n"


def built(text: str, options: Options, folder: Path) -> Prepared:
    """A text built for dry runs."""
    path = folder / "dry.cu"
    path.write_text(text)
    place = folder / "built"
    place.mkdir()
    return prepare(str(path), (), options, place)


@contextmanager
def _environment(**values: str) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def observed(program: Prepared, batch: int = -1, arguments: tuple[str, ...] = ()) -> Report:
    """One dry run, with a batch of mutants or none; always on all streams."""
    with _environment(KESCO_MUTANT=str(batch), KESCO_STREAMS="64"):
        return observe(program, Run(arguments))


def lines_of(diagnostic: Diagnostic) -> set[int]:
    """The lines, from 0, that a diagnostic is about."""
    spans = (diagnostic.span, *(note.span for note in diagnostic.notes[:1]))
    return {span.line - 1 for span in spans if span is not None}
