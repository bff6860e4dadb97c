// A member's default value that comes out of a macro, as the member does. Ordered: k1, k2
#define FIELD(name, value) float* name = value
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
static float* kept;
struct S {
  FIELD(p, kept);
};
int main() {
  float *a, *z;
  cudaMalloc(&a, 256);
  cudaMalloc(&z, 256);
  kept = a;
  S s;
  k1<<<1, 1>>>(s.p);
  k2<<<1, 1>>>(a);
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
