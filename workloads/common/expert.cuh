// What the hand-written programs async.cu and graph.cu share: buffers that hide the five memory styles, streams and
// events that free themselves, and a short way to write down a graph. The style is chosen when compiling:
//
//   (nothing)     explicit device memory; the clock sees only the kernels, as in serial.cu
//   -DPINNED      the same, but the clock sees the inputs copied in from pinned memory and the results copied back, too
//   -DMANAGED     managed memory; the host writes every input before the clock starts, so that kernels fault it in
//   -DPREFETCH    managed memory, whose large inputs are prefetched within the clock
//   -DWHOLE       explicit device memory and pageable host memory; the clock sees allocation, copies and deallocation, too
#pragma once

#include "options.cuh"

#include <atomic>
#include <thread>
#include <tuple>
#include <utility>

#if defined(PINNED) + defined(MANAGED) + defined(PREFETCH) + defined(WHOLE) > 1
#error "choose one of PINNED, MANAGED, PREFETCH and WHOLE"
#endif

#ifdef WHOLE
constexpr bool kWhole = true;
#else
constexpr bool kWhole = false;
#endif

#ifdef PINNED
constexpr bool kPinned = true;
#else
constexpr bool kPinned = false;
#endif
#ifdef PREFETCH
constexpr bool kPrefetch = true;
#else
constexpr bool kPrefetch = false;
#endif
#ifdef MANAGED
constexpr bool kManaged = true;
#else
constexpr bool kManaged = kPrefetch;
#endif
constexpr bool kCopies = kPinned || kWhole;     // whether the clock sees copies
constexpr bool kUploads = kCopies || kPrefetch;  // whether large inputs arrive while the clock runs

// By default a process has eight hardware queues. Streams that share one wait for each other without need, so a program
// with more streams asks for more queues. To be called before the first CUDA call; what the environment says is kept.
inline void request_queues(int streams) {
  if (streams > 8) setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", /*overwrite=*/0);
}

// A stream that neither waits for the legacy default stream nor makes it wait.
class Stream {
 public:
  Stream() { CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(const Stream&) = delete;
  ~Stream() { CHECK(cudaStreamDestroy(stream_)); }
  operator cudaStream_t() const { return stream_; }

 private:
  cudaStream_t stream_;
};

class Event {
 public:
  Event() { CHECK(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming)); }
  Event(const Event&) = delete;
  ~Event() { CHECK(cudaEventDestroy(event_)); }
  operator cudaEvent_t() const { return event_; }

 private:
  cudaEvent_t event_;
};

// Pageable memory is copied through pinned pieces, by several threads at once (WHOLE). The driver would use one.
class Staging {
 public:
  static Staging& shared() {
    static auto& one = *new Staging;
    return one;
  }

  // Returns when the source has been read.
  void upload(char* device, const char* host, size_t bytes, cudaStream_t stream) {
    if (bytes < kLarge) {
      CHECK(cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream));
      return;
    }
    in_pieces(bytes, [&](Slot* slots, std::atomic<size_t>& next) {
      size_t at;
      for (int turn = 0; (at = next.fetch_add(kPiece)) < bytes; ++turn) {
        const Slot& slot = slots[turn % 2];
        const size_t size = std::min(kPiece, bytes - at);
        CHECK(cudaEventSynchronize(slot.moved));
        std::memcpy(slot.memory, host + at, size);
        CHECK(cudaMemcpyAsync(device + at, slot.memory, size, cudaMemcpyHostToDevice, stream));
        CHECK(cudaEventRecord(slot.moved, stream));
      }
    });
  }

  // Returns when the target is complete.
  void download(char* host, const char* device, size_t bytes, cudaStream_t stream) {
    if (bytes < kLarge) {
      CHECK(cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream));
      CHECK(cudaStreamSynchronize(stream));
      return;
    }
    in_pieces(bytes, [&](Slot* slots, std::atomic<size_t>& next) {
      size_t before = bytes;
      for (int turn = 0;; ++turn) {
        const size_t at = next.fetch_add(kPiece);
        if (at < bytes) {
          const Slot& slot = slots[turn % 2];
          CHECK(cudaEventSynchronize(slot.moved));  // an upload may still use it
          const size_t size = std::min(kPiece, bytes - at);
          CHECK(cudaMemcpyAsync(slot.memory, device + at, size, cudaMemcpyDeviceToHost, stream));
          CHECK(cudaEventRecord(slot.moved, stream));
        }
        if (before < bytes) {  // the piece before this one arrives
          CHECK(cudaEventSynchronize(slots[(turn + 1) % 2].moved));
          std::memcpy(host + before, slots[(turn + 1) % 2].memory, std::min(kPiece, bytes - before));
        }
        if (at >= bytes) return;
        before = at;
      }
    });
  }

 private:
  static constexpr size_t kPiece = 1 << 20, kLarge = 8 * kPiece;
  static constexpr int kThreads = 8;

  struct Slot {
    char* memory;
    cudaEvent_t moved;
  };

  Staging() {
    for (Slot& slot : slots_) {
      CHECK(cudaMallocHost(&slot.memory, kPiece));
      CHECK(cudaEventCreateWithFlags(&slot.moved, cudaEventDisableTiming));
    }
  }

  template <typename Work>
  void in_pieces(size_t, const Work& work) {
    std::atomic<size_t> next{0};
    std::vector<std::thread> threads;
    for (int i = 1; i < kThreads; ++i) threads.emplace_back([&, i] { work(&slots_[2 * i], next); });
    work(&slots_[0], next);
    for (std::thread& one : threads) one.join();
  }

  Slot slots_[2 * kThreads];
};

// What is allocated and freed within the clock (WHOLE).
struct Lifetime {
  static std::vector<Lifetime*>& all() {
    static std::vector<Lifetime*> buffers;
    return buffers;
  }
  Lifetime() { all().push_back(this); }
  virtual ~Lifetime() = default;
  virtual void begin() = 0;
  virtual void bring_back() = 0;
  virtual void end() = 0;
};

inline std::chrono::steady_clock::time_point start_clock() {
  if constexpr (kWhole) Staging::shared();
  const auto start = std::chrono::steady_clock::now();
  if constexpr (kWhole) {
    for (Lifetime* each : Lifetime::all()) each->begin();
    CHECK(cudaStreamSynchronize(nullptr));  // memory that was set is ready for all streams
  }
  return start;
}

// When everything has been given to the device: the results, which the host waits for one by one (WHOLE).
inline void collect() {
  if constexpr (kWhole) {
    for (Lifetime* each : Lifetime::all()) each->bring_back();
  }
}

inline double stop_clock(std::chrono::steady_clock::time_point start) {
  if constexpr (kWhole) {
    for (Lifetime* each : Lifetime::all()) each->end();
  }
  return milliseconds_since(start);
}

// An array on the device, which it stands for where a kernel wants a pointer. First say what it is for (one of input,
// small_input, updated, scratch, result); then, off the clock, `refill` or `reset` it before each repetition; on the
// clock `upload` it before its first use and `download` it after its last; at the end `read` it.
template <typename T>
class Buffer : Lifetime {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  ~Buffer() override {
    CHECK(cudaFree(device_));
    if (source_ != nullptr) CHECK(cudaFreeHost(source_));
    if (target_ != nullptr) CHECK(cudaFreeHost(target_));
  }

  // Data that the kernels only read. `data` must outlive the buffer.
  void input(const std::vector<T>& data) {
    data_ = &data;
    allocate(static_cast<long>(data.size()));
    if constexpr (kPinned) {
      CHECK(cudaMallocHost(&source_, bytes()));
      std::copy(data.begin(), data.end(), source_);
    }
  }

  // The same for a few weights, whose size does not depend on the problem's: not worth a prefetch.
  void small_input(const std::vector<T>& data) {
    small_ = true;
    input(data);
  }

  // Data that the kernels update in place. Where the host wants to read it, say so.
  void updated(const std::vector<T>& data, bool read_back = false) {
    updated_ = true;
    input(data);
    if (read_back) make_readable();
  }

  // What only the kernels see.
  void scratch(long count) { allocate(count); }

  // What the kernels write and the host wants to read.
  void result(long count) {
    allocate(count);
    make_readable();
  }

  operator T*() const { return device_; }
  size_t bytes() const { return count_ * sizeof(T); }
  const T* source() const { return source_; }  // what an upload copies (PINNED)
  T* target() const { return target_; }        // where a download goes (PINNED)

  // Off the clock: brings the data to where a repetition expects it at the start. With managed memory that is the host.
  void refill() {
    if constexpr (kManaged) {
      std::copy(data_->begin(), data_->end(), device_);
    } else if (!kCopies && (updated_ || !loaded_)) {
      CHECK(cudaMemcpy(device_, data_->data(), bytes(), cudaMemcpyHostToDevice));
      loaded_ = true;
    }
  }

  // Off the clock: sets every byte, on the device or, as the managed programs do, by the host.
  void reset(int byte) {
    if constexpr (kManaged) std::memset(static_cast<void*>(device_), byte, bytes());
    else if constexpr (kWhole) byte_ = byte;
    else CHECK(cudaMemset(device_, byte, bytes()));
  }

  // On the clock: moves an input to the device, if the style does so there.
  void upload(cudaStream_t stream) const {
    if constexpr (kPinned) CHECK(cudaMemcpyAsync(device_, source_, bytes(), cudaMemcpyHostToDevice, stream));
    if constexpr (kWhole) {
      Staging::shared().upload(reinterpret_cast<char*>(device_), reinterpret_cast<const char*>(data_->data()), bytes(),
                               stream);
    }
    if (!small_) prefetch(stream);
  }

  // The part of `upload` that is not a copy: for what the host only resets, and for graphs, whose copies are nodes.
  void prefetch([[maybe_unused]] cudaStream_t stream) const {
#ifdef PREFETCH
#if CUDART_VERSION >= 13000
    CHECK(cudaMemPrefetchAsync(device_, bytes(), kDevice, 0, stream));
#else
    CHECK(cudaMemPrefetchAsync(device_, bytes(), 0, stream));
#endif
#endif
  }

  // On the clock: moves a result to the host, if the style does so there.
  void download([[maybe_unused]] cudaStream_t stream) {
    if constexpr (kWhole) behind_ = stream;
    if constexpr (kPinned) CHECK(cudaMemcpyAsync(target_, device_, bytes(), cudaMemcpyDeviceToHost, stream));
  }

  // The result of the last repetition, whose end has been waited for.
  const T* read() {
    if constexpr (kManaged) {
      return device_;
    } else if constexpr (kPinned) {
      return target_;
    } else if constexpr (kWhole) {
      return copy_.data();
    } else {
      copy_.resize(count_);
      CHECK(cudaMemcpy(copy_.data(), device_, bytes(), cudaMemcpyDeviceToHost));
      return copy_.data();
    }
  }

 private:
  void allocate(long count) {
    count_ = count;
    if constexpr (kManaged) CHECK(cudaMallocManaged(&device_, bytes()));
    else if constexpr (!kWhole) CHECK(cudaMalloc(&device_, bytes()));
  }

  void begin() override {
    CHECK(cudaMalloc(&device_, bytes()));
    if (byte_ >= 0) CHECK(cudaMemset(device_, byte_, bytes()));
  }
  void bring_back() override {
    if (behind_ == nullptr) return;
    Staging::shared().download(reinterpret_cast<char*>(copy_.data()), reinterpret_cast<const char*>(device_), bytes(),
                               behind_);
  }
  void end() override {
    CHECK(cudaFree(device_));
    device_ = nullptr;
  }

  // Apart from the source of uploads, which the next repetition needs as it is.
  void make_readable() {
    if constexpr (kPinned) CHECK(cudaMallocHost(&target_, bytes()));
    if constexpr (kWhole) copy_.resize(count_);
  }

  long count_ = 0;
  T* device_ = nullptr;
  T* source_ = nullptr;
  T* target_ = nullptr;
  std::vector<T> copy_;
  const std::vector<T>* data_ = nullptr;
  cudaStream_t behind_ = nullptr;  // where the download goes (WHOLE)
  int byte_ = -1;                  // what every byte is at the start (WHOLE)
  bool small_ = false, updated_ = false, loaded_ = false;
};

// A CUDA graph, built node by node. Each node runs after the nodes in `after`; null ones, which stand for operations
// that a style does not have or that are still to come in a loop, are left out.
class Graph {
 public:
  using Node = cudaGraphNode_t;
  using Nodes = std::vector<Node>;

  Graph() { CHECK(cudaGraphCreate(&graph_, 0)); }
  Graph(const Graph&) = delete;
  ~Graph() {
    if (exec_ != nullptr) CHECK(cudaGraphExecDestroy(exec_));
    CHECK(cudaGraphDestroy(graph_));
  }

  template <typename... Parameters, typename... Arguments>
  Node kernel(Nodes after, void (*function)(Parameters...), dim3 grid, dim3 block, size_t shared,
              const Arguments&... arguments) {
    drop_null(after);
    std::tuple<Parameters...> values(static_cast<Parameters>(arguments)...);  // the node copies them
    return std::apply(
        [&](Parameters&... value) {
          void* pointers[] = {&value...};
          cudaKernelNodeParams params = {};
          params.func = reinterpret_cast<void*>(function);
          params.gridDim = grid;
          params.blockDim = block;
          params.sharedMemBytes = static_cast<unsigned>(shared);
          params.kernelParams = pointers;
          Node node;
          CHECK(cudaGraphAddKernelNode(&node, graph_, after.data(), after.size(), &params));
          return node;
        },
        values);
  }

  // Sets `count` words of four bytes to zero.
  Node zero(Nodes after, void* words, size_t count = 1) {
    drop_null(after);
    cudaMemsetParams params = {};
    params.dst = words;
    params.elementSize = 4;
    params.width = count;
    params.height = 1;
    Node node;
    CHECK(cudaGraphAddMemsetNode(&node, graph_, after.data(), after.size(), &params));
    return node;
  }

  // The copy of an input, which nothing comes before; null where the style has none within the clock.
  template <typename T>
  Node upload(const Buffer<T>& input) {
    return kPinned ? copy({}, input, input.source(), input.bytes(), cudaMemcpyHostToDevice) : nullptr;
  }

  template <typename T>
  Node download(Nodes after, const Buffer<T>& result) {
    return kPinned ? copy(std::move(after), result.target(), result, result.bytes(), cudaMemcpyDeviceToHost) : nullptr;
  }

  // To be called once, when all nodes are there. What launching needs is then on the device.
  void instantiate(cudaStream_t stream) {
#if CUDART_VERSION >= 12000
    CHECK(cudaGraphInstantiate(&exec_, graph_, 0));
#else
    CHECK(cudaGraphInstantiate(&exec_, graph_, nullptr, nullptr, 0));
#endif
    CHECK(cudaGraphUpload(exec_, stream));
    CHECK(cudaStreamSynchronize(stream));
  }

  void launch(cudaStream_t stream) { CHECK(cudaGraphLaunch(exec_, stream)); }

 private:
  static void drop_null(Nodes& nodes) { nodes.erase(std::remove(nodes.begin(), nodes.end(), nullptr), nodes.end()); }

  Node copy(Nodes after, void* to, const void* from, size_t bytes, cudaMemcpyKind kind) {
    drop_null(after);
    Node node;
    CHECK(cudaGraphAddMemcpyNode1D(&node, graph_, after.data(), after.size(), to, from, bytes, kind));
    return node;
  }

  cudaGraph_t graph_ = nullptr;
  cudaGraphExec_t exec_ = nullptr;
};
