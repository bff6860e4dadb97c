// As results_between_launches, but each launch keeps its place: it is given what the host made of the result, the
// host prints or reads a clock before it, no wait follows that waited for it, a copy up would wait for it, or it reads the
// result itself.
#include <cstdio>
#include <ctime>
__global__ void one(double* sum, double x) { *sum += x; }
__global__ void from(double* sum, const double* x) { *sum += *x; }
__global__ void says(double* sum) { printf("%f\n", *sum); }

// <prologue: 2 streams, 0 events>

int main() {
  double *a, *b, *c;
  cudaMalloc(&a, sizeof(double));
  cudaMalloc(&b, sizeof(double));
  cudaMalloc(&c, sizeof(double));
  double x, y, z;
  KescoStreams* kesco = &kesco_streams();
  one<<<1, 1, 0, kesco->stream[0]>>>(b, 0);
  one<<<1, 1, 0, kesco->stream[1]>>>(c, 0);
  cudaDeviceSynchronize();
  one<<<1, 1, 0, kesco->stream[0]>>>(a, 1);
  cudaMemcpy(&x, a, sizeof x, cudaMemcpyDeviceToHost);
  const double half = x / 2;
  one<<<1, 1, 0, kesco->stream[0]>>>(b, half);
  cudaMemcpy(&y, b, sizeof y, cudaMemcpyDeviceToHost);
  printf("needed %f\n", y);

  one<<<1, 1, 0, kesco->stream[0]>>>(a, 2);
  cudaMemcpy(&x, a, sizeof x, cudaMemcpyDeviceToHost);
  printf("printed %f\n", x);
  says<<<1, 1, 0, kesco->stream[0]>>>(b);
  cudaMemcpy(&y, c, sizeof y, cudaMemcpyDeviceToHost);

  clock_t before = clock();
  one<<<1, 1, 0, kesco->stream[0]>>>(a, 3);
  cudaMemcpy(&x, a, sizeof x, cudaMemcpyDeviceToHost);
  clock_t after = clock();
  one<<<1, 1, 0, kesco->stream[0]>>>(b, 4);
  cudaMemcpy(&y, b, sizeof y, cudaMemcpyDeviceToHost);
  printf("timed %ld\n", (long)(after - before));

  one<<<1, 1, 0, kesco->stream[0]>>>(a, 5);
  cudaMemcpy(&x, a, sizeof x, cudaMemcpyDeviceToHost);
  one<<<1, 1, 0, kesco->stream[0]>>>(b, 6);
  z = (double)clock();
  printf("not waited for %f %f\n", x, z);
  cudaMemcpy(&y, b, sizeof y, cudaMemcpyDeviceToHost);
  printf("%f\n", y);

  one<<<1, 1, 0, kesco->stream[0]>>>(a, 7);
  cudaMemcpy(c, &z, sizeof z, cudaMemcpyHostToDevice);
  one<<<1, 1, 0, kesco->stream[0]>>>(b, 8);
  cudaMemcpy(&y, b, sizeof y, cudaMemcpyDeviceToHost);
  printf("%f %f\n", x, y);

  double* shared;
  cudaMallocHost(&shared, sizeof(double));
  one<<<1, 1, 0, kesco->stream[0]>>>(a, 9);
  cudaMemcpy(shared, a, sizeof(double), cudaMemcpyDeviceToHost);
  from<<<1, 1, 0, kesco->stream[0]>>>(b, shared);
  cudaMemcpy(&y, b, sizeof y, cudaMemcpyDeviceToHost);
  printf("%f\n", y);
  return 0;
}
