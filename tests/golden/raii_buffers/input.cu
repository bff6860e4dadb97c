// Buffers that free themselves: a class, and a class template that is moved and has default member initialisers.
__global__ void fill(float* out, int n, float by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = by;
}
__global__ void sum(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

class Buffer {
 public:
  explicit Buffer(int n) { cudaMalloc(&data_, n * sizeof(float)); }
  ~Buffer() { cudaFree(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  float* get() const { return data_; }

 private:
  float* data_;
};

template <typename T>
class Array {
 public:
  explicit Array(int n) : size_(n) { cudaMalloc(&data_, n * sizeof(T)); }
  Array(Array&& other) noexcept : data_(other.data_), size_(other.size_) { other.data_ = nullptr; }
  ~Array() {
    if (data_ != nullptr) cudaFree(data_);
  }
  T* data() { return data_; }
  const T* data() const { return data_; }
  int size() const { return size_; }

 private:
  T* data_ = nullptr;
  int size_ = 0;
};

int main() {
  Buffer a(1024), b(1024), both(1024);
  fill<<<4, 256>>>(a.get(), 1024, 1.0f);
  fill<<<4, 256>>>(b.get(), 1024, 2.0f);
  sum<<<4, 256>>>(a.get(), b.get(), both.get(), 1024);
  cudaDeviceSynchronize();
  {
    Array<float> c(1024), d(1024);
    fill<<<4, 256>>>(c.data(), c.size(), 3.0f);
    fill<<<4, 256>>>(d.data(), d.size(), 4.0f);
  }
  fill<<<4, 256>>>(a.get(), 1024, 5.0f);
  cudaDeviceSynchronize();
  return 0;
}
