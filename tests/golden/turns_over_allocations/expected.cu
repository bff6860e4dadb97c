// Arrays of pointers that a loop of unknown length has filled: each element has an allocation of its own.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add(float* x, const float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] += y[i];
}

struct Layer {
  float *weights, *change;
  int n;
};

struct Net {
  std::vector<float*> in, out;
};

static void allocate(std::vector<float*>& all, int count, int n) {
  all.resize(count);
  for (int i = 0; i < count; ++i) cudaMalloc(&all[i], n * sizeof(float));
}

// <prologue: 8 streams, 0 events>

int main(int argc, char** argv) {
  int count = atoi(argv[1]), n = atoi(argv[2]);
  float *plain[32], **made = (float**)malloc(count * sizeof(float*));
  Layer layers[32];
  std::vector<float*> x(count), y;
  allocate(y, count, n);
  Net net;
  net.in.resize(count);
  net.out.resize(count);
  for (int i = 0; i < count; ++i) {
    cudaMalloc(&plain[i], n * sizeof(float));
    cudaMalloc((void**)&made[i], n * sizeof(float));
    cudaMalloc(&x[i], n * sizeof(float));
    cudaMalloc(&layers[i].weights, n * sizeof(float));
    cudaMalloc(&layers[i].change, n * sizeof(float));
    cudaMalloc(&net.in[i], n * sizeof(float));
    cudaMalloc(&net.out[i], n * sizeof(float));
    layers[i].n = n;
  }
  KescoStreams* kesco = &kesco_streams();
  KescoTurns kesco_loop = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < count; ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop);
    add<<<4, 256, 0, kesco->stream[0]>>>(plain[i], made[i], n);
  }
  kesco_turned(kesco_loop);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop1 = kesco_turns(kesco);  // kesco: turns overlap
  for (size_t i = 0; i < x.size(); ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop1);
    add<<<4, 256, 0, kesco->stream[0]>>>(x[i], y[i], n);
  }
  kesco_turned(kesco_loop1);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop2 = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < count; ++i) {
    KescoStreams* kesco = kesco_turn(kesco_loop2);
    add<<<4, 256, 0, kesco->stream[0]>>>(layers[i].weights, layers[i].change, n);
    add<<<4, 256, 0, kesco->stream[0]>>>(layers[i].change, layers[i].weights, n);
  }
  kesco_turned(kesco_loop2);  // kesco: the host waits
  // kesco: not needed here: cudaDeviceSynchronize();
  KescoTurns kesco_loop3 = kesco_turns(kesco);  // kesco: turns overlap
  for (int i = 0; i < count; ++i) {
    float* to = net.out[i];
    KescoStreams* kesco = kesco_turn(kesco_loop3);
    add<<<4, 256, 0, kesco->stream[0]>>>(to, net.in[i], n);
  }
  kesco_turned(kesco_loop3);  // kesco: the host waits
  float host = 0;
  cudaMemcpy(&host, net.out[0], sizeof(float), cudaMemcpyDeviceToHost);
  printf("%f\n", host);
  for (int i = 0; i < count; ++i) {
    cudaFree(plain[i]);
    cudaFree(made[i]);
    cudaFree(layers[i].weights);
    cudaFree(layers[i].change);
    cudaFree(net.in[i]);
    cudaFree(net.out[i]);
  }
  for (float* one : x) cudaFree(one);
  for (float* one : y) cudaFree(one);
  free(made);
}
