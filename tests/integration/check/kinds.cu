// Mistakes with streams, each racy and mended, chosen by two arguments: the name, and `racy` or `mended`. The kinds are
// those that people report. Three are after public reports: an event that is recorded again (NanoVDB #2287), a copy on
// the default stream behind a caller's non-blocking one (fastfields #88), memory that a pool hands on too early (PyTorch
// #179863).
#include <kesco_check.h>

#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>
#include <vector>

__global__ void fill(float *out, int n, float value) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) out[i] = value;
}
__global__ void twice(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}
__global__ void add(const float *a, const float *b, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}
__global__ void component(float *out, int k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[3 * i + k] = i;
}
__global__ void tile(float *out, int pitch, int x0, int y0, int w, int h) {
  int x = threadIdx.x, y = threadIdx.y;
  if (x < w && y < h) out[(y0 + y) * pitch + x0 + x] = x + y;
}
__global__ void relax(float *grid, int n, int color) {
  int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
  if (x < n && y < n && (x + y) % 2 == color) grid[y * n + x] += 1;
}
__global__ void block_sums(const float *in, float *sums, int first, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) sum += in[i];
  if (threadIdx.x == 0) sums[first + blockIdx.x] = sum;
}
__global__ void stencil(const float *in, float *out, int first, int last) {
  int i = first + blockIdx.x * blockDim.x + threadIdx.x;
  if (i < last) out[i] = (i > 0 ? in[i - 1] : 0) + in[i] + in[i + 1];
}
struct Fields {
  float *position, *velocity;
  int n;
};
__global__ void move(Fields f) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < f.n) f.position[i] += f.velocity[i];
}
struct Particle {
  float mass, charge;
};
__global__ void set_mass(Particle *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i].mass = 1;
}
__global__ void set_charge(Particle *p, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i].charge = 1;
}
__constant__ float coefficients[64];
__global__ void weigh(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= coefficients[i % 64];
}
__global__ void product(const float *a, float *workspace, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) workspace[i] = a[i] * a[i];
  if (i < n) out[i] = workspace[i] + 1;
}

constexpr int kN = 4096, kGrid = kN / 256;
constexpr size_t kSize = kN * sizeof(float);

struct World {
  float *a, *b, *c, *d, *host;
  cudaStream_t s, t, loose, other_loose;
  cudaEvent_t e, f;
  World() {
    cudaMalloc(&a, kSize);
    cudaMalloc(&b, kSize);
    cudaMalloc(&c, kSize);
    cudaMalloc(&d, 4 * kSize);
    cudaMallocHost(&host, kSize);
    cudaStreamCreate(&s);
    cudaStreamCreate(&t);
    cudaStreamCreateWithFlags(&loose, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other_loose, cudaStreamNonBlocking);
    cudaEventCreate(&e);
    cudaEventCreate(&f);
  }
};

// One event for two things: whoever waits later gets the latest record only.
static void event_recorded_again(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaEventRecord(w.e, w.s);
  fill<<<kGrid, 256, 0, w.loose>>>(w.b, kN, 2);
  cudaEventRecord(mended ? w.f : w.e, w.loose);
  cudaStreamWaitEvent(w.t, w.e, 0);
  if (mended) cudaStreamWaitEvent(w.t, w.f, 0);
  add<<<kGrid, 256, 0, w.t>>>(w.a, w.b, w.c, kN);
}

// A library is given a stream, and copies on the default one.
static void copy_behind_a_callers_stream(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.loose>>>(w.a, kN, 1);
  if (mended) {
    cudaMemcpyAsync(w.b, w.a, kSize, cudaMemcpyDeviceToDevice, w.loose);
  } else {
    cudaMemcpy(w.b, w.a, kSize, cudaMemcpyDeviceToDevice);
  }
}

// The pool knows the stream on which memory was allocated, not the one that uses it.
static void pool_hands_on_too_early(World &w, bool mended) {
  float *x = w.d;
  KESCO_ALLOCATED(x, kSize, w.s);
  fill<<<kGrid, 256, 0, w.s>>>(x, kN, 1);
  cudaEventRecord(w.e, w.s);
  cudaStreamWaitEvent(w.t, w.e, 0);
  twice<<<kGrid, 256, 0, w.t>>>(x, w.a, kN);
  if (mended) {
    cudaEventRecord(w.f, w.t);
    cudaStreamWaitEvent(w.s, w.f, 0);
  }
  KESCO_FREED(x, w.s);
  KESCO_ALLOCATED(x, kSize, w.s);
  fill<<<kGrid, 256, 0, w.s>>>(x, kN, 2);
}

static void pool_for_another_stream(World &w, bool mended) {
  float *x = w.d;
  KESCO_ALLOCATED(x, kSize, w.s);
  fill<<<kGrid, 256, 0, w.s>>>(x, kN, 1);
  KESCO_FREED(x, w.s);
  if (mended) {
    cudaEventRecord(w.e, w.s);
    cudaStreamWaitEvent(w.t, w.e, 0);
  }
  KESCO_ALLOCATED(x, kSize / 2, w.t);
  twice<<<kGrid / 2, 256, 0, w.t>>>(w.a, x, kN / 2);
}

static void used_after_it_went_back(World &w, bool mended) {
  float *x = w.d;
  KESCO_ALLOCATED(x, kSize, w.s);
  if (mended) fill<<<kGrid, 256, 0, w.s>>>(x, kN, 1);
  KESCO_FREED(x, w.s);
  if (!mended) fill<<<kGrid, 256, 0, w.s>>>(x, kN, 1);
}

static void freed_behind_the_wrong_stream(World &w, bool mended) {
  float *x;
  cudaMallocAsync(&x, kSize, w.s);
  cudaEventRecord(w.e, w.s);
  cudaStreamWaitEvent(w.t, w.e, 0);
  fill<<<kGrid, 256, 0, w.t>>>(x, kN, 1);
  cudaFreeAsync(x, mended ? w.t : w.s);
}

static void allocated_on_another_stream(World &w, bool mended) {
  float *x;
  cudaMallocAsync(&x, kSize, w.s);
  if (mended) {
    cudaEventRecord(w.e, w.s);
    cudaStreamWaitEvent(w.t, w.e, 0);
  }
  fill<<<kGrid, 256, 0, w.t>>>(x, kN, 1);
}

static void ring_without_an_empty_event(World &w, bool mended) {
  float *ring[3] = {w.a, w.b, w.c};
  cudaEvent_t full[3], empty[3];
  for (int k = 0; k < 3; ++k) cudaEventCreate(&full[k]), cudaEventCreate(&empty[k]);
  for (int i = 0; i < 7; ++i) {
    const int k = i % 3;
    if (mended) cudaStreamWaitEvent(w.s, empty[k], 0);
    cudaMemcpyAsync(ring[k], w.host, kSize, cudaMemcpyHostToDevice, w.s);
    cudaEventRecord(full[k], w.s);
    cudaStreamWaitEvent(w.t, full[k], 0);
    twice<<<kGrid, 256, 0, w.t>>>(ring[k], w.d, kN);
    cudaEventRecord(empty[k], w.t);
  }
}

static void ring_with_too_few_events(World &w, bool mended) {
  float *ring[3] = {w.a, w.b, w.c};
  const int events = mended ? 3 : 2;
  cudaEvent_t empty[3];
  for (cudaEvent_t &one : empty) cudaEventCreate(&one);
  for (int i = 0; i < 9; ++i) {
    const int k = i % 3;
    cudaStreamWaitEvent(i % 2 ? w.s : w.loose, empty[i % events], 0);
    fill<<<kGrid, 256, 0, i % 2 ? w.s : w.loose>>>(ring[k], kN, i);
    cudaEventRecord(empty[i % events], i % 2 ? w.s : w.loose);
  }
}

static void wait_before_the_record(World &w, bool mended) {
  if (!mended) cudaStreamWaitEvent(w.t, w.e, 0);
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaEventRecord(w.e, w.s);
  if (mended) cudaStreamWaitEvent(w.t, w.e, 0);
  twice<<<kGrid, 256, 0, w.t>>>(w.a, w.b, kN);
}

static void wait_behind_the_launch(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaEventRecord(w.e, w.s);
  if (mended) cudaStreamWaitEvent(w.t, w.e, 0);
  twice<<<kGrid, 256, 0, w.t>>>(w.a, w.b, kN);
  if (!mended) cudaStreamWaitEvent(w.t, w.e, 0);
}

static void record_on_the_wrong_stream(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaEventRecord(w.e, mended ? w.s : w.t);
  cudaStreamWaitEvent(w.loose, w.e, 0);
  twice<<<kGrid, 256, 0, w.loose>>>(w.a, w.b, kN);
}

static void one_of_two_producers(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaEventRecord(w.e, w.s);
  fill<<<kGrid, 256, 0, w.t>>>(w.b, kN, 2);
  cudaEventRecord(w.f, w.t);
  cudaStreamWaitEvent(w.loose, w.e, 0);
  if (mended) cudaStreamWaitEvent(w.loose, w.f, 0);
  add<<<kGrid, 256, 0, w.loose>>>(w.a, w.b, w.c, kN);
}

static void stream_argument_forgotten(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.loose>>>(w.a, kN, 1);
  if (mended) {
    twice<<<kGrid, 256, 0, w.loose>>>(w.a, w.b, kN);
  } else {
    twice<<<kGrid, 256>>>(w.a, w.b, kN);
  }
}

static void memset_on_the_default_stream(World &w, bool mended) {
  cudaMemset(w.a, 0, kSize);
  twice<<<kGrid, 256, 0, mended ? w.s : w.loose>>>(w.a, w.b, kN);
}

static void synchronized_the_other_stream(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaStreamSynchronize(mended ? w.s : w.t);
  twice<<<kGrid, 256, 0, w.loose>>>(w.a, w.b, kN);
}

static void result_read_too_early(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaMemcpyAsync(w.host, w.a, kSize, cudaMemcpyDeviceToHost, w.s);
  cudaEventRecord(w.e, w.s);
  if (mended) cudaEventSynchronize(w.e);
  std::printf("%g\n", w.host[kN - 1]);
}

static void staging_filled_again(World &w, bool mended) {
  for (int i = 0; i < 3; ++i) {
    if (mended) cudaEventSynchronize(w.e);
    for (int k = 0; k < kN; ++k) w.host[k] = i;
    cudaMemcpyAsync(w.a, w.host, kSize, cudaMemcpyHostToDevice, w.s);
    cudaEventRecord(w.e, w.s);
  }
}

static void managed_read_too_early(World &w, bool mended) {
  float *m;
  cudaMallocManaged(&m, kSize);
  fill<<<kGrid, 256, 0, w.s>>>(m, kN, 1);
  if (mended) cudaDeviceSynchronize();
  std::printf("%g\n", m[7]);
}

static void branches_of_a_graph(World &w, bool mended) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(w.s, cudaStreamCaptureModeGlobal);
  cudaEventRecord(w.e, w.s);
  cudaStreamWaitEvent(w.t, w.e, 0);
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  fill<<<kGrid, 256, 0, w.t>>>(mended ? w.b : w.a, kN, 2);
  cudaEventRecord(w.f, w.t);
  cudaStreamWaitEvent(w.s, w.f, 0);
  add<<<kGrid, 256, 0, w.s>>>(w.a, w.b, w.c, kN);
  cudaStreamEndCapture(w.s, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, w.s);
}

static void edge_of_a_graph(World &w, bool mended) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t set, run;
  cudaGraphCreate(&graph, 0);
  cudaMemsetParams clear = {};
  clear.dst = w.a;
  clear.elementSize = 4;
  clear.width = kN;
  clear.height = 1;
  cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &clear);
  int n = kN;
  void *arguments[] = {&w.a, &w.b, &n};
  cudaKernelNodeParams launch = {};
  launch.func = reinterpret_cast<void *>(twice);
  launch.gridDim = dim3(kGrid);
  launch.blockDim = dim3(256);
  launch.kernelParams = arguments;
  cudaGraphAddKernelNode(&run, graph, &set, mended ? 1 : 0, &launch);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, w.s);
}

static void graph_beside_a_stream(World &w, bool mended) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(w.s, cudaStreamCaptureModeGlobal);
  fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
  cudaStreamEndCapture(w.s, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, w.s);
  if (mended) cudaStreamSynchronize(w.s);
  twice<<<kGrid, 256, 0, w.t>>>(w.a, w.b, kN);
}

static void threads_with_streams_of_their_own(World &w, bool mended) {
  std::thread([&] {
    fill<<<kGrid, 256, 0, w.s>>>(w.a, kN, 1);
    if (mended) cudaStreamSynchronize(w.s);
  }).join();
  std::thread([&] { twice<<<kGrid, 256, 0, w.t>>>(w.a, w.b, kN); }).join();
}

static void components_of_one_array(World &w, bool mended) {
  cudaStream_t streams[3] = {w.s, w.t, w.loose};
  for (int k = 0; k < 3; ++k) component<<<kGrid, 256, 0, streams[k]>>>(w.d, mended ? k : k % 2, kN);
}

static void tiles_that_overlap(World &w, bool mended) {
  const int step = mended ? 16 : 15;
  for (int k = 0; k < 4; ++k) tile<<<1, dim3(16, 16), 0, k % 2 ? w.s : w.t>>>(w.d, 64, step * k, 0, 16, 16);
}

static void rows_of_tiles(World &w, bool mended) {
  for (int k = 0; k < 4; ++k)
    tile<<<1, dim3(16, 16), 0, k % 2 ? w.s : w.t>>>(w.d, 16, 0, 16 * k, 16, mended ? 16 : 17 - (k == 3));
  if (!mended) tile<<<1, dim3(16, 16), 0, w.loose>>>(w.d, 16, 0, 48, 16, 16);
}

static void halves_off_by_one(World &w, bool mended) {
  const int half = kN / 2;
  fill<<<4, 256, 0, w.s>>>(w.a, half + (mended ? 0 : 1), 1);
  fill<<<4, 256, 0, w.t>>>(w.a + half, half, 2);
}

static void colors_of_a_grid(World &w, bool mended) {
  relax<<<dim3(1, 64), 64, 0, w.s>>>(w.d, 64, 0);
  relax<<<dim3(1, 64), 64, 0, w.t>>>(w.d, 64, mended ? 1 : 0);
}

static void partial_sums(World &w, bool mended) {
  block_sums<<<8, 256, 0, w.s>>>(w.a, w.d, 0, kN);
  block_sums<<<8, 256, 0, w.t>>>(w.b, w.d, mended ? 8 : 7, kN);
}

static void halo_of_a_stencil(World &w, bool mended) {
  const int half = kN / 2;
  stencil<<<kGrid / 2, 256, 0, w.s>>>(w.a, w.b, 0, half);
  stencil<<<kGrid / 2, 256, 0, w.t>>>(w.a, w.b, half, kN - 1);
  cudaEventRecord(w.e, w.t);
  if (mended) cudaStreamWaitEvent(w.s, w.e, 0);
  stencil<<<kGrid / 2, 256, 0, w.s>>>(w.b, w.c, 0, half);  // needs one cell of the other half
}

static void pointers_in_a_structure(World &w, bool mended) {
  fill<<<kGrid, 256, 0, w.s>>>(w.b, kN, 1);
  if (mended) {
    cudaEventRecord(w.e, w.s);
    cudaStreamWaitEvent(w.t, w.e, 0);
  }
  move<<<kGrid, 256, 0, w.t>>>(Fields{w.a, w.b, kN});
}

static void fields_of_a_structure(World &w, bool mended) {
  auto *particles = reinterpret_cast<Particle *>(w.d);
  set_mass<<<kGrid, 256, 0, w.s>>>(particles, kN);
  if (mended) {
    set_charge<<<kGrid, 256, 0, w.t>>>(particles, kN);
  } else {
    set_mass<<<kGrid, 256, 0, w.t>>>(particles + 1, kN);
  }
}

static void constants_while_they_are_read(World &w, bool mended) {
  weigh<<<kGrid, 256, 0, w.s>>>(w.a, kN);
  cudaMemcpyToSymbolAsync(coefficients, w.host, sizeof coefficients, 0, cudaMemcpyHostToDevice, mended ? w.s : w.t);
}

static void workspace_that_is_shared(World &w, bool mended) {
  cudaStream_t streams[2] = {w.loose, w.other_loose};
  float *out[2] = {w.b, w.c};
  for (int k = 0; k < 2; ++k)
    product<<<kGrid, 256, 0, streams[k]>>>(w.a, mended ? w.d + k * kN : w.d, out[k], kN);
}

static void columns_of_copies(World &w, bool mended) {
  cudaMemcpy2DAsync(w.d, 256, w.host, 128, 128, 16, cudaMemcpyHostToDevice, w.s);
  cudaMemcpy2DAsync(w.d + (mended ? 32 : 31), 256, w.host, 128, 128, 16, cudaMemcpyHostToDevice, w.t);
}

static void swapped_once_too_often(World &w, bool mended) {
  float *now = w.a, *next = w.b;
  for (int i = 0; i < 3; ++i) {
    twice<<<kGrid, 256, 0, w.s>>>(now, next, kN);
    std::swap(now, next);
  }
  cudaEventRecord(w.e, w.s);
  if (mended) cudaStreamWaitEvent(w.loose, w.e, 0);
  cudaMemcpyAsync(w.host, mended ? now : next, kSize, cudaMemcpyDeviceToHost, w.loose);
}

static void stream_made_anew(World &w, bool mended) {
  cudaStream_t first, second;
  cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
  fill<<<kGrid, 256, 0, first>>>(w.a, kN, 1);
  if (mended) cudaStreamSynchronize(first);
  cudaStreamDestroy(first);  // its work goes on
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
  twice<<<kGrid, 256, 0, second>>>(w.a, w.b, kN);
}

int main(int, char **argv) {
  World world;
  const bool mended = !std::strcmp(argv[2], "mended");
#define CASE(name) \
  if (!std::strcmp(argv[1], #name)) name(world, mended)
  CASE(event_recorded_again);
  CASE(copy_behind_a_callers_stream);
  CASE(pool_hands_on_too_early);
  CASE(pool_for_another_stream);
  CASE(used_after_it_went_back);
  CASE(freed_behind_the_wrong_stream);
  CASE(allocated_on_another_stream);
  CASE(ring_without_an_empty_event);
  CASE(ring_with_too_few_events);
  CASE(wait_before_the_record);
  CASE(wait_behind_the_launch);
  CASE(record_on_the_wrong_stream);
  CASE(one_of_two_producers);
  CASE(stream_argument_forgotten);
  CASE(memset_on_the_default_stream);
  CASE(synchronized_the_other_stream);
  CASE(result_read_too_early);
  CASE(staging_filled_again);
  CASE(managed_read_too_early);
  CASE(branches_of_a_graph);
  CASE(edge_of_a_graph);
  CASE(graph_beside_a_stream);
  CASE(threads_with_streams_of_their_own);
  CASE(components_of_one_array);
  CASE(tiles_that_overlap);
  CASE(rows_of_tiles);
  CASE(halves_off_by_one);
  CASE(colors_of_a_grid);
  CASE(partial_sums);
  CASE(halo_of_a_stencil);
  CASE(pointers_in_a_structure);
  CASE(fields_of_a_structure);
  CASE(constants_while_they_are_read);
  CASE(workspace_that_is_shared);
  CASE(columns_of_copies);
  CASE(swapped_once_too_often);
  CASE(stream_made_anew);
  cudaDeviceSynchronize();
}
