// A structured binding to a reference keeps a temporary object. Ordered: k1, k2
__global__ void k1(float* q) { q[0] += 1; }
__global__ void k2(float* q) { q[0] *= 2; }
__global__ void k4(float* q) { q[0] -= 1; }
struct Pool { float* slot[2]; int used; };
struct Lease {
  Pool& pool;
  float* p;
  explicit Lease(Pool& q) : pool(q), p(q.slot[q.used++]) {}
  Lease(const Lease&) = delete;
  ~Lease() { --pool.used; }
};
int main(int argc, char** argv) {
  float *a, *b, *z;
  cudaMalloc(&z, 256);
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  Pool pool{{a, b}, 0};
  { const auto& [o, p] = Lease(pool); k1<<<1, 1>>>(p); }
  { const auto& [o, p] = Lease(pool); k2<<<1, 1>>>(p); }
  k4<<<1, 1>>>(z);
  return cudaDeviceSynchronize();
}
