// For programs that are measured side by side: a common start, and the time from there to a task's results on the host.
//
// MP_START names a file of 512 words that all of them map: how often tasks have been ready, and for each round the time
// of CLOCK_MONOTONIC, in nanoseconds, at which all begin; 0 is not yet. Without it a program begins at once. MP_ROUNDS
// is how many rounds there are, one where it is not given. Nothing here uses the GPU.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

// How often a program does its task, each time from a common start.
inline int rounds() {
  const char* many = std::getenv("MP_ROUNDS");
  return many == nullptr ? 1 : std::atoi(many);
}

// Waits for the common start of a round, counted from 0, and gives its time.
inline std::chrono::steady_clock::time_point wait_for_start(int round, long tasks = 1) {
  const char* name = std::getenv("MP_START");
  if (name == nullptr) return std::chrono::steady_clock::now();
  const int file = open(name, O_RDWR);
  void* shared = file < 0 ? MAP_FAILED : mmap(nullptr, 512 * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) {
    std::perror(name);
    std::exit(1);
  }
  long* const words = static_cast<long*>(shared);
  __atomic_fetch_add(&words[0], tasks, __ATOMIC_SEQ_CST);
  long at = 0;
  while ((at = __atomic_load_n(&words[1 + round], __ATOMIC_SEQ_CST)) == 0) usleep(100);
  const std::chrono::steady_clock::time_point start{std::chrono::nanoseconds(at)};
  while (std::chrono::steady_clock::now() < start) {
  }
  munmap(shared, 512 * sizeof(long));
  close(file);
  return start;
}

inline double since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

// One line for the harness: the task, its milliseconds from the start to its results on the host, their checksum.
inline void report(const char* task, double milliseconds, double result, bool checked, bool correct) {
  std::printf("task %s %.6f %.9g%s\n", task, milliseconds, result, checked ? correct ? " PASS" : " FAIL" : "");
}
