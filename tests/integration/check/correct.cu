// Programs without a race, chosen by the first argument: each orders what it must in another way.
#include <cstdio>
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
__global__ void add(const float *a, const float *b, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

constexpr int kN = 4096;
constexpr size_t kSize = kN * sizeof(float);

struct World {
  float *a, *b, *c, *d, *host;
  cudaStream_t s, t, free_running;
  cudaEvent_t event, other;
  World() {
    cudaMalloc(&a, kSize);
    cudaMalloc(&b, kSize);
    cudaMalloc(&c, kSize);
    cudaMalloc(&d, kSize);
    cudaMallocHost(&host, kSize);
    cudaStreamCreate(&s);
    int least = 0, greatest = 0;
    cudaDeviceGetStreamPriorityRange(&least, &greatest);
    cudaStreamCreateWithPriority(&t, cudaStreamDefault, greatest);
    cudaStreamCreateWithFlags(&free_running, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventCreate(&other);
  }
};

static void fork_join(World &w) {
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  cudaEventRecord(w.event, w.s);
  cudaStreamWaitEvent(w.free_running, w.event, 0);
  twice<<<16, 256, 0, w.s>>>(w.a, w.b, kN);
  twice<<<16, 256, 0, w.free_running>>>(w.a, w.c, kN);  // two readers of one buffer
  cudaEventRecord(w.other, w.free_running);
  cudaStreamWaitEvent(w.s, w.other, 0);
  add<<<16, 256, 0, w.s>>>(w.b, w.c, w.d, kN);
  cudaMemcpyAsync(w.host, w.d, kSize, cudaMemcpyDeviceToHost, w.s);
  cudaStreamSynchronize(w.s);
  std::printf("%g\n", w.host[1]);
}

static void double_buffer(World &w) {
  float *buffer[2] = {w.a, w.b};
  cudaEvent_t full[2], empty[2];
  for (int k = 0; k < 2; ++k) {
    cudaEventCreate(&full[k]);
    cudaEventCreate(&empty[k]);
  }
  for (int i = 0; i < 6; ++i) {
    const int k = i % 2;
    cudaStreamWaitEvent(w.s, empty[k], 0);  // nothing to wait for in the first rounds
    cudaMemcpyAsync(buffer[k], w.host, kSize, cudaMemcpyHostToDevice, w.s);
    cudaEventRecord(full[k], w.s);
    cudaStreamWaitEvent(w.t, full[k], 0);
    twice<<<16, 256, 0, w.t>>>(buffer[k], w.c, kN);
    cudaEventRecord(empty[k], w.t);
  }
}

static void legacy_default_stream(World &w) {
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  twice<<<16, 256>>>(w.a, w.b, kN);  // waits for the blocking streams
  twice<<<16, 256, 0, w.t>>>(w.b, w.c, kN);  // and they for it
  cudaMemcpy(w.host, w.c, kSize, cudaMemcpyDeviceToHost);
  std::printf("%g\n", w.host[1]);
}

static void stream_ordered_memory(World &w) {
  float *x;
  cudaMallocAsync(&x, kSize, w.s);
  fill<<<16, 256, 0, w.s>>>(x, kN);
  cudaEventRecord(w.event, w.s);
  cudaStreamWaitEvent(w.t, w.event, 0);
  twice<<<16, 256, 0, w.t>>>(x, w.a, kN);
  cudaEventRecord(w.other, w.t);
  cudaStreamWaitEvent(w.s, w.other, 0);
  cudaFreeAsync(x, w.s);
}

static void captured_graph(World &w) {
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaStreamBeginCapture(w.s, cudaStreamCaptureModeGlobal);
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  cudaEventRecord(w.event, w.s);
  cudaStreamWaitEvent(w.t, w.event, 0);
  twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN);
  twice<<<16, 256, 0, w.s>>>(w.a, w.c, kN);
  cudaEventRecord(w.other, w.t);
  cudaStreamWaitEvent(w.s, w.other, 0);
  add<<<16, 256, 0, w.s>>>(w.b, w.c, w.d, kN);
  cudaStreamEndCapture(w.s, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, w.s);
  cudaStreamSynchronize(w.s);
  fill<<<16, 256, 0, w.t>>>(w.d, kN);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}

static void graph_by_hand(World &w) {  // changed between its launches
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaGraphNode_t set, first, second, host;
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
  launch.gridDim = dim3(16);
  launch.blockDim = dim3(256);
  launch.kernelParams = arguments;
  cudaGraphAddKernelNode(&first, graph, &set, 1, &launch);
  void *others[] = {&w.a, &w.c, &n};
  launch.kernelParams = others;
  cudaGraphAddKernelNode(&second, graph, &set, 1, &launch);
  cudaGraphNode_t both[] = {first, second};
  cudaGraphAddMemcpyNode1D(&host, graph, both, 2, w.host, w.c, kSize, cudaMemcpyDeviceToHost);
  cudaGraphInstantiate(&exec, graph, 0);
  cudaGraphLaunch(exec, w.s);
  void *changed[] = {&w.a, &w.d, &n};
  launch.kernelParams = changed;
  cudaGraphExecKernelNodeSetParams(exec, first, &launch);
  cudaGraphLaunch(exec, w.s);
  cudaMemcpyAsync(w.b, w.a, kSize, cudaMemcpyDeviceToDevice, w.s);
  cudaStreamSynchronize(w.s);
  std::printf("%g\n", w.host[0]);
}

static void synchronized_by_the_host(World &w) {
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  cudaEventRecord(w.event, w.s);
  cudaEventSynchronize(w.event);
  twice<<<16, 256, 0, w.free_running>>>(w.a, w.b, kN);
  cudaStreamSynchronize(w.free_running);
  twice<<<16, 256, 0, w.t>>>(w.b, w.a, kN);
  while (cudaStreamQuery(w.t) != cudaSuccess) {
  }
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  cudaDeviceSynchronize();
  fill<<<16, 256, 0, w.free_running>>>(w.a, kN);
}

static void halves_of_copies(World &w) {  // exact ranges of one buffer do not overlap
  cudaMemcpyAsync(w.a, w.host, kSize / 2, cudaMemcpyHostToDevice, w.s);
  cudaMemcpyAsync(w.a + kN / 2, w.host + kN / 2, kSize / 2, cudaMemcpyHostToDevice, w.t);
  cudaMemset2DAsync(w.b, 64, 0, 32, 16, w.s);  // left and right columns
  cudaMemset2DAsync(w.b + 8, 64, 0, 32, 16, w.t);
}

static void pinned_in_rounds(World &w) {
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < kN; ++k) w.host[k] = k + i;
    cudaMemcpyAsync(w.a, w.host, kSize, cudaMemcpyHostToDevice, w.s);
    twice<<<16, 256, 0, w.s>>>(w.a, w.b, kN);
    cudaMemcpyAsync(w.host, w.b, kSize, cudaMemcpyDeviceToHost, w.s);
    cudaStreamSynchronize(w.s);
    std::printf("%g\n", w.host[5]);
  }
}

static void pageable(World &w) {  // the copy has read its source when it returns
  static float source[kN];
  for (int i = 0; i < 3; ++i) {
    for (float &one : source) one = i;
    cudaMemcpyAsync(w.a, source, kSize, cudaMemcpyHostToDevice, w.s);
    twice<<<16, 256, 0, w.s>>>(w.a, w.b, kN);
  }
  cudaMemcpy(source, w.b, kSize, cudaMemcpyDeviceToHost);
}

static void managed(World &w) {
  float *m;
  cudaMallocManaged(&m, kSize);
  for (int i = 0; i < kN; ++i) m[i] = i;
  cudaMemAdvise(m, kSize, cudaMemAdviseSetReadMostly, {cudaMemLocationTypeDevice, 0});
  cudaMemPrefetchAsync(m, kSize, {cudaMemLocationTypeDevice, 0}, 0, w.s);
  const bool refused = cudaMemPrefetchAsync(m, 2 * kSize, {cudaMemLocationTypeHost, 0}, 0, w.s) == cudaErrorInvalidValue &&
                       cudaMemPrefetchAsync(w.a, kSize, {cudaMemLocationTypeDevice, 0}, 0, w.s) == cudaErrorInvalidValue &&
                       cudaMemPrefetchAsync(m, kSize, {cudaMemLocationTypeDevice, 9}, 0, w.s) == cudaErrorInvalidDevice &&
                       cudaMemAdvise(m + 1, kSize, cudaMemAdviseSetReadMostly, {}) == cudaErrorInvalidValue;
  cudaGetLastError();
  if (!refused) twice<<<16, 256>>>(m, w.b, kN), m[1] = 2;  // a race, which would be told
  twice<<<16, 256, 0, w.s>>>(m, m, kN);
  cudaMemPrefetchAsync(m, kSize, {cudaMemLocationTypeHost, 0}, 0, w.s);
  cudaStreamSynchronize(w.s);
  std::printf("%g\n", m[1]);
  cudaFree(m);
}

static void freed_after_use(World &w) {  // cudaFree waits for the device
  float *x;
  cudaMalloc(&x, kSize);
  fill<<<16, 256, 0, w.s>>>(x, kN);
  cudaFree(x);
  cudaMalloc(&x, kSize);
  fill<<<16, 256, 0, w.t>>>(x, kN);
}

static void threads(World &w) {
  std::thread([&] {
    fill<<<16, 256, 0, w.s>>>(w.a, kN);
    cudaEventRecord(w.event, w.s);
  }).join();
  std::thread([&] {
    cudaStreamWaitEvent(w.t, w.event, 0);
    twice<<<16, 256, 0, w.t>>>(w.a, w.b, kN);
  }).join();
}

static void host_function(World &w) {
  twice<<<16, 256, 0, w.s>>>(w.a, w.b, kN);
  cudaLaunchHostFunc(w.s, [](void *text) { std::puts(static_cast<const char *>(text)); }, const_cast<char *>("done"));
  cudaEventRecord(w.event, w.s);
  cudaStreamWaitEvent(w.t, w.event, 0);
  fill<<<16, 256, 0, w.t>>>(w.a, kN);
}

static void timed_on_the_default_stream(World &w) {  // as many samples do: the default stream waits for blocking ones
  cudaEventRecord(w.event, 0);
  fill<<<16, 256, 0, w.s>>>(w.a, kN);
  cudaMemcpyAsync(w.host, w.a, kSize, cudaMemcpyDeviceToHost, w.s);
  cudaEventRecord(w.other, 0);
  cudaEventSynchronize(w.other);
  std::printf("%g\n", w.host[0]);
}

int main(int, char **argv) {
  World world;
#define CASE(name) \
  if (!std::strcmp(argv[1], #name)) name(world)
  CASE(fork_join);
  CASE(double_buffer);
  CASE(legacy_default_stream);
  CASE(stream_ordered_memory);
  CASE(captured_graph);
  CASE(graph_by_hand);
  CASE(synchronized_by_the_host);
  CASE(halves_of_copies);
  CASE(pinned_in_rounds);
  CASE(pageable);
  CASE(managed);
  CASE(freed_after_use);
  CASE(threads);
  CASE(host_function);
  CASE(timed_on_the_default_stream);
  return cudaGetLastError() == cudaSuccess && cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
