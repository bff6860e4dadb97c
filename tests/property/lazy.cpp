// A CUDA runtime that runs what is asked of it late, early or in between, in any order that CUDA allows.
//
// Kernels are known by their names: `k_rwx` reads its first pointer, writes the second and updates the third, 32 floats
// each, and what comes out depends on the order in which they run. `main` calls the function that its first argument
// names, once for each seed in the second one; a seed draws the order, 0 runs all at once.
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <vector>

namespace {

struct Op {
  std::function<void()> work;
  std::vector<int> after;
  bool done = false;
};
struct Block {
  size_t size;
  int kind;  // 0 device, 1 pinned, 2 managed
  bool gone;
};
struct Queue {
  int last = -1;
  bool blocking = true, eager = false;
};

#define FIRST __attribute__((init_priority(101)))  // programs call before their own constructors
std::recursive_mutex guard;
#define LOCKED std::lock_guard<std::recursive_mutex> locked(guard)
std::vector<Op> ops FIRST;
std::map<cudaStream_t, Queue> queues FIRST;
std::map<cudaEvent_t, int> events FIRST;
std::map<char*, Block> blocks FIRST;
std::map<const void*, std::string> kernels FIRST;
int seed = 0, haste = 0;
std::mt19937 draw FIRST;

void setup() {
  static bool once = false;
  if (once) return;
  once = true;
  queues[nullptr] = Queue{};
}

void force(int which) {
  if (which < 0) return;
  std::vector<int> stack{which};
  while (!stack.empty()) {
    int at = stack.back();
    if (ops[at].done) {
      stack.pop_back();
      continue;
    }
    std::vector<int> open;
    for (int one : ops[at].after)
      if (one >= 0 && !ops[one].done) open.push_back(one);
    if (open.empty()) {
      ops[at].done = true;
      auto work = std::move(ops[at].work);
      if (work) work();
      stack.pop_back();
    } else {
      stack.push_back(open[draw() % open.size()]);
    }
  }
}

Queue& queue(cudaStream_t stream) {
  setup();
  if (stream == cudaStreamLegacy) stream = nullptr;
  if (!queues.count(stream)) {
    fprintf(stderr, "lazy: no such stream\n");
    _Exit(99);
  }
  return queues[stream];
}

bool legacy(cudaStream_t stream) { return stream == nullptr || stream == cudaStreamLegacy; }

// Everything issued that is not done, in some order that is allowed.
void force_all() {
  setup();
  std::vector<int> left;
  for (int n = 0; n < int(ops.size()); ++n)
    if (!ops[n].done) left.push_back(n);
  std::shuffle(left.begin(), left.end(), draw);
  for (int one : left) force(one);
}

int issue(cudaStream_t stream, std::function<void()> work, std::vector<int> after = {}) {
  Queue& mine = queue(stream);
  after.push_back(mine.last);
  if (legacy(stream)) {
    for (auto& [_, other] : queues)
      if (other.blocking) after.push_back(other.last);
  } else if (mine.blocking) {
    after.push_back(queues[nullptr].last);
  }
  ops.push_back({std::move(work), after});
  int number = mine.last = int(ops.size()) - 1;
  if (seed == 0 || mine.eager || int(draw() % 100) < haste) force(number);
  return number;
}

// Somewhere in an allocation, with what is known of it.
Block* block_of(const void* at, char** start = nullptr) {
  auto found = blocks.upper_bound((char*)at);
  if (found == blocks.begin()) return nullptr;
  --found;
  if ((char*)at >= found->first + found->second.size || found->second.gone) return nullptr;
  if (start) *start = found->first;
  return &found->second;
}

void* made(size_t size, int kind) {
  setup();
  size = size ? size : 1;
  char* at = (char*)malloc(size + 256);
  for (size_t n = 0; n + 4 <= size; n += 4) *(float*)(at + n) = 0;
  blocks[at] = {size, kind, false};
  return at;
}

void poison(void* at) {
  auto found = blocks.find((char*)at);
  if (found == blocks.end()) {
    fprintf(stderr, "lazy: freed what is none\n");
    _Exit(98);
  }
  for (size_t n = 0; n + 4 <= found->second.size; n += 4) *(float*)((char*)at + n) = 777777;
}

void work_on(const std::string& name, std::vector<float*> where) {
  size_t begin = name.find('_');
  std::string modes = name.substr(begin + 1);
  unsigned salt = 17;
  for (char c : name) salt = salt * 31 + c;
  for (int i = 0; i < 32; ++i) {
    unsigned sum = salt;
    for (size_t n = 0; n < modes.size(); ++n)
      if (modes[n] == 'r') sum = sum * 1009 + unsigned(where[n][i]) + 13;
    for (size_t n = 0; n < modes.size(); ++n) {
      if (modes[n] == 'w') where[n][i] = float((sum + n * 101) % 1000003);
      if (modes[n] == 'x') where[n][i] = float((sum + n * 101 + unsigned(where[n][i]) * 7919u) % 1000003);
    }
  }
}

bool waits(cudaMemcpyKind kind, const void* to, const void* from) {
  Block *a = block_of(to), *b = block_of(from);
  if (kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyHostToHost) return true;
  if (kind == cudaMemcpyDefault) return !a || a->kind == 1;
  return b && b->kind == 1;
}

cudaError_t copied(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream, bool async) {
  LOCKED;
  if (!bytes) return cudaSuccess;
  if (async) {
    const int number = issue(stream, [=] { memmove(to, from, bytes); });
    if (!block_of(to)) force(number);  // to pageable memory it has been done when it returns (API synchronization behavior)
  } else if (waits(kind, to, from)) {
    force(issue(nullptr, [=] { memmove(to, from, bytes); }));
  } else if (!block_of(from)) {  // pageable memory has been read when it returns
    Queue& mine = queue(nullptr);
    for (auto& [_, other] : queues)
      if (other.blocking) force(other.last);
    force(mine.last);
    std::vector<char> kept((const char*)from, (const char*)from + bytes);
    issue(nullptr, [=] { memcpy(to, kept.data(), bytes); });
  } else {
    issue(nullptr, [=] { memmove(to, from, bytes); });
  }
  return cudaSuccess;
}

thread_local struct {
  dim3 grid, block;
  size_t shared;
  cudaStream_t stream;
} configured;

}  // namespace

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared, void* stream) {
  configured = {grid, block, shared, (cudaStream_t)stream};
  return 0;
}
cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, size_t* shared, void* stream) {
  *grid = configured.grid, *block = configured.block, *shared = configured.shared;
  *(cudaStream_t*)stream = configured.stream;
  return cudaSuccess;
}
void** __cudaRegisterFatBinary(void*) {
  static void* handle;
  return &handle;
}
void __cudaRegisterFatBinaryEnd(void**) {}
void __cudaUnregisterFatBinary(void**) {}
void __cudaRegisterFunction(void**, const char* host, char*, const char* name, int, void*, void*, void*, void*, int*) {
  LOCKED;
  std::string plain = name;
  size_t from = plain.find_first_of("0123456789"), end = from;
  while (isdigit(plain[end])) ++end;
  kernels[host] = plain.substr(end, atoi(plain.c_str() + from));
}
void __cudaRegisterVar(void**, char*, char*, const char*, int, size_t, int, int) {}

cudaError_t cudaLaunchKernel(const void* host, dim3, dim3, void** given, size_t, cudaStream_t stream) {
  LOCKED;
  setup();
  std::string name = kernels.at(host);
  std::vector<float*> where;
  std::string modes = name.substr(name.find('_') + 1);
  if (name[0] == 'p') {
    float** pair = (float**)given[0];
    where = {pair[0], pair[1]};
    for (size_t n = 2; n < modes.size(); ++n) where.push_back(*(float**)given[n - 1]);
  } else {
    for (size_t n = 0; n < modes.size(); ++n) where.push_back(*(float**)given[n]);
  }
  issue(stream, [=] { work_on(name, where); });
  return cudaSuccess;
}

cudaError_t cudaGetLastError() { return cudaSuccess; }
cudaError_t cudaPeekAtLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "an error"; }

cudaError_t cudaMalloc(void** at, size_t size) { LOCKED; return *at = made(size, 0), cudaSuccess; }
cudaError_t cudaMallocManaged(void** at, size_t size, unsigned) { LOCKED; return *at = made(size, 2), cudaSuccess; }
cudaError_t cudaMallocHost(void** at, size_t size) { LOCKED; return *at = made(size, 1), cudaSuccess; }
cudaError_t cudaHostAlloc(void** at, size_t size, unsigned) { LOCKED; return *at = made(size, 1), cudaSuccess; }
cudaError_t cudaFree(void* at) {
  LOCKED;
  force_all();
  if (!at) return cudaSuccess;
  poison(at);
  blocks[(char*)at].gone = true;
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** out, void* at, unsigned) { return *out = at, cudaSuccess; }
cudaError_t cudaFreeHost(void* at) { return cudaFree(at); }
cudaError_t cudaMallocAsync(void** at, size_t size, cudaStream_t stream) {
  LOCKED;
  void* one = *at = made(size, 0);
  issue(stream, [=] { poison(one); });
  return cudaSuccess;
}
cudaError_t cudaFreeAsync(void* at, cudaStream_t stream) {
  LOCKED;
  issue(stream, [=] { poison(at); });
  return cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t* left, size_t* all) { return *left = *all = size_t(64) << 30, cudaSuccess; }
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* out, const void* at) {
  LOCKED;
  memset(out, 0, sizeof *out);
  Block* one = block_of(at);
  out->type = !one ? cudaMemoryTypeUnregistered
              : one->kind == 0 ? cudaMemoryTypeDevice : one->kind == 1 ? cudaMemoryTypeHost : cudaMemoryTypeManaged;
  out->devicePointer = one ? (void*)at : nullptr;
  out->hostPointer = one && one->kind ? (void*)at : nullptr;
  return cudaSuccess;
}

cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
  return copied(to, from, bytes, kind, nullptr, false);
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return copied(to, from, bytes, kind, stream, true);
}
cudaError_t cudaMemset(void* at, int value, size_t bytes) {
  LOCKED;
  Block* one = block_of(at);
  int number = issue(nullptr, [=] { memset(at, value, bytes); });
  if (one && one->kind) force(number);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* at, int value, size_t bytes, cudaStream_t stream) {
  LOCKED;
  issue(stream, [=] { memset(at, value, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemPrefetchAsync(const void*, size_t, cudaMemLocation, unsigned, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaMemAdvise(const void*, size_t, cudaMemoryAdvise, cudaMemLocation) { return cudaSuccess; }

cudaError_t cudaDeviceSynchronize() { LOCKED; return force_all(), cudaSuccess; }
static cudaError_t created(cudaStream_t* stream, bool blocking) {
  LOCKED;
  setup();
  *stream = (cudaStream_t)malloc(64);
  queues[*stream] = {-1, blocking, draw() % 3 == 0};
  return cudaSuccess;
}
cudaError_t cudaStreamCreate(cudaStream_t* stream) { return created(stream, true); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) { return created(stream, flags == 0); }
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int) { return created(stream, !flags); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { LOCKED; return force(queue(stream).last), cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  LOCKED;
  force(legacy(stream) ? issue(nullptr, {}) : queue(stream).last);
  return cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t stream) {
  LOCKED;
  if (draw() % 2) return cudaErrorNotReady;
  force(queue(stream).last);
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t, cudaStreamCaptureStatus* one) {
  return *one = cudaStreamCaptureStatusNone, cudaSuccess;
}
cudaError_t cudaStreamGetPriority(cudaStream_t, int* one) { return *one = 0, cudaSuccess; }
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  return *least = 0, *greatest = -5, cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  LOCKED;
  issue(stream, {}, {events.count(event) ? events[event] : -1});
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* event) { LOCKED; return *event = (cudaEvent_t)malloc(8), cudaSuccess; }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return cudaEventCreate(event); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  LOCKED;
  int number = issue(stream, {});
  return events[event] = number, cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  LOCKED;
  return force(events.count(event) ? events[event] : -1), cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* one, cudaEvent_t, cudaEvent_t) { return *one = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* one) { return *one = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int) { return cudaSuccess; }
cudaError_t cudaDeviceGetAttribute(int* one, cudaDeviceAttr, int) { return *one = 1, cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* one) { return *one = 13000, cudaSuccess; }
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode*) { return cudaSuccess; }
cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** found, unsigned, unsigned long long,
                                             cudaDriverEntryPointQueryResult*) {
  return *found = nullptr, cudaErrorNotSupported;
}

}  // extern "C"

namespace {

// One run in a process of its own; what it prints and how it ends goes to the standard output.
void ran(int (*entry)(int, char**), int with, int count, char** given) {
  FILE* said = tmpfile();
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) {
    dup2(fileno(said), 1), dup2(fileno(said), 2);
    setvbuf(stdout, nullptr, _IONBF, 0);
    alarm(20);
    if (with % 2) setenv("KESCO_COPIES", "move", 0);
    seed = with;
    draw.seed(with);
    haste = draw() % 3 * 20;
    printf("returns %d\n", entry(count, given));
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  printf("=== seed %d\n", with);
  rewind(said);
  for (int c; (c = fgetc(said)) != EOF;) putchar(c);
  fclose(said);
  printf("\nends with %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status));
}

}  // namespace

int main(int count, char** given) {
  if (count < 3) return 97;
  setup();
  std::string name = given[1], symbol = "_Z" + std::to_string(name.size()) + name + "iPPc";
  auto entry = (int (*)(int, char**))dlsym(RTLD_DEFAULT, symbol.c_str());
  if (!entry) entry = (int (*)(int, char**))dlsym(RTLD_DEFAULT, name.c_str());
  if (!entry) return 96;
  for (char* at = given[2]; *at;) {
    int with = int(strtol(at, &at, 10));
    ran(entry, with, count - 2, given + 2);
    at += *at == ',';
  }
  fflush(stdout);
  _exit(0);
}
