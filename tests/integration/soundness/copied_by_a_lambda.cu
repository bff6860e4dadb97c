// A lambda holds a copy of an object, made by its own constructor. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct S { float** x; float* v; S(float** p, float* q) : x(p), v(q) {} S(const S& o) : x(o.x), v(o.v) { *x = v; } };
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  float* cur = b; S s(&cur, a);
  auto l = [s] {}; (void)l;
  k1<<<1, 1>>>(cur);
  k2<<<1, 1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
