// Vectors that a loop fills one by one, arrays that get their pointers from variables or helpers, and range-based loops.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}

__global__ void scale(float* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= 2;
}

static float* buffer(int n) {
  float* made = nullptr;
  if (cudaMalloc(&made, n * sizeof(float)) != cudaSuccess) exit(1);
  return made;
}

static void one_more(std::vector<float*>& all, int n) { all.push_back(buffer(n)); }

// <prologue: 8 streams, 0 events>

int main(int argc, char** argv) {
  int count = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float*> in, out, more;
  float **made = new float*[count], *plain[32];
  for (int i = 0; i < count; ++i) {
    float* p;
    cudaMalloc(&p, n * sizeof(float));
    in.push_back(p);
    out.emplace_back(buffer(n));
    one_more(more, n);
    float* q = buffer(n);
    made[i] = q;
    plain[i] = buffer(n);
  }
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < count; ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    add<<<4, 256, 0, kesco->stream[0]>>>(out[i], in[i], n);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns overlap
  for (float* one : more) {
    KescoStreams* kesco = kesco_turn(kesco_loop1);
    scale<<<4, 256, 0, kesco->stream[0]>>>(one, n);
  }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop2 = kesco_turns(kesco);  // kesco: turns overlap
  for (auto& one : in) {
    KescoStreams* kesco = kesco_turn(kesco_loop2);
    scale<<<4, 256, 0, kesco->stream[0]>>>(one, n);
    scale<<<4, 256, 0, kesco->stream[0]>>>(one, n);
  }
  kesco_turned(kesco_loop2);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop3 = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < count; ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop3);
    add<<<4, 256, 0, kesco->stream[0]>>>(made[i], plain[i], n);
  }
  kesco_turned(kesco_loop3);  // kesco: the host waits
  float host = 0;
  cudaMemcpy(&host, out.front(), sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
  for (float* one : in) cudaFree(one);
  delete[] made;
}
