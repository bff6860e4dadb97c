// What every workload's host side shares: the error check, the command line, reproducible input data, comparison with
// the reference, and the printed result. Nothing here launches a kernel or touches device memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                          \
  do {                                                                                                       \
    const cudaError_t status_ = (call);                                                                      \
    if (status_ != cudaSuccess) {                                                                            \
      std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_));       \
      std::exit(1);                                                                                          \
    }                                                                                                        \
  } while (0)

#if CUDART_VERSION >= 13000
const cudaMemLocation kDevice = {cudaMemLocationTypeDevice, 0};  // where managed memory is prefetched to
#endif

#ifdef TURNS
// Several programs take turns in one process (turns.cpp): it keeps the times and the result.
extern "C" void repetition_took(double milliseconds);
extern "C" void program_computed(double result);
#endif

struct Options {
  long n;       // problem size; each workload says what it counts
  int block;    // threads per block
  int grid;     // blocks per launch
  int iters;    // repetitions of the whole pipeline
  int inner;    // iterations inside one repetition (HITS only)
  bool check;   // compare with the CPU reference
};

// Reads the command line. Without --check or --no-check the reference is computed when n is at most `check_up_to`.
inline Options parse_options(int argc, char** argv, long n, long check_up_to, int block = 256, int grid = 64) {
  Options opt{n, block, grid, 1, 4, false};
  int check = -1;
  for (int i = 1; i < argc; ++i) {
    const char* name = argv[i];
    const long value = i + 1 < argc ? std::atol(argv[i + 1]) : 0;
    bool known = true, takes_value = true;
    if (!std::strcmp(name, "--n")) opt.n = value;
    else if (!std::strcmp(name, "--block")) opt.block = static_cast<int>(value);
    else if (!std::strcmp(name, "--grid")) opt.grid = static_cast<int>(value);
    else if (!std::strcmp(name, "--iters")) opt.iters = static_cast<int>(value);
    else if (!std::strcmp(name, "--inner")) opt.inner = static_cast<int>(value);
    else if (!std::strcmp(name, "--check")) check = 1, takes_value = false;
    else if (!std::strcmp(name, "--no-check")) check = 0, takes_value = false;
    else known = false;
    if (!known || (takes_value && value < 1)) {
      std::fprintf(stderr, "%s: bad option '%s'\nusage: %s [--n N] [--block B] [--grid G] [--iters I] [--inner K] "
                   "[--check | --no-check]   (all numbers at least 1)\n", argv[0], name, argv[0]);
      std::exit(2);
    }
    if (takes_value) ++i;
  }
  opt.check = check < 0 ? opt.n <= check_up_to : check == 1;
  return opt;
}

// Fills `data` with reproducible numbers, uniform in [low, high); another seed gives another sequence.
template <typename T>
void fill(T* data, long n, std::uint64_t seed, double low, double high) {
  for (long i = 0; i < n; ++i) {
    std::uint64_t z = (seed << 40) + static_cast<std::uint64_t>(i) + 1;  // splitmix64 of (seed, i)
    z *= 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    z ^= z >> 31;
    data[i] = static_cast<T>(low + (high - low) * static_cast<double>(z >> 40) * 0x1p-24);
  }
}

// The time of one repetition, at its end.
inline double milliseconds_since(std::chrono::steady_clock::time_point start) {
  const double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
#ifdef TURNS
  repetition_took(took);  // comes back when this program's next turn begins
#endif
  return took;
}

// True if every value is within `tolerance` times the largest expected magnitude; tells the first that is not.
template <typename T>
bool all_close(const char* what, const T* got, const std::vector<double>& want, double tolerance) {
  double scale = 0;
  for (double value : want) scale = std::max(scale, std::fabs(value));
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (!(std::fabs(static_cast<double>(got[i]) - want[i]) <= tolerance * scale)) {  // also catches a NaN
      std::fprintf(stderr, "%s[%zu] is %.9g, expected %.9g\n", what, i, static_cast<double>(got[i]), want[i]);
      return false;
    }
  }
  return true;
}

// A sum that depends on the position of the values, so that exchanged elements do not go unseen.
template <typename T>
double checksum(const T* data, long n) {
  double sum = 0;
  for (long i = 0; i < n; ++i) sum += static_cast<double>(data[i]) * static_cast<double>(1 + i % 13);
  return sum;
}

// Prints the lines that the benchmarks read, and gives the exit status of the program.
inline int finish(const Options& opt, std::vector<double> times, double result, bool correct) {
#ifdef TURNS
  program_computed(result);
#else
  std::printf("times_ms");  // in the order of the repetitions
  for (double time : times) std::printf(" %.6f", time);
  std::printf("\n");
  std::sort(times.begin(), times.end());
  const std::size_t half = times.size() / 2;
  const double median = times.size() % 2 ? times[half] : (times[half - 1] + times[half]) / 2;
  std::printf("time_ms %.6f\nresult %.9g\n", median, result);
  if (opt.check) std::printf("%s\n", correct ? "PASS" : "FAIL");
#endif
  return correct ? 0 : 1;
}
