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
  for (int i = 0; i < count; ++i) add<<<4, 256>>>(plain[i], made[i], n);
  cudaDeviceSynchronize();
  for (size_t i = 0; i < x.size(); ++i) add<<<4, 256>>>(x[i], y[i], n);
  cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) {
    add<<<4, 256>>>(layers[i].weights, layers[i].change, n);
    add<<<4, 256>>>(layers[i].change, layers[i].weights, n);
  }
  cudaDeviceSynchronize();
  for (int i = 0; i < count; ++i) {
    float* to = net.out[i];
    add<<<4, 256>>>(to, net.in[i], n);
  }
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
