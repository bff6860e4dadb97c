// How often the inner loop runs is known where control comes to it first, and not later. So its trips are not told
// apart, and the function is no worse off than if nobody had known the first number.
__global__ void add(float* p, int n) { p[threadIdx.x] += n; }

int main(int argc, char** argv) {
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  int trips = 2;
  for (int i = 0; i < argc; ++i) {
    for (int j = 0; j < trips; ++j) {
      add<<<1, 32>>>(a, j);
      add<<<1, 32>>>(b, i);
    }
    trips = 1 + i % 3;
  }
  return 0;
}
