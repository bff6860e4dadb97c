// Runs several programs of the suite in one process, in turns, so that their times can be compared pair by pair.
//
//   turns ROUNDS REPEAT SKIP WARMUP SEED PROGRAM.so[:NAME=VALUE]... -- ARGUMENTS
//
// Each program is a shared object whose `main` has its own stack. It runs WARMUP repetitions; then in each of ROUNDS
// rounds every program has one turn, in an order that changes from round to round: SKIP repetitions that find caches as
// the program before left them, and REPEAT that count. Each repetition ends with a wait for the device, so that at a
// change of turns nothing is running. A program says at the end of a repetition how long it took (options.cuh, TURNS).
// All programs get ARGUMENTS; NAME=VALUE is in the environment while the program in front of it runs.
//
// Prints for each program, numbered from 0:
//
//   times_ms NUMBER <mean of the repetitions of a turn, milliseconds> ...   one for each round
//   result NUMBER <checksum>
#include <dlfcn.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr size_t kStack = size_t{64} << 20;  // bytes; only what is used takes memory

struct Program {
  int (*main)(int, char**) = nullptr;
  std::string name, variable, value;
  std::vector<char*> arguments;
  ucontext_t place = {};
  long skip = 0, left = 0;  // repetitions of this turn that do not count, and all that are still to run
  double sum = 0;           // of those that counted
  double result = 0;
  int status = -1;  // what `main` returned
  std::vector<double> times;
};

ucontext_t driver;
Program* running = nullptr;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "turns: %s\n", what.c_str());
  std::exit(2);
}

void begin() {
  Program& program = *running;
  program.status = program.main(static_cast<int>(program.arguments.size()) - 1, program.arguments.data());
}

// Lets a program run `skip + count` repetitions more, or to its end; the mean of the last `count`, in milliseconds.
double turn(Program& program, long skip, long count) {
  running = &program;
  program.skip = skip;
  program.left = skip + count;
  program.sum = 0;
  if (program.status >= 0) fail(program.name + " ended before its last repetition");
  if (!program.variable.empty()) setenv(program.variable.c_str(), program.value.c_str(), /*overwrite=*/1);
  if (swapcontext(&driver, &program.place) != 0) fail("cannot change to " + program.name);
  if (!program.variable.empty()) unsetenv(program.variable.c_str());
  return count > 0 ? program.sum / static_cast<double>(count) : 0;
}

void load(Program& program, const std::string& given, char** arguments, const std::string& iterations) {
  const size_t colon = given.find(':'), equals = given.find('=', colon == std::string::npos ? given.size() : colon);
  program.name = given.substr(0, colon);
  if (equals != std::string::npos) {
    program.variable = given.substr(colon + 1, equals - colon - 1);
    program.value = given.substr(equals + 1);
  }
  void* const object = dlopen(program.name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) fail(dlerror());
  program.main = reinterpret_cast<int (*)(int, char**)>(dlsym(object, "main"));
  if (program.main == nullptr) fail(program.name + " has no main");
  program.arguments.push_back(strdup(program.name.c_str()));
  for (; *arguments != nullptr; ++arguments) program.arguments.push_back(*arguments);
  program.arguments.push_back(strdup("--iters"));
  program.arguments.push_back(strdup(iterations.c_str()));
  program.arguments.push_back(nullptr);
  void* const stack = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED || getcontext(&program.place) != 0) fail("no stack for " + program.name);
  program.place.uc_stack.ss_sp = stack;
  program.place.uc_stack.ss_size = kStack;
  program.place.uc_link = &driver;
  makecontext(&program.place, begin, 0);
}

}  // namespace

extern "C" void repetition_took(double milliseconds) {
  Program& program = *running;
  if (program.skip > 0) --program.skip;
  else program.sum += milliseconds;
  if (--program.left == 0) swapcontext(&program.place, &driver);
}

extern "C" void program_computed(double result) { running->result = result; }

int main(int argc, char** argv) {
  int at = 6;
  while (at < argc && std::strcmp(argv[at], "--") != 0) ++at;
  if (at == 6 || at >= argc) fail("usage: turns ROUNDS REPEAT SKIP WARMUP SEED PROGRAM.so[:NAME=VALUE]... -- ARGUMENTS");
  const long rounds = std::atol(argv[1]), repeat = std::atol(argv[2]), skip = std::atol(argv[3]);
  const long warmup = std::atol(argv[4]);
  if (rounds < 1 || repeat < 1 || skip < 0 || warmup < 1) fail("ROUNDS, REPEAT and WARMUP are at least 1");

  std::vector<Program> programs(at - 6);
  const std::string iterations = std::to_string(warmup + rounds * (skip + repeat));
  for (size_t i = 0; i < programs.size(); ++i) load(programs[i], argv[6 + i], argv + at + 1, iterations);
  for (Program& program : programs) turn(program, warmup, 0);

  std::mt19937 random(static_cast<unsigned>(std::atol(argv[5])));
  std::vector<Program*> order;
  for (Program& program : programs) order.push_back(&program);
  for (long round = 0; round < rounds; ++round) {
    std::shuffle(order.begin(), order.end(), random);
    for (Program* program : order) program->times.push_back(turn(*program, skip, repeat));
  }
  for (Program& program : programs) {
    if (program.status < 0) turn(program, 0, 0);  // what comes behind the last repetition
  }
  for (size_t i = 0; i < programs.size(); ++i) {
    if (programs[i].status != 0) fail(programs[i].name + " ended with " + std::to_string(programs[i].status));
    std::printf("times_ms %zu", i);
    for (double time : programs[i].times) std::printf(" %.6f", time);
    std::printf("\nresult %zu %.9g\n", i, programs[i].result);
  }
  return 0;
}
