// A temporary object is told where to store, call by call. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Bind { float** x = nullptr; float* v = nullptr; Bind& to(float** p) { x = p; return *this; } Bind& value(float* q) { v = q; return *this; } ~Bind() { if (x) *x = v; } };
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  Bind().to(&a).value(b);
  k1<<<1, 1>>>(a);
  k2<<<1, 1>>>(b);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
