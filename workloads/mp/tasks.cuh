// What the merged programs share: the tasks' arguments, and how the one host thread sees when each task is done.
#pragma once

#include "../common/start.cuh"

#include <chrono>
#include <cstring>
#include <vector>

// Stands behind the copy of a task's result to pinned memory, which it reads: done[0] counts the results that arrived.
__global__ void finished(const int* result, int* done) {
  done[1] = *result;
  done[0] += 1;
}

// Notes when the results of each of the tasks are on the host, without a call that would wait for others.
inline void watch(const int* const* done, const int* results, int tasks, std::chrono::steady_clock::time_point start,
                  double* took) {
  int left = tasks;
  for (int task = 0; task < tasks; ++task) took[task] = -1;
  if (std::getenv("MP_UNWATCHED") != nullptr) return;  // without a GPU no kernel counts them
  while (left > 0) {
    for (int task = 0; task < tasks; ++task) {
      if (took[task] < 0 && *static_cast<const volatile int*>(done[task]) == results[task]) {
        took[task] = since(start);
        --left;
      }
    }
  }
}

// The arguments between "--", each set with the program's name in front.
class TaskArguments {
 public:
  TaskArguments(int argc, char** argv, int tasks) : of_(tasks, {argv[0]}) {
    std::size_t task = 0;
    for (int i = 1; i < argc; ++i) {
      if (!std::strcmp(argv[i], "--")) ++task;
      else if (task < of_.size()) of_[task].push_back(argv[i]);
    }
  }
  int count(int task) const { return static_cast<int>(of_[task].size()); }
  char** values(int task) const { return const_cast<char**>(of_[task].data()); }

 private:
  std::vector<std::vector<char*>> of_;
};
