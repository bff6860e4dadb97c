// golden: --emit graph --fikit
// Two chains that meet, again and again, and nothing but launches: the body of the loop becomes a graph.
__global__ void left(float* a, const float* b) { a[threadIdx.x] += b[threadIdx.x]; }
__global__ void middle(float* c) { c[threadIdx.x] *= 2; }
__global__ void right(float* b, const float* c) { b[threadIdx.x] = c[threadIdx.x]; }

// <prologue: 2 streams, 1 events, 1 graphs>

// ---- kesco: launch hooks of this file; without a runtime they do nothing
extern "C" {
struct KescoLaunchSite {
  unsigned version, size;
  const char *kernel, *file;
  unsigned line, column;
  const char* function;
};
struct KescoLaunch {
  const void* function;
  unsigned grid[3], block[3];
  decltype(sizeof(0)) shared;
  void* stream;
};
__attribute__((weak)) void kesco_launch_before(const KescoLaunchSite*, const KescoLaunch*);
__attribute__((weak)) void kesco_launch_after(const KescoLaunchSite*, const KescoLaunch*);
}
namespace {
__attribute__((section("kesco_launches"), used)) const KescoLaunchSite kesco_sites[] = {
  {1, sizeof(KescoLaunchSite), "left", "input.cu", 13, 5, "main"},
  {1, sizeof(KescoLaunchSite), "middle", "input.cu", 14, 5, "main"},
  {1, sizeof(KescoLaunchSite), "right", "input.cu", 15, 5, "main"},
};
thread_local KescoLaunch kesco_launch;
inline void kesco_before(int site, dim3 grid, dim3 block, decltype(sizeof(0)) shared, cudaStream_t stream) {
  if (!kesco_launch_before) return;
  kesco_launch = {nullptr, {grid.x, grid.y, grid.z}, {block.x, block.y, block.z}, shared, (void*)stream};
  kesco_launch_before(&kesco_sites[site], &kesco_launch);
}
inline void kesco_after(int site) {
  if (kesco_launch_after) kesco_launch_after(&kesco_sites[site], &kesco_launch);
}
}  // namespace
// ---- kesco: launch hooks end

int main(int argc, char** argv) {
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  KescoStreams* kesco = &kesco_streams();
  for (int step = 0; step < argc; ++step) {
    // kesco: a graph that is captured again where these values change
    while (kesco_replay(kesco, 0, kesco->stream[0], a, b, c)) {
      kesco_before(0, 1, 32, 0, kesco->stream[0]);  // kesco: launch hook
      left<<<1, 32, 0, kesco->stream[0]>>>(a, b);
      kesco_after(0);  // kesco: launch hook
      kesco_before(1, 1, 32, 0, kesco->stream[1]);  // kesco: launch hook
      middle<<<1, 32, 0, kesco->stream[1]>>>(c);
      kesco_after(1);  // kesco: launch hook
      cudaEventRecord(kesco->done[0], kesco->stream[1]);  // kesco: right waits for this
      cudaStreamWaitEvent(kesco->stream[0], kesco->done[0], 0);  // kesco: wait for middle (RAW on c)
      kesco_before(2, 1, 32, 0, kesco->stream[0]);  // kesco: launch hook
      right<<<1, 32, 0, kesco->stream[0]>>>(b, c);
      kesco_after(2);  // kesco: launch hook
    }
  }
  cudaDeviceSynchronize();
  return 0;
}
