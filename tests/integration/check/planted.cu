// Programs with a race each, chosen by the first argument. The comments `// first: NAME` and `// second: NAME` stand
// on the lines of the pair that must be reported for it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

__global__ void fill(float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i;
}
__global__ void twice(const float *in, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}
__global__ void gather(float *const *parts, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = parts[0][i] + parts[1][i];
}
struct Pair {
  int n;
  float *to;
  const float *from;
};
__global__ void move(Pair pair) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < pair.n) pair.to[i] = pair.from[i];
}
__device__ float bias[256];
__global__ void shift(float *x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += bias[i % 256];
}

constexpr int kN = 4096;
constexpr size_t kSize = kN * sizeof(float);

struct World {
  float *a, *b, *c, *host;
  cudaStream_t s, t, free_running;
  cudaEvent_t event, other;
  World() {
    cudaMalloc(&a, kSize);
    cudaMalloc(&b, kSize);
    cudaMalloc(&c, kSize);
    cudaMallocHost(&host, kSize);
    cudaStreamCreate(&s);
    cudaStreamCreate(&t);
    cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking);
    cudaEventCreate(&event);
    cudaEventCreate(&other);
  }
};

static void missing_wait(World &w) {
  fill<<<16, 256, 0, w.s>>>(w.a, kN);  // first: missing_wait
  cudaEventRecord(w.event, w.s);
  twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN);  // second: missing_wait
}

static void wrong_event(World &w) {
  cudaEventRecord(w.other, w.s);
  fill<<<16, 256, 0, w.s>>>(w.a, kN);  // first: wrong_event
  cudaEventRecord(w.event, w.s);
  cudaStreamWaitEvent(w.t, w.other, 0);
  twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN);  // second: wrong_event
}

static void recorded_too_early(World &w) {
  cudaEventRecord(w.event, w.s);
  fill<<<16, 256, 0, w.s>>>(w.a, kN);  // first: recorded_too_early
  cudaStreamWaitEvent(w.t, w.event, 0);
  twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN);  // second: recorded_too_early
}

static void non_blocking(World &w) {
  fill<<<16, 256, 0, w.free_running>>>(w.a, kN);  // first: non_blocking
  twice<<<16, 256>>>(w.a, w.b, kN);  // second: non_blocking
}

static void overwritten_source(World &w) {
  for (int i = 0; i < kN; ++i) w.host[i] = i;
  cudaMemcpyAsync(w.a, w.host, kSize, cudaMemcpyHostToDevice, w.s);  // first: overwritten_source
  w.host[7] = 1;  // second: overwritten_source
}

static void freed_too_early(World &w) {
  float *scratch;
  cudaMallocAsync(&scratch, kSize, w.s);
  cudaStreamSynchronize(w.s);
  fill<<<16, 256, 0, w.t>>>(scratch, kN);  // first: freed_too_early
  cudaFreeAsync(scratch, w.s);  // second: freed_too_early
}

static void read_too_early(World &w) {
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  cudaMemcpyAsync(w.host, w.a, kSize, cudaMemcpyDeviceToHost, w.s);  // first: read_too_early
  std::printf("%g\n", w.host[100]);  // second: read_too_early
}

static void double_buffer(World &w) {  // nothing keeps the copy from overtaking the kernel of the round before last
  float *buffer[2] = {w.a, w.b};
  cudaEvent_t full[2] = {w.event, w.other};
  for (int i = 0; i < 6; ++i) {
    cudaMemcpyAsync(buffer[i % 2], w.host, kSize, cudaMemcpyHostToDevice, w.s);  // second: double_buffer
    cudaEventRecord(full[i % 2], w.s);
    cudaStreamWaitEvent(w.t, full[i % 2], 0);
    twice<<<16, 256, 0, w.t>>>(buffer[i % 2], w.c, kN);  // first: double_buffer
  }
}

static void wrong_stream_memset(World &w) {
  cudaMemsetAsync(w.a, 0, kSize, w.t);  // first: wrong_stream_memset
  fill<<<16, 256, 0, w.s>>>(w.a, kN);  // second: wrong_stream_memset
}

static void threads(World &w) {
  std::thread([&] { fill<<<16, 256, 0, w.s>>>(w.a, kN); }).join();  // first: threads
  std::thread([&] { twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN); }).join();  // second: threads
}

static void pointers_in_memory(World &w) {
  float **parts, *hold[2] = {w.a, w.b};
  cudaMalloc(&parts, sizeof hold);
  cudaMemcpy(parts, hold, sizeof hold, cudaMemcpyHostToDevice);
  fill<<<16, 256, 0, w.s>>>(w.b, kN);  // first: pointers_in_memory
  gather<<<16, 256, 0, w.t>>>(parts, w.c, kN);  // second: pointers_in_memory
}

static void pointer_in_struct(World &w) {
  fill<<<16, 256, 0, w.s>>>(w.b, kN);  // first: pointer_in_struct
  move<<<16, 256, 0, w.t>>>(Pair{kN, w.a, w.b});  // second: pointer_in_struct
}

static void symbol(World &w) {
  shift<<<16, 256, 0, w.s>>>(w.a, kN);  // first: symbol
  cudaMemcpyToSymbolAsync(bias, w.host, 1024, 0, cudaMemcpyHostToDevice, w.t);  // second: symbol
}

static void managed(World &w) {
  float *m;
  cudaMallocManaged(&m, kSize);
  fill<<<16, 256, 0, w.s>>>(m, kN);  // first: managed
  std::printf("%g\n", m[3]);  // second: managed
}

static void graph_branch(World &w) {  // the second branch does not follow the first
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(w.s, cudaStreamCaptureModeGlobal);
  cudaEventRecord(w.event, w.s);
  cudaStreamWaitEvent(w.t, w.event, 0);
  fill<<<16, 256, 0, w.s>>>(w.a, kN);  // first: graph_branch
  twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN);  // second: graph_branch
  cudaEventRecord(w.other, w.t);
  cudaStreamWaitEvent(w.s, w.other, 0);
  cudaStreamEndCapture(w.s, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, w.s);
}

static void stale(World &w) {  // the pointer outlives its memory
  cudaFree(w.a);  // first: stale
  fill<<<16, 256, 0, w.s>>>(w.a, kN);  // second: stale
}

static void stale_prefetch(World &w) {
  float *m;
  cudaMallocManaged(&m, kSize);
  fill<<<16, 256, 0, w.s>>>(m, kN);
  cudaFree(m);  // first: stale_prefetch
  cudaMemPrefetchAsync(m, kSize, {cudaMemLocationTypeHost, 0}, 0, w.s);  // second: stale_prefetch
}

static void fork_join_missing_join(World &w) {
  fill<<<16, 256>>>(w.a, kN);
  cudaEventRecord(w.event, 0);
  cudaStreamWaitEvent(w.free_running, w.event, 0);
  twice<<<16, 256, 0, w.free_running>>>(w.a, w.b, kN);  // first: fork_join_missing_join
  cudaMemcpy(w.host, w.b, kSize, cudaMemcpyDeviceToHost);  // second: fork_join_missing_join
}

int main(int, char **argv) {
  World world;
#define CASE(name) \
  if (!std::strcmp(argv[1], #name)) name(world)
  CASE(missing_wait);
  CASE(wrong_event);
  CASE(recorded_too_early);
  CASE(non_blocking);
  CASE(overwritten_source);
  CASE(freed_too_early);
  CASE(read_too_early);
  CASE(double_buffer);
  CASE(wrong_stream_memset);
  CASE(threads);
  CASE(pointers_in_memory);
  CASE(pointer_in_struct);
  CASE(symbol);
  CASE(managed);
  CASE(graph_branch);
  CASE(stale);
  CASE(stale_prefetch);
  CASE(fork_join_missing_join);
  cudaDeviceSynchronize();
}
