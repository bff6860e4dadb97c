// The host makes the next batch while the device works on this one: it waits for the loss when that is done. Where it
// goes through results, too, both are kept.
#include <cstdio>
#include <cstdlib>
#include <vector>

#define CHECK(call)                                                        \
  do {                                                                     \
    const cudaError_t status = (call);                                     \
    if (status != cudaSuccess) {                                           \
      std::fprintf(stderr, "%s\n", cudaGetErrorString(status));            \
      std::exit(1);                                                        \
    }                                                                      \
  } while (0)

__global__ void forward(const float* x, const float* w, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * w[i % 64];
}
__global__ void loss_of(const float* y, float* loss, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(loss, y[i] * y[i] / n);
}
__global__ void update(float* w, const float* y, float rate) { w[threadIdx.x] -= rate * y[threadIdx.x]; }

static unsigned state = 12345;
static void make_batch(std::vector<float>& x) {
  for (float& one : x) {
    state = state * 1664525u + 1013904223u;
    one = (state >> 8) / 16777216.0f - 0.5f;
  }
}

int main() {
  const int n = 1 << 16, bytes = n * sizeof(float);
  float *x, *w, *y, *loss;
  CHECK(cudaMalloc(&x, bytes));
  CHECK(cudaMalloc(&w, 64 * sizeof(float)));
  CHECK(cudaMalloc(&y, bytes));
  CHECK(cudaMalloc(&loss, sizeof(float)));
  CHECK(cudaMemset(w, 0, 64 * sizeof(float)));
  std::vector<float> batch(n), found(n), losses;
  for (int step = 0; step < 50; ++step) {
    make_batch(batch);
    CHECK(cudaMemcpy(x, batch.data(), bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(loss, 0, sizeof(float)));
    forward<<<(n + 255) / 256, 256>>>(x, w, y, n);
    loss_of<<<(n + 255) / 256, 256>>>(y, loss, n);
    update<<<1, 64>>>(w, y, 0.01f);
    CHECK(cudaGetLastError());
    float mine = 0.0f;
    CHECK(cudaMemcpy(&mine, loss, sizeof(float), cudaMemcpyDeviceToHost));
    losses.push_back(mine);
    if (step % 10 == 0) std::printf("step %d: %f\n", step, mine);
  }
  double sum = 0;
  for (int step = 0; step < 10; ++step) {
    make_batch(batch);
    CHECK(cudaMemcpy(x, batch.data(), bytes, cudaMemcpyHostToDevice));
    forward<<<(n + 255) / 256, 256>>>(x, w, y, n);
    CHECK(cudaMemcpy(found.data(), y, bytes, cudaMemcpyDeviceToHost));
    for (float one : found) sum += one;
  }
  std::printf("%f %f\n", losses.back(), sum);
  CHECK(cudaFree(x));
  CHECK(cudaFree(w));
  CHECK(cudaFree(y));
  CHECK(cudaFree(loss));
  return 0;
}
