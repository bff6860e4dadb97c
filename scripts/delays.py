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
#include <algorithm>
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
  if (bytes < 4096) return done;  // a table of pointers
  std::vector<unsigned> words(bytes / 4);
  for (unsigned& word : words) word = 2654435761u * (tracked.size() * 4096 + (&word - words.data()));
  cudaMemcpy(*pointer, words.data(), bytes, cudaMemcpyDefault);
  cudaDeviceSynchronize();
  tracked.push_back(*pointer);
  return done;
}
cudaError_t tracked_free(void* pointer) {
  tracked.erase(std::remove(tracked.begin(), tracked.end(), pointer), tracked.end());
  return cudaFree(pointer);
}
cudaError_t pinned_malloc(void** pointer, size_t bytes) {
  const cudaError_t done = cudaMallocHost(pointer, bytes);
  std::memset(*pointer, 0, bytes);
  return done;
}
#define cudaMalloc(pointer, bytes) tracked_malloc((void**)(pointer), bytes, false)
#define cudaMallocHost(pointer, bytes) pinned_malloc((void**)(pointer), bytes)
#define cudaFree(pointer) tracked_free(pointer)
#define cudaMallocManaged(pointer, bytes) tracked_malloc((void**)(pointer), bytes, true)
"""

DRIVER = """\
#undef cudaMalloc
#undef cudaMallocManaged
#undef cudaMallocHost
#undef cudaFree
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
void once(const char* name, int (*program)(int, char**), unsigned run) {
  Input input(run);
  for (int again = 0; again < 2; ++again) program(input.argc, input.argv.data());
  unsigned long long hash = 1469598103934665603ull;
  cudaDeviceSynchronize();
  for (void* one : tracked) {
    unsigned char bytes[4096];
    cudaMemcpy(bytes, one, sizeof bytes, cudaMemcpyDefault);
    for (unsigned char byte : bytes) hash = (hash ^ byte) * 1099511628211ull;
  }
  std::printf("%s %u %016llx %s\\n", name, run, hash, cudaGetErrorString(cudaGetLastError()));
  tracked.clear();  // not freed: a static variable may still point there
  seen.clear();
}
"""


def write(line: str) -> None:
    """A line of output, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def delayed(name: str, number: int) -> str:
    """The same accesses in an order-dependent mix: everything is read before anything is written."""
    from property.kernels import signature

    parameters, accesses = signature(name)
    lines = [f"__global__ void {name}({parameters}) {{", f"  int i = threadIdx.x; unsigned sum = {number + 1}u;"]
    lines.append("  delay();")
    for pointer, mode in accesses:
        if mode != "w":
            lines.append(f"  sum = scramble(sum * 31u + ((unsigned*){pointer})[i]);")
    lines.append("  __syncwarp();")
    for position, (pointer, mode) in enumerate(accesses):
        if mode != "r":
            lines.append(f"  ((unsigned*){pointer})[i] = scramble(sum + {position}u); __syncwarp();")
    return "\n".join([*lines, "}"])


def runnable(text: str, programs: list[str]) -> str:
    """A text of `text_of`, or what kesco made of it, with other kernels and a driver."""
    from property.kernels import NAMES
    from property.runnable import INPUT, as_library, called

    for number, name in enumerate(NAMES):
        text = re.sub(rf"(?m)^__global__ void {name}\(.*\}}$", lambda _, n=number, k=name: delayed(k, n), text)
    head = text.index("__global__")
    text = text[:head] + DEVICE + "\n" + as_library(text[head:])
    calls = "\n".join(f'    once("{called(name)}", {called(name)}, input);' for name in programs)
    main = f"int main() {{\n  for (unsigned input = 0; input < {INPUTS}; ++input) {{\n{calls}\n  }}\n}}\n"
    return f"{text}\n{INPUT}{DRIVER}{main}"


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
        (folder / f"serial{file}.cu").write_text(runnable(source.read_text(), names))
        (folder / f"kesco{file}.cu").write_text(runnable(text, names))
        if file % 4 == 0:
            less = "\n".join(line for line in text.split("\n") if "// kesco: wait for" not in line)
            (folder / f"broken{file}.cu").write_text(runnable(less, names))
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
