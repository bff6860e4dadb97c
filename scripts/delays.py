"""Random programs on a GPU, with delays in their kernels, so that a missing wait shows as another result.

    python scripts/delays.py build FOLDER [--programs 512] [--from 0]    where clang is; writes .cu files
    python scripts/delays.py run FOLDER [--jobs 16]                      where the GPU and nvcc are; prints a table

The programs are those of `tests/property/programs.py`. kesco gets them as they are; what it wrote, and the serial text,
then get other kernels of the same names: they read and write the same parameters, mix what they find into what they
write in a way that depends on the order, and sleep for a time drawn anew for each launch. Each program runs with
several inputs; the contents of all its buffers are hashed. The serial program runs twice: where its two results differ,
the program has no defined result and is left out. Of every fourth file a third version has lost its waits on purpose,
to see that this would be noticed.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
TOGETHER = 8
INPUTS = 6
VERSIONS = ("serial", "serial", "kesco", "broken")

DEVICE = """\
#include <cstdio>
#include <cstring>
#include <vector>
__device__ unsigned ticket;
__device__ unsigned scramble(unsigned x) {
  x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu, x ^= x >> 16;
  return x;
}
__device__ void delay() {  // up to 30 microseconds, one launch in eight up to 240
  unsigned drawn = threadIdx.x == 0 ? scramble(atomicAdd(&ticket, 1u) * 2654435761u + clock()) : 0;
  drawn = __shfl_sync(~0u, drawn, 0);
  const long long wanted = (drawn >> 8) % 30000 * (drawn % 8 == 0 ? 8 : 1), start = clock64();
  while (clock64() - start < 2 * wanted) {}
  __syncwarp();
}
std::vector<void*> tracked;
cudaError_t tracked_malloc(void** pointer, size_t bytes, bool managed) {
  const cudaError_t done = managed ? cudaMallocManaged(pointer, bytes) : cudaMalloc(pointer, bytes);
  std::vector<unsigned> words(bytes / 4);
  for (unsigned& word : words) word = 2654435761u * (tracked.size() * 4096 + (&word - words.data()));
  cudaMemcpy(*pointer, words.data(), bytes, cudaMemcpyDefault);
  cudaDeviceSynchronize();
  tracked.push_back(*pointer);
  return done;
}
#define cudaMalloc(pointer, bytes) tracked_malloc((void**)(pointer), bytes, false)
#define cudaMallocManaged(pointer, bytes) tracked_malloc((void**)(pointer), bytes, true)
"""

DRIVER = """\
#undef cudaMalloc
#undef cudaMallocManaged
std::vector<float*> seen;
cudaStream_t own() {
  static cudaStream_t stream = [] { cudaStream_t made; cudaStreamCreate(&made); return made; }();
  return stream;
}
void touch(float* p) {  // unseen code with a stream of its own
  seen.push_back(p);
  k_x<<<1, 32, 0, own()>>>(p);
}
void elsewhere() {
  for (float* p : seen) k_x<<<1, 32, 0, own()>>>(p);
}
void once(const char* name, int (*program)(int, char**), unsigned input) {
  std::vector<std::vector<char>> words(64, std::vector<char>(64));
  std::vector<char*> argv;
  unsigned drawn = input * 7919u + 17u;
  for (auto& word : words) {
    for (char& c : word) drawn = drawn * 1664525u + 1013904223u, c = drawn >> 28 & 1 ? 'y' : 'n';
    argv.push_back(word.data());
  }
  for (int again = 0; again < 2; ++again) program(input * 7 % 4, argv.data());
  unsigned long long hash = 1469598103934665603ull;
  cudaDeviceSynchronize();
  for (void* one : tracked) {
    unsigned char bytes[4096];
    cudaMemcpy(bytes, one, sizeof bytes, cudaMemcpyDefault);
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ull;
  }
  std::printf("%s %u %016llx %s\\n", name, input, hash, cudaGetErrorString(cudaGetLastError()));
  for (void* one : tracked) cudaFree(one);
  tracked.clear();
  seen.clear();
}
"""


def write(line: str) -> None:
    """A line of output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def kernel(modes: str, number: int) -> str:
    """The same accesses in an order-dependent mix: everything is read before anything is written."""
    names = [f"p{n}" for n in range(len(modes))]
    parameters = ", ".join(f"float* {name}" for name in names)
    lines = [f"__global__ void k_{modes}({parameters}) {{", f"  int i = threadIdx.x; unsigned sum = {number + 1}u;"]
    lines.append("  delay();")
    for name, mode in zip(names, modes, strict=True):
        if mode != "w":
            lines.append(f"  sum = scramble(sum * 31u + ((unsigned*){name})[i]);")
    lines.append("  __syncwarp();")
    for position, (name, mode) in enumerate(zip(names, modes, strict=True)):
        if mode != "r":
            lines.append(f"  ((unsigned*){name})[i] = scramble(sum + {position}u); __syncwarp();")
    return "\n".join([*lines, "}"])


def runnable(text: str, programs: list[str]) -> str:
    """A text of `text_of`, or what kesco made of it, with other kernels and a driver."""
    from property.kernels import MODES
    from property.kernels import kernel as plain

    for number, modes in enumerate(MODES):
        text = text.replace(plain(modes), kernel(modes, number))
    head = text.index("__global__")
    x = "" if "x" in MODES else kernel("x", 99)
    text = text[:head] + DEVICE + x + "\n" + text[head:].replace("float h[1024];", "float h[1024] = {};")
    text = re.sub(r"\bint main\(int argc, char\*\* argv\)", "int main_(int argc, char** argv)", text)
    text = text.replace("int main() { return 0; }", "")
    calls = "\n".join(f'    once("{name}", {name}, input);' for name in programs)
    return (
        f"{text}\n{DRIVER}int main() {{\n  for (unsigned input = 0; input < {INPUTS}; ++input) {{\n{calls}\n  }}\n}}\n"
    )


def build(folder: Path, programs: int, first: int) -> None:
    """Write the serial and the concurrent files, and of some a version without waits."""
    from property.programs import draw, text_of

    from kesco.options import Options
    from kesco.pipeline import compile_file

    folder.mkdir(parents=True, exist_ok=True)
    rewritten = waits = 0
    for file in range(first // TOGETHER, (first + programs) // TOGETHER):
        names = ["main" if n == 0 else f"program{file * TOGETHER + n}" for n in range(TOGETHER)]
        drawn = [draw(file * TOGETHER + n, name) for n, name in enumerate(names)]
        source = folder / f"{file}.cu"
        source.write_text(text_of(drawn))
        done = compile_file(str(source), Options(streams=(0, 2, 3, 8)[file % 4], force=file % 2 == 0))
        rewritten += sum(f.rewritten for f in done.functions)
        text = done.text.decode()
        waits += text.count("// kesco: wait for")
        called = ["main_", *names[1:]]
        (folder / f"serial{file}.cu").write_text(runnable(source.read_text(), called))
        (folder / f"kesco{file}.cu").write_text(runnable(text, called))
        if file % 4 == 0:
            less = "\n".join(line for line in text.split("\n") if "// kesco: wait for" not in line)
            (folder / f"broken{file}.cu").write_text(runnable(less, called))
        source.unlink()
        write(f"file {file}: {rewritten} functions rewritten, {waits} waits")
    (folder / "made.json").write_text(json.dumps({"rewritten": rewritten, "waits": waits}))


def outcome(binary: Path) -> dict[str, str]:
    """What a program printed, by program and input; nothing where there is none."""
    if not binary.exists():
        return {}
    done = subprocess.run([binary], capture_output=True, text=True, timeout=120)
    lines = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
    found = {f"{name} {number}": rest for name, number, rest in lines}
    return found if done.returncode == 0 else found | {"exit": str(done.returncode)}


def run(folder: Path, jobs: int) -> int:
    """Compile and run everything; 1 if a concurrent program's result is not the serial one's."""
    sources = sorted(folder.glob("*[0-9].cu"))

    def compiled(source: Path) -> str:
        command = ["nvcc", "-arch=native", "-std=c++17", "-O1", "-w", str(source), "-o", str(source.with_suffix(""))]
        done = subprocess.run(command, capture_output=True, text=True)
        return f"{source.name}: {done.stderr}" if done.returncode else ""

    with ThreadPoolExecutor(jobs) as pool:
        failed = [one for one in pool.map(compiled, sources) if one]
    for one in failed[:5]:
        write(one)
    numbers = [one.stem.removeprefix("serial") for one in sorted(folder.glob("serial*.cu"))]
    programs = unstable = wrong = noticed = broken = 0
    with ThreadPoolExecutor(max(1, jobs // 4)) as pool:
        runs = pool.map(lambda number: [outcome(folder / f"{name}{number}") for name in VERSIONS], numbers)
        for number, (first, second, ours, lost) in zip(numbers, runs, strict=True):
            stable = {key for key in first if first[key] == second.get(key) and first[key].endswith("no error")}
            unstable += len(first) - len(stable)
            programs += len({key.split()[0] for key in stable})
            bad = sorted(key for key in stable if ours.get(key) != first[key])
            wrong += len(bad)
            for key in bad:
                write(f"file {number}: {key}: {ours.get(key)} instead of {first[key]}")
            if lost:
                broken += len({key.split()[0] for key in stable})
                noticed += len({key.split()[0] for key in stable if lost.get(key) != first[key]})
    write(f"{programs} programs, {INPUTS} inputs each: {wrong} wrong results; {unstable} runs without a defined result")
    write(f"without their waits {noticed} of {broken} programs gave another result")
    write(f"not compiled: {len(failed)}; made of {(folder / 'made.json').read_text()}")
    return 1 if wrong or failed else 0


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("action", choices=("build", "run"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--programs", type=int, default=512)
    parser.add_argument("--from", type=int, default=0, dest="first")
    parser.add_argument("--jobs", type=int, default=16)
    given = parser.parse_args()
    if given.action == "run":
        sys.exit(run(given.folder, given.jobs))
    build(given.folder, given.programs, given.first)


if __name__ == "__main__":
    main()
