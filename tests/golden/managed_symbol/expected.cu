// The kernel names m itself, the other gets it as an argument: both touch m and stay ordered; sm likewise; m and sm are independent.
__global__ void inc(float* p) { p[threadIdx.x] += 1; }
__device__ __managed__ float m[1024];
static __device__ __managed__ float sm[1024];
__global__ void use_m() { m[threadIdx.x] += 1; }
__global__ void use_sm() { sm[threadIdx.x] += 1; }
// <prologue: 2 streams, 0 events>

int main() {
  KescoStreams* kesco = &kesco_streams();
  inc<<<1, 32, 0, kesco->stream[0]>>>(m);
  use_m<<<1, 32, 0, kesco->stream[0]>>>();
  inc<<<1, 32, 0, kesco->stream[1]>>>(sm);
  use_sm<<<1, 32, 0, kesco->stream[1]>>>();
  cudaDeviceSynchronize();
}
