// The same shapes, in which turns must stay in order: what a function does, or the loop around it, would show the
// difference, or the wait behind the loop would mean something else than the checks in the function.
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void scale(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] * 2.f + 1.f;
}

__global__ void add(const float* in, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] += in[i];
}

cudaError_t error;

#define CHECK(call)                                        \
  do {                                                     \
    error = call;                                          \
    if (error != cudaSuccess) exit(1);                     \
  } while (0)

void check(cudaError_t status) {
  if (status != cudaSuccess) exit(1);
}

int checks;

void counted(cudaError_t status) {
  ++checks;
  if (status != cudaSuccess) exit(1);
}

// What it counts has nothing to do with errors.
void told(cudaError_t status, int line) {
  if (line != 0) ++checks;
  if (status != cudaSuccess) exit(1);
}

// Nor has this one, which has a name like CUDA's own.
void cudaChecked(cudaError_t status) {
  ++checks;
  if (status != cudaSuccess) exit(1);
}

__global__ void stamp(const float* in, float* out, unsigned long long where, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i] + (float)where;
}

float first;

// The host looks at what comes home.
void with_a_look(float* in, float* out, const float* from, float* to, int n) {
  check(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(in, out, n);
  check(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
  first += to[0];
}

// What went up is changed.
void with_a_change(float* in, float* out, float* from, float* to, int n) {
  check(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  from[0] = 0.f;
  scale<<<(n + 255) / 256, 256>>>(in, out, n);
  check(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

// The variable that the check names is another one in the caller.
void with_a_name(float* in, float* out, const float* from, float* to, int n) {
  CHECK(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(in, out, n);
  CHECK(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

// One check more would be counted.
void with_a_count(float* in, float* out, const float* from, float* to, int n) {
  counted(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(in, out, n);
  counted(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

// Each turn adds to what the one before has left.
void with_a_sum(float* in, float* out, const float* from, float* to, int n) {
  check(cudaMemcpy(in, from, n * sizeof(float), cudaMemcpyHostToDevice));
  add<<<(n + 255) / 256, 256>>>(in, out, n);
  check(cudaMemcpy(to, out, n * sizeof(float), cudaMemcpyDeviceToHost));
}

// The wrapper launches for a part that each turn moves on.
void launch_at(const float* in, float* out, int at, int n) { scale<<<(n + 255) / 256, 256>>>(in, out + at, n); }

int kept;

// So does this one, by a variable of the file.
void launch_kept(const float* in, float* out, int n) { scale<<<(n + 255) / 256, 256>>>(in, out + kept, n); }

float* last;

// The memory that it takes is not given back there.
void with_memory_left(const float* from, float* to, int n) {
  float* at;
  check(cudaMalloc(&at, n * sizeof(float)));
  check(cudaMemcpy(at, from, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(at, at, n);
  check(cudaMemcpy(to, at, n * sizeof(float), cudaMemcpyDeviceToHost));
  if (last != nullptr) check(cudaFree(last));
  last = at;
}

// Where it is the host may see.
void with_memory_shown(const float* from, float* to, int n) {
  float* at;
  check(cudaMalloc(&at, n * sizeof(float)));
  check(cudaMemcpy(at, from, n * sizeof(float), cudaMemcpyHostToDevice));
  scale<<<(n + 255) / 256, 256>>>(at, at, n);
  check(cudaMemcpy(to, at, n * sizeof(float), cudaMemcpyDeviceToHost));
  last = at;
  check(cudaFree(at));
}

void batches_with_memory(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  for (int b = 0; b < batches; ++b) with_memory_left(&from[(size_t)b * n], &to[(size_t)b * n], n);
  for (int b = 0; b < batches; ++b) with_memory_shown(&from[(size_t)b * n], &to[(size_t)b * n], n);
  printf("%p\n", last);
}

void batches_with_a_look(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    with_a_look(in, out, &from[(size_t)b * n], &to[(size_t)b * n], n);
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_with_a_change(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    with_a_change(in, out, &from[(size_t)b * n], &to[(size_t)b * n], n);
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_with_a_name(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  cudaError_t error = cudaErrorUnknown;
  for (int b = 0; b < batches; ++b) {
    with_a_name(in, out, &from[(size_t)b * n], &to[(size_t)b * n], n);
  }
  printf("%d\n", error);
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_with_a_count(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    with_a_count(in, out, &from[(size_t)b * n], &to[(size_t)b * n], n);
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_with_a_sum(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    with_a_sum(in, out, &from[(size_t)b * n], &to[(size_t)b * n], n);
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_at(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, 2 * n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    check(cudaMemcpy(in, &from[(size_t)b * n], n * sizeof(float), cudaMemcpyHostToDevice));
    launch_at(in, out, b % 2 * n, n);
    check(cudaMemcpy(&to[(size_t)b * n], out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_kept(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, 2 * n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    kept = b % 2 * n;
    check(cudaMemcpy(in, &from[(size_t)b * n], n * sizeof(float), cudaMemcpyHostToDevice));
    launch_kept(in, out, n);
    check(cudaMemcpy(&to[(size_t)b * n], out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void launch_stamp(const float* in, float* out, int n) {
  stamp<<<(n + 255) / 256, 256>>>(in, out, (unsigned long long)in, n);
}

void batches_that_show_where(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    check(cudaMemcpy(in, &from[(size_t)b * n], n * sizeof(float), cudaMemcpyHostToDevice));
    launch_stamp(in, out, n);
    check(cudaMemcpy(&to[(size_t)b * n], out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void launch_plain(const float* in, float* out, int n) { scale<<<(n + 255) / 256, 256>>>(in, out, n); }

void batches_of_a_size_by_where(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  size_t end = (size_t)(out + n);
  for (int b = 0; b < batches; ++b) {
    check(cudaMemcpy(in, &from[(size_t)b * n], n * sizeof(float), cudaMemcpyHostToDevice));
    launch_plain(in, out, n);
    check(cudaMemcpy(&to[(size_t)b * n], out, end - (size_t)out, cudaMemcpyDeviceToHost));
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_that_tell(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    told(cudaMemcpy(in, &from[(size_t)b * n], n * sizeof(float), cudaMemcpyHostToDevice), __LINE__);
    launch_plain(in, out, n);
    told(cudaMemcpy(&to[(size_t)b * n], out, n * sizeof(float), cudaMemcpyDeviceToHost), __LINE__);
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

void batches_that_seem_of_cuda(std::vector<float>& from, std::vector<float>& to, int batches, int n) {
  float *in, *out;
  check(cudaMalloc(&in, n * sizeof(float)));
  check(cudaMalloc(&out, n * sizeof(float)));
  for (int b = 0; b < batches; ++b) {
    cudaChecked(cudaMemcpy(in, &from[(size_t)b * n], n * sizeof(float), cudaMemcpyHostToDevice));
    launch_plain(in, out, n);
    cudaChecked(cudaMemcpy(&to[(size_t)b * n], out, n * sizeof(float), cudaMemcpyDeviceToHost));
  }
  check(cudaFree(in));
  check(cudaFree(out));
}

int main(int argc, char** argv) {
  int batches = atoi(argv[1]), n = atoi(argv[2]);
  std::vector<float> from((size_t)batches * n, 1.f), to(from.size());
  batches_with_memory(from, to, batches, n);
  batches_with_a_look(from, to, batches, n);
  batches_with_a_change(from, to, batches, n);
  batches_with_a_name(from, to, batches, n);
  batches_with_a_count(from, to, batches, n);
  batches_with_a_sum(from, to, batches, n);
  batches_at(from, to, batches, n);
  batches_kept(from, to, batches, n);
  batches_that_show_where(from, to, batches, n);
  batches_of_a_size_by_where(from, to, batches, n);
  batches_that_tell(from, to, batches, n);
  batches_that_seem_of_cuda(from, to, batches, n);
  printf("%f %f %d\n", first, to[0], checks);
}
