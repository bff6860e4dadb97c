// Calls of every kind, right ones and wrong ones, chosen by the first argument; what each returned is printed.
#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

__device__ float table[64];
static __device__ int counter;
__global__ void set(float *x, float value) { x[threadIdx.x] = value; }
__global__ void sum(const float *a, const float *b, float *out) { out[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }
__global__ void count(float *x) { x[0] = atomicAdd(&counter, 1); }
__global__ void look(cudaTextureObject_t texture, float *out) {
  out[threadIdx.x] = tex2D<float>(texture, threadIdx.x, 0);
}
__global__ void gather(float *const *parts, float *out) { out[threadIdx.x] = parts[0][threadIdx.x]; }
namespace {
template <typename T>
__global__ void inner(T *x) { x[threadIdx.x] = 1; }
}  // namespace
static __global__ void hidden(float *x) { x[threadIdx.x] = 2; }

#define SAY(call) std::printf("%s: %s\n", #call, cudaGetErrorName(call))

static cudaStream_t s, t;
static float *a, *b, *c, *host;

static void kinds_of_memory() {
  float *pitched, *managed, *mapped, *device, *symbol, plain[64] = {};
  size_t pitch;
  cudaPitchedPtr cube;
  SAY(cudaMallocPitch(&pitched, &pitch, 100, 8));
  SAY(cudaMemset2DAsync(pitched, pitch, 0, 100, 8, s));
  SAY(cudaMemcpy2DAsync(a, 128, pitched, pitch, 100, 8, cudaMemcpyDeviceToDevice, s));
  SAY(cudaMalloc3D(&cube, make_cudaExtent(64, 4, 2)));
  SAY(cudaMemset3DAsync(cube, 0, make_cudaExtent(64, 4, 2), s));
  SAY(cudaMallocManaged(&managed, 256));
  set<<<1, 64, 0, s>>>(managed, 1);
  SAY(cudaHostAlloc(&mapped, 256, cudaHostAllocMapped));
  SAY(cudaHostGetDevicePointer(&device, mapped, 0));
  set<<<1, 64, 0, s>>>(device, 1);
  SAY(cudaHostRegister(plain, sizeof plain, cudaHostRegisterDefault));
  SAY(cudaMemcpyAsync(plain, a, 256, cudaMemcpyDeviceToHost, s));
  SAY(cudaGetSymbolAddress(reinterpret_cast<void **>(&symbol), table));
  set<<<1, 64, 0, s>>>(symbol, 1);
  SAY(cudaMemcpyFromSymbol(plain, table, 256));
  SAY(cudaMemcpy(a, b, 0, cudaMemcpyDeviceToDevice));
  SAY(cudaMemcpyAsync(nullptr, nullptr, 0, cudaMemcpyDefault, s));
  SAY(cudaMemsetAsync(a, 0, 0, t));
  SAY(cudaMalloc(&symbol, 0));
  SAY(cudaFree(nullptr));
  SAY(cudaMemcpyPeerAsync(b, 0, a, 0, 256, s));
  SAY(cudaHostUnregister(plain));
  SAY(cudaFreeHost(mapped));
  SAY(cudaFree(pitched));
  SAY(cudaFree(cube.ptr));
  float *pooled;
  SAY(cudaMallocAsync(&pooled, 256, t));
  set<<<1, 64, 0, t>>>(pooled, 1);
  SAY(cudaFreeAsync(pooled, t));
}

static void arrays() {
  cudaArray_t array;
  cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
  SAY(cudaMallocArray(&array, &format, 64, 2));
  SAY(cudaMemcpy2DToArrayAsync(array, 0, 0, host, 256, 256, 2, cudaMemcpyHostToDevice, s));
  cudaMemcpy3DParms parameters = {};
  parameters.srcArray = array;
  parameters.dstPtr = make_cudaPitchedPtr(a, 256, 256, 2);
  parameters.extent = make_cudaExtent(64, 2, 1);
  parameters.kind = cudaMemcpyDeviceToDevice;
  SAY(cudaMemcpy3DAsync(&parameters, s));
  cudaResourceDesc resource = {};
  resource.resType = cudaResourceTypeArray;
  resource.res.array.array = array;
  cudaTextureDesc how = {};
  cudaTextureObject_t texture;
  SAY(cudaCreateTextureObject(&texture, &resource, &how, nullptr));
  look<<<1, 64, 0, t>>>(texture, b);
  SAY(cudaDestroyTextureObject(texture));
  SAY(cudaFreeArray(array));
}

static void names() {  // clang and nvcc mangle these differently
  inner<<<1, 64, 0, s>>>(a);
  hidden<<<1, 64, 0, s>>>(b);
  count<<<1, 1, 0, t>>>(c);
  float *parts[] = {a};
  float **inside, **other;
  cudaMalloc(&inside, sizeof parts);
  cudaMalloc(&other, sizeof parts);
  SAY(cudaMemcpyAsync(inside, parts, sizeof parts, cudaMemcpyDefault, t));
  SAY(cudaMemcpyAsync(other, inside, sizeof parts, cudaMemcpyDeviceToDevice, t));
  gather<<<1, 64, 0, t>>>(other, c);
}

static void errors() {
  float local[4], *gone = a;
  SAY(cudaFree(gone));
  SAY(cudaFree(gone));
  SAY(cudaMemcpy(gone, local, 16, cudaMemcpyHostToDevice));
  SAY(cudaMemset(gone, 0, 16));
  SAY(cudaMalloc(&gone, size_t(1) << 60));
  SAY(cudaSetDevice(77));
  set<<<1, 5000, 0, s>>>(b, 1);
  SAY(cudaPeekAtLastError());
  SAY(cudaGetLastError());
  SAY(cudaGetLastError());
  SAY(cudaHostUnregister(local));
  SAY(cudaStreamBeginCapture(s, cudaStreamCaptureModeGlobal));
  SAY(cudaStreamSynchronize(s));
  cudaGraph_t graph;
  SAY(cudaStreamEndCapture(s, &graph));
  set<<<1, 64, 0, s>>>(b, 1);
  SAY(cudaStreamSynchronize(s));
}

static void graphs() {
  cudaGraph_t graph, child, clone;
  cudaGraphExec_t exec;
  cudaGraphNode_t first, second, third, nested;
  SAY(cudaGraphCreate(&child, 0));
  cudaMemsetParams clear = {};
  clear.dst = b;
  clear.elementSize = 4;
  clear.width = 64;
  clear.height = 1;
  SAY(cudaGraphAddMemsetNode(&first, child, nullptr, 0, &clear));
  SAY(cudaGraphCreate(&graph, 0));
  SAY(cudaGraphAddChildGraphNode(&nested, graph, nullptr, 0, child));
  SAY(cudaGraphAddMemcpyNode1D(&second, graph, &nested, 1, c, b, 256, cudaMemcpyDeviceToDevice));
  cudaHostNodeParams call = {[](void *) {}, nullptr};
  SAY(cudaGraphAddHostNode(&third, graph, nullptr, 0, &call));
  SAY(cudaGraphAddDependencies(graph, &second, &third, nullptr, 1));
  SAY(cudaGraphInstantiate(&exec, graph, 0));
  SAY(cudaGraphLaunch(exec, s));
  SAY(cudaGraphExecMemcpyNodeSetParams1D(exec, second, a, b, 256, cudaMemcpyDeviceToDevice));
  SAY(cudaGraphLaunch(exec, t));
  SAY(cudaGraphClone(&clone, graph));
  SAY(cudaGraphExecDestroy(exec));
  SAY(cudaGraphInstantiate(&exec, clone, 0));
  SAY(cudaGraphExecUpdate(exec, graph, nullptr));
  SAY(cudaGraphLaunch(exec, s));
  SAY(cudaGraphDestroy(clone));
  SAY(cudaGraphDestroy(graph));
}

static void threads() {  // all at once; nothing here is in a race with anything
  std::vector<std::thread> all;
  for (int i = 0; i < 4; ++i)
    all.emplace_back([] {
      for (int k = 0; k < 200; ++k) {
        cudaStream_t own;
        cudaEvent_t event;
        float *x, *pinned;
        if (cudaStreamCreate(&own) != cudaSuccess || cudaEventCreate(&event) != cudaSuccess) std::abort();
        if (cudaMalloc(&x, 256) != cudaSuccess || cudaMallocHost(&pinned, 256) != cudaSuccess) std::abort();
        cudaMemcpyAsync(x, pinned, 256, cudaMemcpyHostToDevice, own);
        set<<<1, 64, 0, own>>>(x, 1);
        cudaEventRecord(event, own);
        cudaEventSynchronize(event);
        if (cudaFree(x) != cudaSuccess || cudaFreeHost(pinned) != cudaSuccess) std::abort();
        if (cudaEventDestroy(event) != cudaSuccess || cudaStreamDestroy(own) != cudaSuccess) std::abort();
      }
    });
  for (auto &one : all) one.join();
  std::puts("joined");
}

static void starts_another() {  // which must not be recorded, too
  set<<<1, 64, 0, s>>>(a, 1);
  std::fflush(stdout);
  if (std::system("echo \"[$LD_PRELOAD] [$CUDA_RECORDER_RECORD]\"") != 0) std::abort();
}

static void no_room() {  // for the record
  std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small = {5 << 20, 5 << 20};
  setrlimit(RLIMIT_FSIZE, &small);
  for (int i = 0; i < 100000; ++i) set<<<1, 64, 0, s>>>(a, 1);
  std::puts("done");
}

static void opens() {  // functions that are not in the record; see front.c
  cudaIpcMemHandle_t handle;
  for (int i = 0; i < 64; ++i) handle.reserved[i] = static_cast<char>(i);
  void *pointer = nullptr;
  SAY(cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess));
  SAY(cudaIpcOpenMemHandle(&pointer, handle, cudaIpcMemLazyEnablePeerAccess));
  std::printf("%p\n", pointer);
  float *symbol;
  SAY(cudaGetSymbolAddress(reinterpret_cast<void **>(&symbol), table));
  set<<<1, 64, 0, s>>>(symbol + 3, 1);
  SAY(cudaMalloc(&symbol, 12345));
  float **inside, **other;
  cudaMalloc(&inside, 8);
  cudaMalloc(&other, 8);
  SAY(cudaMemcpyAsync(inside, pointer, 8, cudaMemcpyDeviceToDevice, s));
  SAY(cudaMemcpyAsync(other, inside, 8, cudaMemcpyDeviceToDevice, s));
  gather<<<1, 64, 0, s>>>(other, c);  // what it follows is not known
  SAY(cudaFreeHost(host));
}

int main(int, char **argv) {
  cudaMalloc(&a, 1 << 16);
  cudaMalloc(&b, 1 << 16);
  cudaMalloc(&c, 1 << 16);
  cudaMallocHost(&host, 1 << 16);
  cudaStreamCreate(&s);
  cudaStreamCreateWithFlags(&t, cudaStreamNonBlocking);
#define CASE(name) \
  if (!std::strcmp(argv[1], #name)) name()
  CASE(kinds_of_memory);
  CASE(arrays);
  CASE(names);
  CASE(errors);
  CASE(graphs);
  CASE(threads);
  CASE(starts_another);
  CASE(no_room);
  CASE(opens);
  std::printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
