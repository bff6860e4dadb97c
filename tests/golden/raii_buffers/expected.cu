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

// <prologue: 3 streams, 1 events>

int main() {
  Buffer a(1024), b(1024), both(1024);
  KescoStreams* kesco = &kesco_streams();
  fill<<<4, 256, 0, kesco->stream[0]>>>(a.get(), 1024, 1.0f);
  cudaEventRecord(kesco->done[0], kesco->stream[0]);  // kesco: sum waits for this
  fill<<<4, 256, 0, kesco->stream[1]>>>(b.get(), 1024, 2.0f);
  cudaStreamWaitEvent(kesco->stream[1], kesco->done[0], 0);  // kesco: wait for fill#1 (RAW on data_)
  sum<<<4, 256, 0, kesco->stream[1]>>>(a.get(), b.get(), both.get(), 1024);
  cudaDeviceSynchronize();
  {
    Array<float> c(1024), d(1024);
    fill<<<4, 256, 0, kesco->stream[0]>>>(c.data(), c.size(), 3.0f);
    fill<<<4, 256, 0, kesco->stream[1]>>>(d.data(), d.size(), 4.0f);
    cudaEventRecord(kesco->tail[0], kesco->stream[0]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);  // kesco: cudaFree sees all of this as done on the default stream
    cudaEventRecord(kesco->tail[1], kesco->stream[1]);
    cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[1], 0);  // kesco: cudaFree sees all of this as done on the default stream
  }
  fill<<<4, 256, 0, kesco->stream[2]>>>(a.get(), 1024, 5.0f);
  cudaDeviceSynchronize();
  return 0;
}
