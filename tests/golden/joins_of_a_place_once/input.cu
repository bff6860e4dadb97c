// Each trip's memory is its own, so the loop's trips are told apart: the place before the destructor is joined once.
__global__ void inc(float* x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] += 1; }
struct Buffer {
  float* p;
  explicit Buffer(int n) { cudaMalloc(&p, n * sizeof(float)); }
  ~Buffer() { cudaFree(p); }
  Buffer(const Buffer&) = delete;
};
int main() {
  const int n = 1 << 20;
  Buffer all(n);
  for (int i = 0; i < 3; ++i) {
    Buffer mine(n);
    inc<<<n / 256, 256>>>(all.p, n);
    inc<<<n / 256, 256>>>(mine.p, n);
  }
  cudaDeviceSynchronize();
}
