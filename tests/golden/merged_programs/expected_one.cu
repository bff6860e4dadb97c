#line 1 "kesco_merged_main"
// The arguments of the tasks stand between "--", in the order in which they were named to kesco merge.
int main(int argc, char** argv) {
  using kesco_merged::Task;
  static Task tasks[] = {
      {[](int count, char** values) { return kesco_merged::call(kesco_one::main, count, values); }, 0, {argv[0]}},
      {[](int count, char** values) { return kesco_merged::call(kesco_two::main, count, values); }, 1, {argv[0]}},
  };
  size_t task = 0;
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], "--") == 0) ++task;
    else if (task < 2) tasks[task].arguments.push_back(argv[i]);
  }
  if (task >= 2) {
    std::fprintf(stderr, "usage: %s [one's arguments] -- [two's arguments]\n", argv[0]);
    return 2;
  }
  cudaDeviceSynchronize();  // what initialisers of globals have given the device
  for (Task& one : tasks) {
    one.arguments.push_back(nullptr);
    if (!kesco_merged::prepare(one)) {
      std::perror(argv[0]);
      return 1;
    }
  }
  for (bool left = true; left;) {
    left = false;
    for (const int number : {0, 1}) {
      if (tasks[number].done) continue;
      left = true;
      kesco_merged::current = &tasks[number];
      swapcontext(&kesco_merged::between, &tasks[number].place);
      kesco_merged::current = nullptr;
    }
  }
  for (const Task& one : tasks)
    if (one.code != 0) return one.code;
  return 0;
}
