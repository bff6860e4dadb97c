// Two views of one buffer: the copy constructor of a class template shares it. Ordered: k1, k2
__global__ void k1(float* q) { q[threadIdx.x] += 1; }
__global__ void k2(float* q) { q[threadIdx.x] *= 2; }
__global__ void k3(float* q) { q[threadIdx.x] *= 2; }
template <typename T>
class Shared {
  T* p_ = nullptr;
  bool owner_ = false;

 public:
  explicit Shared(int n) : owner_(true) { cudaMalloc(&p_, n * sizeof(T)); }
  Shared(const Shared& other) : p_(other.p_) {}
  ~Shared() {
    if (owner_) cudaFree(p_);
  }
  T* get() const { return p_; }
};
int main() {
  Shared<float> a(32), c(32);
  Shared<float> b(a);
  k1<<<1, 32>>>(a.get());
  k2<<<1, 32>>>(b.get());
  k3<<<1, 32>>>(c.get());
  cudaDeviceSynchronize();
}
