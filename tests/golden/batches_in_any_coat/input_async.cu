// Batches go in, are worked on and come out: in a method, with buffers in members; in a template; in chunks of which the
// last is shorter; in a loop without a counter. Turns overlap wherever the loop stands.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

template <typename T>
__global__ void scale(const T* in, T* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * T(2) + T(1);
}

#define CHECK(call)                                           \
  do {                                                        \
    cudaError_t error = call;                                 \
    if (error != cudaSuccess) {                               \
      fprintf(stderr, "%s\n", cudaGetErrorString(error));     \
      exit(1);                                                \
    }                                                         \
  } while (0)

// ---- kesco: streams and events of this file ---------------------------------------------------------------------
// Made once for each device context and kept. Ordinary blocking streams: whatever stays on the default stream waits
// for them, and they for it. KESCO_STREAMS=n in the environment uses at most n of them; 1 is the serial program again.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <malloc.h>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <utility>
#include <vector>
#ifndef _WIN32
#include <unistd.h>
#endif
#include <thread>
#include <pthread.h>
#include <sched.h>
namespace {
// Where launches are batched: what gives the device those that are late. Events of the following come behind them.
void (*kesco_late)() = nullptr;
[[maybe_unused]] inline void kesco_issue_late() {
  if (kesco_late != nullptr) kesco_late();
}

// Null where all is on the default stream, which keeps the order by itself: then no call is made.
struct KescoEvent {
  cudaEvent_t event = nullptr;
  [[maybe_unused]] friend cudaError_t cudaEventRecord(KescoEvent done, cudaStream_t stream) {
    if (done.event == nullptr) return cudaSuccess;
    kesco_issue_late();
    return ::cudaEventRecord(done.event, stream);
  }
  [[maybe_unused]] friend cudaError_t cudaStreamWaitEvent(cudaStream_t stream, KescoEvent done, unsigned flags) {
    if (done.event == nullptr) return cudaSuccess;
    kesco_issue_late();
    return ::cudaStreamWaitEvent(stream, done.event, flags);
  }
};

struct KescoStreams {
  cudaStream_t stream[2] = {};
  KescoEvent done[1] = {};  // recorded behind an operation that another stream waits for
  KescoEvent tail[2] = {};  // recorded behind all work of a stream, for the default stream to wait for

  void use_one() {  // the default stream, on which the serial program ran
    for (cudaStream_t& each : stream) each = nullptr;
    for (KescoEvent& each : done) each = {};
    for (KescoEvent& each : tail) each = {};
  }
};

// Tells device contexts apart, also after cudaSetDevice and cudaDeviceReset; 0 where the driver cannot say.
unsigned long long kesco_context() {
  using Query = int (*)(void*, unsigned long long*);  // cuCtxGetId
  static const Query query = [] {
    void* entry = nullptr;
#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuCtxGetId", &entry, 12000, cudaEnableDefault, &found);
#else
    cudaGetDriverEntryPoint("cuCtxGetId", &entry, cudaEnableDefault);
#endif
    return reinterpret_cast<Query>(entry);
  }();
  unsigned long long id = 0;
  if (query != nullptr && query(nullptr, &id) != 0) {  // no context yet on this thread
    cudaFree(nullptr);
    if (query(nullptr, &id) != 0) id = 0;
  }
  return id;
}

// Other files may call functions of this one as well: before main and behind it, on threads of their own, or as a library
// is loaded. They get the serial program.
struct KescoMain {
  static bool& runs() {
    static thread_local bool runs = false;
    return runs;
  }
  KescoMain() { runs() = std::atexit([] { runs() = false; }) == 0; }
  ~KescoMain() { runs() = false; }
};

KescoStreams& kesco_streams() {
  static auto& serial = *new KescoStreams;
  if (!KescoMain::runs()) return serial;
  static std::mutex guard;
  static auto& all = *new std::map<unsigned long long, KescoStreams>;  // for destructors of globals, too
  std::lock_guard<std::mutex> lock(guard);
  auto made = all.try_emplace(kesco_context());
  KescoStreams& kesco = made.first->second;
  if (!made.second) return kesco;
  const char* limit = std::getenv("KESCO_STREAMS");
  const int wanted = limit != nullptr ? std::atoi(limit) : 2;
  const int count = wanted < 1 ? 1 : wanted > 2 ? 2 : wanted;
  bool ok = true;
  for (int i = 0; i < count; ++i) ok = ok && cudaStreamCreate(&kesco.stream[i]) == cudaSuccess;
  for (int i = count; i < 2; ++i) kesco.stream[i] = kesco.stream[i % count];
  for (KescoEvent& done : kesco.done)
    ok = ok && cudaEventCreateWithFlags(&done.event, cudaEventDisableTiming) == cudaSuccess;
  for (KescoEvent& tail : kesco.tail)
    ok = ok && cudaEventCreateWithFlags(&tail.event, cudaEventDisableTiming) == cudaSuccess;
  if (!ok || count == 1) kesco.use_one();
  return kesco;
}

// Blocks of the program's pageable memory that a loop copies from or to. Each is pinned once that pays, until the loop
// has ended. That takes some 0.25 ms and 0.08 ms for each MiB; a copy of pageable memory takes 0.2 ms more for each.
class KescoPins {
  struct Block {
    const void* loop;
    const char* begin;
    std::size_t bytes, copied;  // how large it is; 0 until a copy begins where it does, for then it is there
    bool pinned, refused, busy;
  };

  static std::mutex& guard() {
    static std::mutex one;
    return one;
  }

  static std::vector<Block>& all() {
    static auto& blocks = *new std::vector<Block>;
    return blocks;
  }

  static cudaError_t& failed() {
    static cudaError_t error = cudaSuccess;
    return error;
  }

  static void pin(Block& one) {
    static const bool always = std::getenv("KESCO_COPIES") != nullptr;
    static const std::size_t quarter = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) / 4 * sysconf(_SC_PAGESIZE);
    if (one.copied < (std::size_t{1} << 21) + one.bytes / 8 && !always) return;
    one.refused = true;
    if (one.bytes > quarter || cudaPeekAtLastError() != cudaSuccess) return;  // an error that is not ours to clear
    one.pinned = cudaHostRegister(const_cast<char*>(one.begin), one.bytes, cudaHostRegisterDefault) == cudaSuccess;
    if (!one.pinned) cudaGetLastError();
  }

 public:
  static void offer(const void* loop, const void* begin, std::size_t bytes) {
    std::lock_guard<std::mutex> lock(guard());
    all().push_back({loop, static_cast<const char*>(begin), bytes, 0, false, false, false});
  }

  // The pinned block in which a copy's memory is, or null.
  static const void* of(const void* memory, std::size_t bytes) {
    std::lock_guard<std::mutex> lock(guard());
    const char* const begin = static_cast<const char*>(memory);
    for (Block& one : all()) {
      if (one.bytes == 0 && one.begin == begin && bytes > 0) one.bytes = malloc_usable_size(const_cast<void*>(memory));
      if (begin < one.begin || begin + bytes > one.begin + one.bytes) continue;
      one.copied += std::max(bytes, std::size_t{65536});
      if (!one.pinned && !one.refused) pin(one);
      one.busy = one.busy || one.pinned;
      if (one.pinned) return one.begin;
    }
    return nullptr;
  }

  // Until the device is done with all of them.
  static void wait() {
    std::lock_guard<std::mutex> lock(guard());
    if (std::none_of(all().begin(), all().end(), [](const Block& one) { return one.busy; })) return;
    const cudaError_t error = cudaDeviceSynchronize();
    if (failed() == cudaSuccess) failed() = error;
  }

  // What went wrong, which is told once.
  static cudaError_t told() {
    std::lock_guard<std::mutex> lock(guard());
    return std::exchange(failed(), cudaSuccess);
  }

  // The loop has ended, and the device is done with them.
  static void release(const void* loop, cudaError_t error) {
    std::lock_guard<std::mutex> lock(guard());
    if (failed() == cudaSuccess) failed() = error;
    for (Block& one : all())
      if (one.loop == loop && one.pinned) cudaHostUnregister(const_cast<char*>(one.begin));
    const auto its = [=](const Block& one) { return one.loop == loop; };
    all().erase(std::remove_if(all().begin(), all().end(), its), all().end());
  }
};

// Where the allocation that a pointer is in begins, and its size; false where the driver cannot say.
bool kesco_extent(const void* pointer, unsigned long long* base, std::size_t* size) {
  using Range = int (*)(unsigned long long*, std::size_t*, unsigned long long);  // cuMemGetAddressRange
  static const Range range = [] {
    void* entry = nullptr;
#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult found;
    cudaGetDriverEntryPointByVersion("cuMemGetAddressRange", &entry, 12000, cudaEnableDefault, &found);
#else
    cudaGetDriverEntryPoint("cuMemGetAddressRange", &entry, cudaEnableDefault);
#endif
    return reinterpret_cast<Range>(entry);
  }();
  return range != nullptr && range(base, size, reinterpret_cast<unsigned long long>(pointer)) == 0;
}

// What a turn of a loop takes in microseconds, on the streams of one turn and on those of several. The first time a loop
// runs streams are made, the next four times it tries both, and then it goes the faster way; once in 128 the other one.
struct KescoTried {
  double taken[2] = {-1, -1};
  unsigned runs = 0;

  bool tries_one() {
    const unsigned run = runs++;
    if (run < 5) return run % 2 == 1;
    return (taken[0] < taken[1]) != (run % 128 == 0);
  }

  void took(bool several, double time) {
    double& known = taken[several ? 1 : 0];
    if (runs > 1) known = known < 0 || (runs <= 5 && time < known) ? time : runs <= 5 ? known : (3 * known + time) / 4;
  }

  static bool always_several() {
    static const bool always = std::getenv("KESCO_COPIES") != nullptr;
    return always;
  }
};

KescoTried* kesco_tried_in(const void* loop) {
  thread_local auto& all = *new std::map<const void*, KescoTried>;
  return &all[loop];
}

// Turns of a loop that need nothing of each other. One that begins while there is work of the turn before runs on other
// streams, and has buffers of its own, which begin as copies. What memory turns take for themselves is kept. Where memory
// does not suffice, all turns are on the same streams, one behind the other. With memory of their own two are in flight.
struct KescoTurns {
  static constexpr int most = 2;  // in flight
  static constexpr std::size_t spare = std::size_t{256} << 20;  // bytes that must be left on the device
  struct Buffer {
    char* given;  // by the program
    char* base;   // where its allocation begins
    char* copy;
    std::size_t size;
  };
  struct Taken {
    void* at[most];
    std::size_t size[most];
  };
  KescoStreams* streams[most] = {};
  std::map<int, Buffer> buffers;
  std::map<int, Taken> taken;
  bool several = false, begun = false, doubled = false;
  int slot = 0, idle = 0;  // and how often nothing was left of the turn before
  KescoTried* pace = nullptr;
  bool in_order = false;
  bool differs = false;
  std::vector<unsigned long long> alike;
  unsigned turns = 0;
  std::chrono::steady_clock::time_point from;

  static bool leaves_enough() {
    std::size_t left = 0, whole = 0;
    return cudaMemGetInfo(&left, &whole) == cudaSuccess && left >= spare;
  }

  int in_flight() const { return buffers.empty() && taken.empty() ? most : 2; }

  // A second place for a buffer; false where there is none.
  bool doubles(Buffer& one) {
    unsigned long long base = 0;
    std::size_t size = 0;
    void* copy = nullptr;
    if (!kesco_extent(one.given, &base, &size)) return false;
    for (auto& other : buffers)
      if (other.second.base == reinterpret_cast<char*>(base)) return false;
    if (cudaMalloc(&copy, size) != cudaSuccess) {
      cudaGetLastError();
      return false;
    }
    one.base = reinterpret_cast<char*>(base), one.copy = static_cast<char*>(copy), one.size = size;
    return leaves_enough() && cudaMemcpyAsync(copy, one.base, size, cudaMemcpyDeviceToDevice, nullptr) == cudaSuccess;
  }

  // Whether a turn has the same values as all before it.
  [[maybe_unused]] bool is_alike(const std::vector<unsigned long long>& values) {
    if (!begun) alike = values;
    differs = differs || alike != values;
    return !differs;
  }

  // Whether there is work of the turn before. With KESCO_COPIES in the environment there is taken to be.
  bool pending() const {
    if (KescoTried::always_several()) return true;
    if (cudaPeekAtLastError() != cudaSuccess) return false;  // which nothing here may clear
    for (cudaStream_t one : streams[slot]->stream) {
      if (cudaStreamQuery(one) != cudaErrorNotReady) continue;
      cudaGetLastError();
      return true;
    }
    return false;
  }

  // Other streams and second places, made when a turn is the first to need them; false where there are none.
  bool others();

  // A turn may be beside the one before if that is at work. If the first ones never are, all are on the default stream.
  [[maybe_unused]] void next();

  // Memory for this turn; where it does not suffice, that of the other one is freed, and all go on one by one.
  template <typename Size>
  cudaError_t take(int number, Size size, void** made) {
    Taken& one = taken[number];
    void*& at = one.at[slot];
    if (at == nullptr || one.size[slot] < size) {
      cudaError_t error = at == nullptr ? cudaSuccess : cudaFree(at);
      at = nullptr;
      const bool pending = several && cudaPeekAtLastError() != cudaSuccess;  // which nothing here may clear
      if (error == cudaSuccess && !pending) error = cudaMalloc(&at, size);
      bool more = false;
      for (int other = 0; other < most; ++other) more = more || (other != slot && one.at[other] != nullptr);
      if (several && (pending || error == cudaErrorMemoryAllocation || (more && !leaves_enough()))) {
        if (!pending && error != cudaSuccess) cudaGetLastError();
        several = false;
        cudaDeviceSynchronize();
        for (auto& each : taken)
          for (int other = 0; other < most; ++other) {
            if (other == slot) continue;
            cudaFree(each.second.at[other]);
            each.second.at[other] = nullptr;
          }
        error = at == nullptr ? cudaMalloc(&at, size) : cudaSuccess;
      }
      if (error != cudaSuccess) return error;
      one.size[slot] = size;
    }
    *made = at;
    return cudaSuccess;
  }
};

// Other streams, and events for them where a turn has several.
KescoStreams* kesco_others(KescoStreams* kesco, int slot) {
  static std::mutex guard;
  static auto& all = *new std::map<std::pair<KescoStreams*, int>, KescoStreams>;
  std::lock_guard<std::mutex> lock(guard);
  auto made = all.try_emplace({kesco, slot}, *kesco);
  KescoStreams& others = made.first->second;
  if (!made.second) return &others;
  const int first = slot * 1;
  for (int i = 0; i < 2; ++i) others.stream[i] = kesco->stream[(i + first) % 2];
  return &others;
}

// The same on the default stream.
KescoStreams* kesco_in_order(KescoStreams* kesco) {
  static std::mutex guard;
  static auto& all = *new std::map<KescoStreams*, KescoStreams>;
  std::lock_guard<std::mutex> lock(guard);
  auto made = all.try_emplace(kesco, *kesco);
  if (made.second) made.first->second.use_one();
  return &made.first->second;
}

bool KescoTurns::others() {
  if (doubled) return true;
  doubled = true;
  if (in_flight() == 2) several = cudaDeviceSynchronize() == cudaSuccess && cudaPeekAtLastError() == cudaSuccess;
  for (auto& each : buffers) several = several && doubles(each.second);
  for (int other = 1; several && other < in_flight(); ++other) streams[other] = kesco_others(streams[0], other);
  if (!several)
    for (auto& each : buffers) {
      cudaFree(each.second.copy);
      each.second.copy = nullptr;
    }
  return several;
}

void KescoTurns::next() {
  if ((doubled && in_flight() > 2) || pending()) {
    if (others()) slot = (slot + 1) % in_flight();
  } else if (!doubled && ++idle == 2) {
    several = false;
    for (KescoStreams*& one : streams) one = kesco_in_order(one);
  }
}

// Before the loop: the host waits. Each of these buffers may get a second place.
template <typename... Pointers>
[[gnu::noinline]] KescoTurns kesco_turns(KescoStreams* kesco, const Pointers*... pointers) {
  KescoTurns turns;
  for (KescoStreams*& one : turns.streams) one = kesco;
  turns.several = kesco->stream[0] != kesco->stream[1] && cudaDeviceSynchronize() == cudaSuccess &&
                  cudaPeekAtLastError() == cudaSuccess;
  const void* const given[] = {nullptr, pointers...};
  for (int number = 0; number < static_cast<int>(sizeof...(pointers)); ++number)
    turns.buffers[number] = {static_cast<char*>(const_cast<void*>(given[number + 1])), nullptr, nullptr, 0};
  if (turns.several && !KescoTried::always_several()) {
    turns.pace = kesco_tried_in(__builtin_return_address(0));
    turns.in_order = turns.pace->tries_one();
    turns.several = !turns.in_order;
    turns.from = std::chrono::steady_clock::now();
  }
  return turns;
}

// A turn begins: its streams. As long as all turns are alike in these values, they may have others than the one before.
template <typename... Values>
KescoStreams* kesco_turn(KescoTurns& turns, Values... values) {
  const bool same = turns.is_alike({static_cast<unsigned long long>(values)...});
  if (turns.several && turns.begun && same) turns.next();
  turns.begun = true;
  ++turns.turns;
  return turns.streams[turns.slot];
}

// A turn of a loop that is come to again and again begins. Those of one number are on the same streams, in order.
[[maybe_unused]] KescoStreams* kesco_lane(KescoTurns& turns, unsigned long long number) {
  if (turns.several && !turns.doubled) turns.others();
  ++turns.turns;
  return turns.streams[turns.several ? number % KescoTurns::most : 0];
}

// Where a buffer is in this turn.
template <typename Pointer>
void kesco_place(KescoTurns& turns, int number, Pointer** pointer) {
  const KescoTurns::Buffer& one = turns.buffers[number];
  void* const at = turns.slot == 0 ? one.given : one.copy + (one.given - one.base);
  *pointer = static_cast<Pointer*>(at);
}

// What a turn takes for itself it keeps until the loop has ended.
template <typename Pointer>
[[gnu::noinline]] cudaError_t kesco_take(KescoTurns& turns, int number, Pointer** pointer, std::size_t size) {
  void* made = nullptr;
  const cudaError_t error = size == 0 ? cudaMalloc(&made, 0) : turns.take(number, size, &made);
  if (error == cudaSuccess) *pointer = static_cast<Pointer*>(made);
  return error;
}

[[maybe_unused]] cudaError_t kesco_give(KescoTurns&, const void*) { return cudaSuccess; }

// Behind the loop: the host waits, and the buffers hold what the last turn has left in them.
void kesco_turned(KescoTurns& turns) {
  KescoPins::release(&turns, cudaDeviceSynchronize());
  if (turns.pace != nullptr && turns.turns > 1) {
    const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - turns.from;
    turns.pace->took(!turns.in_order, time.count() / turns.turns);
  }
  for (auto& each : turns.buffers) {
    const KescoTurns::Buffer& one = each.second;
    if (one.copy == nullptr) continue;
    if (turns.begun && turns.slot == 1)
      cudaMemcpyAsync(one.base, one.copy, one.size, cudaMemcpyDeviceToDevice, nullptr);
    cudaFree(one.copy);
  }
  for (auto& each : turns.taken)
    for (void* at : each.second.at) cudaFree(at);
}

// Blocks that the loop copies from or to: those of vectors, and those that begin where a pointer points to.
[[maybe_unused]] void kesco_offer(KescoTurns& turns, const void* begin) { KescoPins::offer(&turns, begin, 0); }

template <typename Element>
void kesco_offer(KescoTurns& turns, const std::vector<Element>& elements) {
  if (!elements.empty()) KescoPins::offer(&turns, elements.data(), elements.size() * sizeof(Element));
}

template <typename... Blocks>
void kesco_pin(KescoTurns& turns, const Blocks&... blocks) {
  (kesco_offer(turns, blocks), ...);
}

// cudaMemcpy on a stream. The host goes on when its own memory is done with: to the device when that has been read, to
// the host when the copy is complete. The driver copies pageable memory through pinned memory with one thread; here
// several do that for large copies, piece by piece, while the device moves the pieces before.
class KescoRing {
  static constexpr std::size_t piece = std::size_t{1} << 20;
  static constexpr int slots = 16, ahead = 12;  // pieces that may be in memory, and filled before one is sent
  static constexpr std::size_t least = 8 * piece;     // bytes of a copy for which threads pay
  static constexpr std::size_t enough = 128 * piece;  // bytes of such copies for which pinned memory pays

  static std::atomic<std::size_t>& copied() {  // bytes of such copies so far
    static std::atomic<std::size_t> count{std::getenv("KESCO_COPIES") != nullptr ? enough : 0};
    return count;
  }

 public:
  // How many threads copy; 0 where it would not pay.
  static int threads(std::size_t bytes) {
    static const int cores = static_cast<int>(std::thread::hardware_concurrency());
    return bytes < least || cores < 4 ? 0 : std::min(cores, 8);
  }

  // Pinning memory takes as long as copying some 128 MiB as the program does. It pays from the copy on that makes up
  // for that, with those before it; KESCO_COPIES in the environment makes it pay at once.
  static bool pays(std::size_t bytes) {
    if (bytes >= least && copied() < enough && copied() + bytes >= enough) copied() = enough;
    return copied() >= enough;
  }

  // Until then a copy goes the driver's way, and counts.
  static void counts(std::size_t bytes) {
    if (bytes >= least) copied() += bytes;
  }

  // The ring of the current device context, or null.
  static KescoRing* current() {
    static auto& all = *new std::map<unsigned long long, KescoRing>;
    const unsigned long long context = kesco_context();
    if (context == 0) return nullptr;
    KescoRing& ring = all[context];
    if (ring.made == 0) ring.made = ring.make() ? 1 : -1;
    return ring.made > 0 ? &ring : nullptr;
  }

  cudaError_t copy(void* to, const void* from, std::size_t bytes, bool to_device, cudaStream_t stream) {
    KescoRing::Job job;
    job.ring = memory;
    job.host = static_cast<char*>(const_cast<void*>(to_device ? from : to));
    job.device = static_cast<char*>(const_cast<void*>(to_device ? to : from));
    job.bytes = bytes;
    job.pieces = (bytes + piece - 1) / piece;
    job.to_device = to_device;
    pthread_t others[8];
    int count = 0;
    const int wanted = threads(bytes);
    while (count < wanted && pthread_create(&others[count], nullptr, &KescoRing::work, &job) == 0) ++count;
    cudaError_t error = count == 0 ? cudaErrorNotReady : cudaSuccess;
    if (count > 0) error = to_device ? send(job, stream) : fetch(job, stream);
    job.stop.store(error != cudaSuccess);
    for (int i = 0; i < count; ++i) pthread_join(others[i], nullptr);
    return error;
  }

 private:
  struct Job {
    char *ring = nullptr, *host = nullptr, *device = nullptr;
    std::size_t bytes = 0, pieces = 0;
    bool to_device = false;
    std::atomic<std::size_t> next{0}, open{0};           // the piece to take, and how many may be taken
    std::atomic<std::size_t> done[slots] = {};           // for each slot: the last piece copied, counted from 1
    std::atomic<bool> stop{false};
    std::size_t size(std::size_t i) const { return std::min(piece, bytes - i * piece); }
  };

  char* memory = nullptr;
  cudaEvent_t moved[slots] = {};  // for each slot: the device is done with it
  int made = 0;

  bool make() {
    bool ok = cudaHostAlloc(reinterpret_cast<void**>(&memory), slots * piece, cudaHostAllocDefault) == cudaSuccess;
    for (cudaEvent_t& each : moved)
      ok = ok && cudaEventCreateWithFlags(&each, cudaEventDisableTiming) == cudaSuccess;
    if (!ok) cudaGetLastError();
    return ok;
  }

  // What the threads do; they make no call of CUDA.
  static void* work(void* given) {
    Job& job = *static_cast<Job*>(given);
    for (;;) {
      const std::size_t i = job.next.fetch_add(1);
      if (i >= job.pieces) return nullptr;
      while (job.open.load(std::memory_order_acquire) <= i) {
        if (job.stop.load()) return nullptr;
        sched_yield();
      }
      char *slot = job.ring + i % slots * piece, *host = job.host + i * piece;
      std::memcpy(job.to_device ? slot : host, job.to_device ? host : slot, job.size(i));
      job.done[i % slots].store(i + 1, std::memory_order_release);
    }
  }

  static void until(const std::atomic<std::size_t>& value, std::size_t wanted) {
    while (value.load(std::memory_order_acquire) < wanted) sched_yield();
  }

  cudaError_t send(Job& job, cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    for (cudaEvent_t each : moved)  // of the copy before
      if (error == cudaSuccess) error = cudaEventSynchronize(each);
    for (std::size_t i = 0; i < job.pieces && error == cudaSuccess; ++i) {
      if (i + ahead >= slots) error = cudaEventSynchronize(moved[(i + ahead) % slots]);
      if (error != cudaSuccess) break;
      job.open.store(i + ahead + 1, std::memory_order_release);
      until(job.done[i % slots], i + 1);
      error = cudaMemcpyAsync(job.device + i * piece, job.ring + i % slots * piece, job.size(i), cudaMemcpyHostToDevice,
                              stream);
      if (error == cudaSuccess) error = cudaEventRecord(moved[i % slots], stream);
    }
    return error;
  }

  cudaError_t fetch(Job& job, cudaStream_t stream) {
    cudaError_t error = cudaSuccess;
    std::size_t asked = 0;
    for (std::size_t i = 0; i < job.pieces && error == cudaSuccess; ++i) {
      while (error == cudaSuccess && asked < job.pieces && asked < i + slots) {
        const std::size_t slot = asked % slots;
        if (asked < slots) error = cudaEventSynchronize(moved[slot]);  // of the copy before
        else if (job.done[slot].load(std::memory_order_acquire) < asked - slots + 1 && asked > i) break;
        else until(job.done[slot], asked - slots + 1);
        if (error == cudaSuccess)
          error = cudaMemcpyAsync(job.ring + slot * piece, job.device + asked * piece, job.size(asked),
                                  cudaMemcpyDeviceToHost, stream);
        if (error == cudaSuccess) error = cudaEventRecord(moved[slot], stream);
        ++asked;
      }
      if (error == cudaSuccess) error = cudaEventSynchronize(moved[i % slots]);
      if (error == cudaSuccess) job.open.store(i + 1, std::memory_order_release);
    }
    return error;
  }
};

// Parts of the host's memory that copies may still be using. A part that is in one of the last ones, or goes on where it
// ends, as in a loop, becomes one with it.
class KescoRanges {
  using Range = std::pair<const char*, const char*>;
  std::vector<Range> ranges;

 public:
  void add(const void* memory, std::size_t bytes) {
    const char* const begin = static_cast<const char*>(memory);
    const auto last = ranges.size() < 8 ? ranges.begin() : ranges.end() - 8;
    const auto meets = [=](const Range& one) { return one.first <= begin && begin <= one.second; };
    const auto known = std::find_if(last, ranges.end(), meets);
    if (known != ranges.end()) known->second = std::max(known->second, begin + bytes);
    else ranges.emplace_back(begin, begin + bytes);
  }

  [[maybe_unused]] bool meet(const void* memory, std::size_t bytes) const {
    const char* const begin = static_cast<const char*>(memory);
    const auto meets = [=](const Range& one) { return one.first < begin + bytes && begin < one.second; };
    return std::any_of(ranges.begin(), ranges.end(), meets);
  }

  void clear() { ranges.clear(); }
};

// Copies of pageable memory in the background, one way. For each piece the stream is given a wait for a place in pinned
// memory, the copy to or from there, and a mark. To the device it waits until the place is filled and marks it as free;
// to the host it waits until the place is free and marks it as filled. Threads do the rest, piece by piece in the order
// of the calls, and make no call of CUDA. So each wait is for something that was given before, whatever the streams are.
// The host's memory is in use until `wait` is over, which ends the threads, too.
class KescoRelay {
  static constexpr std::size_t piece = std::size_t{1} << 23, part = std::size_t{1} << 20;
  static constexpr std::uint32_t slots = 4;

 public:
  static constexpr std::size_t least = piece;  // bytes of a copy for which this pays

  explicit KescoRelay(bool to_device) : up(to_device) {}

  // The relay of the current device context, or null.
  static KescoRelay* of(std::map<unsigned long long, KescoRelay>& all, bool to_device) {
    const unsigned long long context = kesco_context();
    if (context == 0) return nullptr;
    KescoRelay& relay = all.try_emplace(context, to_device).first->second;
    if (relay.made == 0) relay.made = relay.make() ? 1 : -1;
    return relay.made > 0 ? &relay : nullptr;
  }

  // Gives a copy to a stream; cudaErrorNotReady if that is not possible, and then nothing is done.
  cudaError_t give(char* on_device, char* on_host, std::size_t bytes, cudaStream_t stream) {
    const int wanted = KescoRing::threads(bytes);
    while (count < wanted && pthread_create(&threads[count], nullptr, &KescoRelay::work, this) == 0) ++count;
    if (count == 0) return cudaErrorNotReady;
    last = stream;
    for (std::size_t done = 0; done < bytes; done += piece) {
      const std::size_t size = std::min(piece, bytes - done);
      const std::uint32_t number = given, slot = number % slots;
      if (up) add(on_host + done, size);  // it is filled meanwhile, should the device's queue be full
      char* const place = memory + slot * piece;
      const int waits = wait_value(stream, device + offsetof(Flags, hosts) + slot * sizeof(Flag), ready(number, !up), 0);
      cudaError_t error = static_cast<cudaError_t>(waits);
      if (error == cudaSuccess)
        error = up ? cudaMemcpyAsync(on_device + done, place, size, cudaMemcpyHostToDevice, stream)
                   : cudaMemcpyAsync(place, on_device + done, size, cudaMemcpyDeviceToHost, stream);
      if (error == cudaSuccess)
        error = static_cast<cudaError_t>(
            write_value(stream, device + offsetof(Flags, devices) + slot * sizeof(Flag), number + 1, 0));
      if (error != cudaSuccess) take_back(number, stream);
      else if (!up) add(on_host + done, size);
      if (error == cudaSuccess) continue;
      if (waits == 0 || done > 0) return error;
      made = -1;
      return cudaErrorNotReady;
    }
    return cudaSuccess;
  }

  // Until all copies are done with the host's memory.
  void wait() {
    finish();
    {
      std::lock_guard<std::mutex> lock(guard);
      ends = true;
    }
    changed.notify_all();
    while (count > 0) pthread_join(threads[--count], nullptr);
    ends = false;
  }

 private:
  using Flag = std::atomic<std::uint32_t>;  // the host and the device both see it; it only grows, and may wrap around
  struct Flags {  // for each place the last piece, counted from 1, of which so much is done:
    alignas(64) Flag hosts[slots];    // what the threads do, who fill it or empty it
    alignas(64) Flag devices[slots];  // what the device does
  };
  struct Piece {
    char* memory;
    std::size_t bytes;
  };
  using Value = int (*)(cudaStream_t, unsigned long long, std::uint32_t, unsigned);  // cuStreamWaitValue32
  using Query = int (*)(cudaStream_t);

  const bool up;  // to the device
  int made = 0;
  char* memory = nullptr;
  Flags* flags = nullptr;
  unsigned long long device = 0;  // where the device sees the flags
  Value wait_value = nullptr, write_value = nullptr;
  Query query = nullptr;
  cudaStream_t last = nullptr;
  pthread_t threads[8] = {};
  int count = 0;
  std::uint32_t given = 0;  // pieces so far

  std::mutex guard;  // of all that follows
  std::condition_variable changed;
  std::deque<Piece> pieces;       // that nobody has wholly taken yet
  std::uint32_t added = 0;        // pieces so far
  std::size_t taken = 0;          // bytes of the first piece
  std::size_t left[slots] = {};   // bytes that are not there yet, of the piece in each place
  std::size_t unmoved = 0, moving = 0;  // bytes of all pieces, and of those now being moved
  bool asks = false;              // one thread looks whether the device is done with a place
  bool ends = false;

  static void* entry(const char* name) {
    void* found = nullptr;
#if CUDART_VERSION >= 12050
    cudaDriverEntryPointQueryResult result;
    cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result);
#else
    cudaGetDriverEntryPoint(name, &found, cudaEnableDefault);
#endif
    return found;
  }

  bool make() {
    wait_value = reinterpret_cast<Value>(entry("cuStreamWaitValue32"));
    write_value = reinterpret_cast<Value>(entry("cuStreamWriteValue32"));
    query = reinterpret_cast<Query>(entry("cuStreamQuery"));
    bool ok = wait_value != nullptr && write_value != nullptr && query != nullptr;
    const std::size_t bytes = slots * piece + sizeof(Flags);
    ok = ok && cudaHostAlloc(reinterpret_cast<void**>(&memory), bytes, cudaHostAllocMapped) == cudaSuccess;
    void* seen = nullptr;
    ok = ok && cudaHostGetDevicePointer(&seen, memory + slots * piece, 0) == cudaSuccess;
    if (ok) {
      device = reinterpret_cast<unsigned long long>(seen);
      flags = new (memory + slots * piece) Flags{};
    }
    if (!ok) cudaGetLastError();
    return ok;
  }

  // The count at which a place can be used for a piece: by who empties it when that piece is in it, by who fills it when
  // the one before is not in it any more.
  static std::uint32_t ready(std::uint32_t number, bool fills) { return number + 1 - (fills ? slots : 0); }

  static bool reached(const Flag& flag, std::uint32_t wanted) {
    return static_cast<std::int32_t>(flag.load(std::memory_order_acquire) - wanted) >= 0;
  }

  void add(char* on_host, std::size_t bytes) {
    {
      std::lock_guard<std::mutex> lock(guard);
      pieces.push_back({on_host, bytes});
      unmoved += bytes;
      ++added;
    }
    ++given;
    changed.notify_all();
  }

  static void* work(void* relay) {
    static_cast<KescoRelay*>(relay)->move();
    return nullptr;
  }

  // What the threads do.
  void move() {
    std::unique_lock<std::mutex> lock(guard);
    for (;;) {
      changed.wait(lock, [this] { return pieces.empty() ? ends : !asks; });
      if (pieces.empty()) return;
      const Piece now = pieces.front();
      const std::uint32_t number = added - static_cast<std::uint32_t>(pieces.size()), slot = number % slots;
      if (taken == 0 && !reached(flags->devices[slot], ready(number, up))) {
        asks = true;
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
        lock.lock();
        asks = false;
        continue;
      }
      if (taken == 0) left[slot] = now.bytes;
      const std::size_t begin = taken, size = std::min(part, now.bytes - taken);
      taken += size;
      if (taken == now.bytes) {
        pieces.pop_front();
        taken = 0;
      }
      moving += size;
      lock.unlock();
      if (begin == 0) changed.notify_all();  // who waited for this place
      char* const place = memory + slot * piece + begin;
      std::memcpy(up ? place : now.memory + begin, up ? now.memory + begin : place, size);
      lock.lock();
      moving -= size;
      if ((left[slot] -= size) == 0) flags->hosts[slot].store(number + 1, std::memory_order_release);
      if ((unmoved -= size) == 0) changed.notify_all();
    }
  }

  void finish() {
    std::unique_lock<std::mutex> lock(guard);
    const auto done = [this] { return unmoved == 0; };
    while (!changed.wait_until(lock, std::chrono::system_clock::now() + std::chrono::milliseconds(20), done)) {
      lock.unlock();
      const int state = query(last);
      lock.lock();
      if (state != cudaSuccess && state != cudaErrorNotReady) give_up();
    }
  }

  // Where the device has failed it uses no place any more, and what would be copied is lost.
  void give_up() {
    made = -1;
    pieces.clear();
    taken = 0;
    unmoved = moving;
    for (Flag& each : flags->hosts) each.store(added, std::memory_order_release);
  }

  // A piece could not be given to the stream as a whole: its place is free when the stream has come to its end.
  void take_back(std::uint32_t number, cudaStream_t stream) {
    if (up) finish();
    const cudaError_t error = cudaStreamSynchronize(stream);
    std::lock_guard<std::mutex> lock(guard);
    if (error != cudaSuccess) give_up();
    else if (up) flags->devices[number % slots].store(number + 1, std::memory_order_release);
  }
};

// Copies to the device whose source is read in the background: it must stay as it is until `kesco_sent`.
class KescoSender {
 public:
  // One call at a time gives copies, or waits for them.
  static std::mutex& calls() {
    static std::mutex guard;
    return guard;
  }

  static std::map<unsigned long long, KescoRelay>& all() {
    static auto& relays = *new std::map<unsigned long long, KescoRelay>;
    return relays;
  }

  // Whether what comes before is done and nothing since can have written the host's memory, as far as a thread knows.
  static bool& settled() {
    static thread_local bool value = false;
    return value;
  }

  // What may still be read.
  static KescoRanges& sources() {
    static auto& ranges = *new KescoRanges;
    return ranges;
  }

  static bool reads(const void* memory, std::size_t bytes) {
    std::lock_guard<std::mutex> lock(calls());
    return sources().meet(memory, bytes);
  }
};

// The host may write and free again what is being copied to the device.
void kesco_sent() {
  std::lock_guard<std::mutex> lock(KescoSender::calls());
  KescoSender::settled() = false;
  for (auto& each : KescoSender::all()) each.second.wait();
  KescoPins::wait();
  KescoSender::sources().clear();
}

// Copies to the host that it has not waited for. Its memory must not be used before `wait`; other copies that use a part
// of it wait here first. What they are told of an error, `wait` tells again.
class KescoFetches {
 public:
  static constexpr std::size_t least = 65536;  // bytes of a copy for which this pays

  static KescoFetches& all() {
    static auto& one = *new KescoFetches;
    return one;
  }

  // Gives a copy to a stream; cudaErrorNotReady if that is not possible, and then nothing is done. Threads bring it to
  // memory that is not `pinned`.
  cudaError_t fetch(void* to, const void* from, std::size_t bytes, cudaStream_t stream, bool pinned) {
    std::lock_guard<std::mutex> lock(guard);
    cudaEvent_t& done = events[{kesco_context(), stream}];
    if (done == nullptr && cudaEventCreateWithFlags(&done, cudaEventDisableTiming) != cudaSuccess) {
      cudaGetLastError();
      done = nullptr;
      return cudaErrorNotReady;
    }
    if (pending.meet(to, bytes)) finish();
    if (failed != cudaSuccess) return failed;
    char* const begin = static_cast<char*>(to);
    cudaError_t error = cudaErrorNotReady;
    if (pinned) error = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
    else if (KescoRelay* relay = KescoRelay::of(relays, false))
      error = relay->give(static_cast<char*>(const_cast<void*>(from)), begin, bytes, stream);
    const bool given = error == cudaSuccess;
    if (given) error = cudaEventRecord(done, stream);
    if (error != cudaSuccess) {
      if (given) cudaStreamSynchronize(stream);
      for (auto& each : relays) each.second.wait();  // for the pieces that were given
      return error;
    }
    recorded.insert(done);
    pending.add(to, bytes);
    if (known.insert(to).second) std::atexit([] { all().wait(); });  // before what owns it goes
    return cudaSuccess;
  }

  // The same to a block that is pinned for a loop, behind which the host waits.
  cudaError_t fetch(void* to, const void* from, std::size_t bytes, cudaStream_t stream, const void* block) {
    std::lock_guard<std::mutex> lock(guard);
    if (pending.meet(to, bytes)) finish();
    if (failed != cudaSuccess) return failed;
    pending.add(to, bytes);
    if (known.insert(block).second) std::atexit([] { all().wait(); });
    return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream);
  }

  // Until this part of the host's memory is not written any more.
  cudaError_t apart(const void* memory, std::size_t bytes) {
    std::lock_guard<std::mutex> lock(guard);
    if (pending.meet(memory, bytes)) finish();
    return failed;
  }

  // Until all copies are complete.
  cudaError_t wait() {
    std::lock_guard<std::mutex> lock(guard);
    finish();
    const cudaError_t error = failed;
    failed = cudaSuccess;
    return error;
  }

 private:
  std::mutex guard;
  KescoRanges pending;
  std::map<unsigned long long, KescoRelay> relays;  // to pageable memory
  std::map<std::pair<unsigned long long, cudaStream_t>, cudaEvent_t> events;  // behind the last copy of each stream
  std::set<cudaEvent_t> recorded;
  std::set<const void*> known;
  cudaError_t failed = cudaSuccess;

  void finish() {
    for (auto& each : relays) each.second.wait();
    const auto note = [this](cudaError_t error) { if (failed == cudaSuccess) failed = error; };
    for (cudaEvent_t one : recorded) note(cudaEventSynchronize(one));
    KescoPins::wait();
    note(KescoPins::told());
    recorded.clear();
    pending.clear();
  }
};

// The host may use the memory again that is being copied to, or from.
cudaError_t kesco_fetched() {
  kesco_sent();
  return KescoFetches::all().wait();
}

// Who reaches the host's memory: the device as well, the device through the host's page tables, or the host alone.
enum class KescoReach { both, tables, host };
KescoReach kesco_reach(const void* memory) {
  int device = 0, shared = 1;
  cudaPointerAttributes host = {};
  cudaError_t error = cudaGetDevice(&device);
  if (error == cudaSuccess) error = cudaDeviceGetAttribute(&shared, cudaDevAttrPageableMemoryAccess, device);
  if (error == cudaSuccess) error = cudaPointerGetAttributes(&host, memory);
  if (error == cudaSuccess && host.type != cudaMemoryTypeUnregistered) return KescoReach::both;
  return error == cudaSuccess && !shared ? KescoReach::host : KescoReach::tables;
}

// The host reads a source that is pageable, and not before all that comes before the copy is done, as with cudaMemcpy.
cudaError_t kesco_settle(cudaStream_t stream) {
  const cudaError_t error = cudaStreamSynchronize(cudaStreamLegacy);
  return error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

// With `all`, the host then waits for the device: it may look at it, also where the copy has failed.
cudaError_t kesco_waited(cudaError_t error, bool all) {
  const cudaError_t waited = all ? cudaDeviceSynchronize() : cudaSuccess;
  return error == cudaSuccess ? waited : error;
}

[[maybe_unused]] cudaError_t kesco_copy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                        cudaStream_t stream, bool all = false) {
  const bool to_device = kind == cudaMemcpyHostToDevice;
  if (!to_device) kesco_sent();  // it writes the host's memory
  const cudaError_t fetched = KescoFetches::all().apart(to_device ? from : to, bytes);
  if (fetched != cudaSuccess) return fetched;
  static const char* limit = std::getenv("KESCO_STREAMS");
  if (limit != nullptr && std::atoi(limit) == 1 && stream == nullptr) return cudaMemcpy(to, from, bytes, kind);
  const KescoReach reach = kesco_reach(to_device ? from : to);
  cudaError_t error = cudaSuccess;
  const bool pays = reach == KescoReach::host && KescoRing::pays(bytes);
  if (reach == KescoReach::host && !pays) KescoRing::counts(bytes);
  if (stream == nullptr && !(pays && KescoRing::threads(bytes) > 0)) {  // as the serial program copies
    error = cudaMemcpy(to, from, bytes, kind);
    return kesco_waited(error, all);
  }
  if (reach != KescoReach::both && to_device && bytes > 65536) error = kesco_settle(stream);
  if (error != cudaSuccess) return kesco_waited(error, all);
  error = cudaErrorNotReady;
  if (pays && KescoRing::threads(bytes) > 0) {
    static std::mutex guard;
    std::lock_guard<std::mutex> lock(guard);
    if (KescoRing* ring = KescoRing::current()) error = ring->copy(to, from, bytes, to_device, stream);
  }
  if (error == cudaErrorNotReady) {
    error = cudaMemcpyAsync(to, from, bytes, kind, stream);
    const bool read = reach == KescoReach::host && to_device && bytes <= 65536;  // before the call came back
    if (error == cudaSuccess && !all && !read) error = cudaStreamSynchronize(stream);
  }
  return kesco_waited(error, all);
}

// The same, to the device; it may be that the source is still to be read when this returns, until kesco_sent. Between
// the two the program does nothing that could write the host's memory, so that only the first of several copies has to
// wait for what may do so.
cudaError_t kesco_send(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                       bool all = false) {
  const cudaError_t fetched = KescoFetches::all().apart(from, bytes);
  if (fetched != cudaSuccess) return fetched;
  const void* const block = KescoPins::of(from, bytes);
  if (block != nullptr && stream != nullptr && !all) {
    std::lock_guard<std::mutex> lock(KescoSender::calls());
    KescoSender::sources().add(from, bytes);
    static auto& known = *new std::set<const void*>;
    if (known.insert(block).second) std::atexit(kesco_sent);
    return cudaMemcpyAsync(to, from, bytes, kind, stream);
  }
  if (stream != nullptr && bytes >= KescoRelay::least && KescoRing::threads(bytes) > 0 &&
      kesco_reach(from) == KescoReach::host && KescoRing::pays(bytes)) {
    std::lock_guard<std::mutex> lock(KescoSender::calls());
    if (KescoRelay* relay = KescoRelay::of(KescoSender::all(), true)) {
      cudaError_t error = KescoSender::settled() ? cudaSuccess : kesco_settle(stream);
      if (error != cudaSuccess) return error;
      KescoSender::settled() = true;
      char* const source = static_cast<char*>(const_cast<void*>(from));
      KescoSender::sources().add(source, bytes);
      static auto& known = *new std::set<const void*>;
      if (known.insert(from).second) std::atexit(kesco_sent);  // before what owns it goes
      error = relay->give(static_cast<char*>(to), source, bytes, stream);
      if (error != cudaErrorNotReady) return kesco_waited(error, all);
    }
  }
  return kesco_copy(to, from, bytes, kind, stream, all);
}

// The same, to the host; it may be that the copy is not complete when this returns, until kesco_fetched.
cudaError_t kesco_fetch(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                        bool all = false) {
  const void* const block = KescoPins::of(to, bytes);
  if (block != nullptr && stream != nullptr && !all) {
    if (KescoSender::reads(to, bytes)) kesco_sent();
    return KescoFetches::all().fetch(to, from, bytes, stream, block);
  }
  if (stream != nullptr && !all && bytes >= KescoFetches::least) {
    const KescoReach reach = kesco_reach(to);
    const bool pinned = reach == KescoReach::both;
    const bool threads = reach == KescoReach::host && bytes >= KescoRelay::least && KescoRing::threads(bytes) > 0;
    if (pinned || (threads && KescoRing::pays(bytes))) {
      if (KescoSender::reads(to, bytes)) kesco_sent();
      const cudaError_t error = KescoFetches::all().fetch(to, from, bytes, stream, pinned);
      if (error != cudaErrorNotReady) return error;
    }
  }
  return kesco_copy(to, from, bytes, kind, stream, all);
}
}  // namespace
// ---- kesco: end -------------------------------------------------------------------------------------------------

class Scaler {
 public:
  explicit Scaler(int n) : n_(n) {
    CHECK(cudaMalloc(&in_, n * sizeof(float)));
    CHECK(cudaMalloc(&out_, n * sizeof(float)));
  }
  ~Scaler() {
    cudaFree(in_);
    cudaFree(out_);
  }

  void run(const std::vector<float>& from, std::vector<float>& to, int batches) {
    KescoStreams* kesco = &kesco_streams();
    KescoTurns kesco_loop = kesco_turns(kesco, in_, out_);  // kesco: turns that overlap have their own
    kesco_pin(kesco_loop, from, to);  // kesco: pinned in the loop, if that pays
    for (int b = 0; b < batches; ++b) {
      KescoStreams* kesco = kesco_turn(kesco_loop);
      decltype(in_) in_;
      kesco_place(kesco_loop, 0, &in_);
      decltype(out_) out_;
      kesco_place(kesco_loop, 1, &out_);
      CHECK(kesco_send(in_, from.data() + (size_t)b * n_, n_ * sizeof(float), cudaMemcpyHostToDevice, kesco->stream[0]));
      scale<<<(n_ + 255) / 256, 256, 0, kesco->stream[0]>>>(in_, out_, n_);
      CHECK(cudaGetLastError());
      CHECK(kesco_fetch(to.data() + (size_t)b * n_, out_, n_ * sizeof(float), cudaMemcpyDeviceToHost, kesco->stream[0]));
    }
    kesco_turned(kesco_loop);  // kesco: the host waits
    CHECK(kesco_fetched());  // kesco: until what is copied to the host's memory is there
  }

 private:
  float *in_, *out_;
  int n_;
};

template <typename T>
void batches_of(const T* from, T* to, int batches, int n) {
  T *in, *out;
  CHECK(cudaMalloc(&in, n * sizeof(T)));
  CHECK(cudaMalloc(&out, n * sizeof(T)));
  for (int b = 0; b < batches; ++b) {
    CHECK(cudaMemcpy(in, from + (size_t)b * n, n * sizeof(T), cudaMemcpyHostToDevice));
    scale<T><<<(n + 255) / 256, 256>>>(in, out, n);
    CHECK(cudaMemcpy(to + (size_t)b * n, out, n * sizeof(T), cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

void chunks(const std::vector<float>& from, std::vector<float>& to, size_t chunk) {
  float *in, *out;
  CHECK(cudaMalloc(&in, chunk * sizeof(float)));
  CHECK(cudaMalloc(&out, chunk * sizeof(float)));
  for (size_t at = 0; at < from.size(); at += chunk) {
    size_t n = std::min(chunk, from.size() - at);
    CHECK(cudaMemcpy(in, from.data() + at, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(n + 255) / 256, 256>>>(in, out, (int)n);
    CHECK(cudaMemcpy(to.data() + at, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
}

// ---- kesco: what the host does later in this file ----------------------------------------------------------------
// A turn of a loop gives the device work, waits for the results, and uses them. What uses them is kept here until the
// next turn has given the device its own work: so the host is busy while the device is. KESCO_DEFERRED=off in the
// environment runs it at once, and so does KESCO_STREAMS.
#include <stdlib.h>
#include <functional>
#include <utility>

namespace {

class KescoDeferred {
 public:
  KescoDeferred() = default;
  KescoDeferred(const KescoDeferred&) = delete;
  KescoDeferred& operator=(const KescoDeferred&) = delete;
  ~KescoDeferred() noexcept(false) { run(); }  // also where the loop is left by return, or an exception
  void run() {
    if (!work) return;
    const ::std::function<void()> last = ::std::move(work);
    work = nullptr;
    last();
  }
  template <typename Work>
  void keep(Work&& next) {
    run();
    work = ::std::forward<Work>(next);
    if (off()) run();
  }

 private:
  static bool off() {
    static const bool found = [] {
      const char* const text = ::getenv("KESCO_DEFERRED");
      if (text == nullptr || text[0] == '\0') return ::getenv("KESCO_STREAMS") != nullptr;
      return text[0] == 'o' && text[1] == 'f';
    }();
    return found;
  }
  ::std::function<void()> work;
};

}  // namespace
// ---- kesco: later end

double sum_of_file(FILE* file, size_t most) {
  float *in, *out, *host = (float*)malloc(most * sizeof(float)), *result = (float*)malloc(most * sizeof(float));
  CHECK(cudaMalloc(&in, most * sizeof(float)));
  CHECK(cudaMalloc(&out, most * sizeof(float)));
  double sum = 0;
  size_t n;
  KescoDeferred kesco_deferred_0;  // kesco: what uses the results of a turn is run when the next one has launched
  while ((n = fread(host, sizeof(float), most, file)) > 0) {
    CHECK(cudaMemcpy(in, host, n * sizeof(float), cudaMemcpyHostToDevice));
    scale<<<(n + 255) / 256, 256>>>(in, out, (int)n);
    kesco_deferred_0.run();  // kesco: what the turn before has kept, while the device works
    CHECK(cudaMemcpy(result, out, n * sizeof(float), cudaMemcpyDeviceToHost));
    kesco_deferred_0.keep([&, n]() mutable {  // kesco: for the next turn
    for (size_t i = 0; i < n; ++i) sum += result[i];
    });  // kesco: until here
  }
  kesco_deferred_0.run();  // kesco: what the last turn has kept
  CHECK(cudaFree(in));
  CHECK(cudaFree(out));
  free(host);
  free(result);
  return sum;
}

int main(int argc, char** argv) {
  KescoMain kesco_main;  // kesco: for other files that call functions of this one, these are serial
  int batches = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float> from((size_t)batches * n, 1.f), to(from.size());
  std::vector<double> more((size_t)batches * n, 2.0), most(more.size());
  Scaler scaler(n);
  scaler.run(from, to, batches);
  batches_of(to.data(), from.data(), batches, n);
  batches_of(more.data(), most.data(), batches, n);
  chunks(from, to, n + 1);
  FILE* file = argc > 3 ? fopen(argv[3], "rb") : nullptr;
  double sum = file != nullptr ? sum_of_file(file, n) : 0;
  printf("%f %f %f\n", to[0], most[0], sum);
}
