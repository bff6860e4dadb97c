// Pairs of launches on two streams, chosen by the first argument. `same_…`: both write the same bytes, whatever else
// they are given. `part_…`: what they are given beside the pointer decides where they write, or whether.
#include <cstring>

struct View {
  float *data;
  int offset;
  float value;
};
__device__ float table[1024];

__global__ void store(float *d, int n, float value) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) d[i] = value;
}
__global__ void scaled(float *d, const float *x, float factor, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) d[i] += factor * x[i];
}
__global__ void repeated(float *d, int times) {
  float value = 1;
  for (int i = 0; i < times; ++i) value = value * value + threadIdx.x;
  d[threadIdx.x] = value;
}
__global__ void two(float *d, float *e, int offset) {
  d[threadIdx.x] = 1;
  e[offset + threadIdx.x] = 1;
}
__global__ void view(View v) { v.data[v.offset + threadIdx.x] = v.value; }
__global__ void symbol(int offset, float value) { table[offset + threadIdx.x] = value; }
__global__ void added(int *d, int by) { atomicAdd(d + threadIdx.x, by); }
__global__ void guarded(float *d, int part, float value) {
  if (int(threadIdx.x % 2) == part) d[threadIdx.x] = value;
}
__global__ void left_early(float *d, int part) {
  if (int(threadIdx.x % 2) != part) return;
  d[threadIdx.x] = 1;
}
__global__ void trapped(float *d, int part) {
  if (int(threadIdx.x % 2) != part) asm volatile("exit;");
  d[threadIdx.x] = 1;
}
__global__ void chosen(float *d, int part) {
  float *at = d;
  if (part) {
    __nanosleep(100);
    at += 512;
  }
  at[threadIdx.x] = 1;
}
__global__ void switched(float *d, char part) {
  switch (part) {
    case 'a': d[threadIdx.x] = 1; break;
    case 'b': d[threadIdx.x + 700] = 2; break;
    default: d[threadIdx.x + 300] = 3;
  }
}
__global__ void counted(float *d, int first, int last) {
  for (int i = first; i < last; ++i) d[i ^ 1] = 1;
}
__global__ void compared(int *d, int expected, int value) { atomicCAS(d + threadIdx.x, expected, value); }
__global__ void indexed(float *d, const int *index) { d[index[threadIdx.x]] = 1; }
__global__ void ended(float *begin, float *d) { d[256 - (d - begin) + threadIdx.x] = 1; }
__global__ void through_shared(float *d, int part) {
  __shared__ int offset[2];
  if (threadIdx.x < 2) offset[threadIdx.x] = 512 * part;
  __syncthreads();
  d[offset[threadIdx.x % 2] + threadIdx.x] = 1;
}
__global__ void through_stack(float *d, int part, int which) {
  int offsets[4] = {0, 100, 200, 300 * part};
  d[offsets[which % 4] + threadIdx.x] = 1;
}
__noinline__ __device__ void put(float *d, int at, float value) { d[at] = value; }
__noinline__ __device__ bool mine(int part) { return int(threadIdx.x % 2) == part; }
__noinline__ __device__ void stop_others(int part) {
  if (int(threadIdx.x % 2) != part) asm volatile("exit;");
}
__global__ void called(float *d, int part, float value) { put(d, 512 * part + threadIdx.x, value); }
__global__ void asked(float *d, int part) {
  if (mine(part)) put(d, threadIdx.x, 1);
}
__global__ void stopped(float *d, int part) {
  stop_others(part);
  d[threadIdx.x] = 1;
}
__global__ void of_a_table(float *const *parts, int part, float value) { parts[part][threadIdx.x] = value; }
__global__ void of_a_structure(View v, int at) {
  int offsets[2] = {v.offset, 0};
  v.data[offsets[at] + threadIdx.x] = 1;
}

int main(int, char **argv) {
  float *d, *e, *x, *pair[2], **parts;
  int *n, *m;
  cudaMalloc(&d, 4096);
  cudaMalloc(&e, 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&n, 4096);
  cudaMalloc(&m, 4096);
  cudaMalloc(&pair[0], 4096);
  cudaMalloc(&pair[1], 4096);
  cudaMalloc(&parts, sizeof(pair));
  cudaMemcpy(parts, pair, sizeof(pair), cudaMemcpyHostToDevice);
  cudaStream_t s, t;
  cudaStreamCreate(&s);
  cudaStreamCreate(&t);
#define BOTH(name, kernel, first, second)        \
  if (!std::strcmp(argv[1], #name)) {            \
    kernel<<<1, 256, 0, s>>> first;              \
    kernel<<<1, 256, 0, t>>> second;             \
  }
  BOTH(same_value, store, (d, 256, 1), (d, 256, 2));
  BOTH(same_factor, scaled, (d, x, 1, 256), (d, x, 2, 256));
  BOTH(same_source, scaled, (d, x, 1, 256), (d, e, 2, 256));
  BOTH(same_times, repeated, (d, 3), (d, 4));
  BOTH(same_of_two, two, (d, e, 0), (d, x, 512));
  BOTH(same_of_a_view, view, (View{d, 5, 1}), (View{d, 5, 2}));
  BOTH(same_of_a_symbol, symbol, (5, 1), (5, 2));
  BOTH(same_atomic, added, (n, 1), (n, 2));
  BOTH(same_when_called, called, (d, 1, 1), (d, 1, 2));
  BOTH(same_of_a_table, of_a_table, (parts, 1, 1), (parts, 1, 2));
  BOTH(part_by_a_condition, guarded, (d, 0, 1), (d, 1, 1));
  BOTH(part_by_leaving, left_early, (d, 0), (d, 1));
  BOTH(part_by_exit, trapped, (d, 0), (d, 1));
  BOTH(part_by_a_choice, chosen, (d, 0), (d, 1));
  BOTH(part_by_a_switch, switched, (d, 'a'), (d, 'b'));
  BOTH(part_by_a_loop, counted, (d, 0, 9), (d, 9, 18));
  BOTH(part_by_a_comparison, compared, (n, 0, 1), (n, 1, 2));
  BOTH(part_by_an_index, indexed, (d, n), (d, m));
  BOTH(part_by_a_pointer, ended, (d, d + 256), (d + 128, d + 256));
  BOTH(part_through_shared_memory, through_shared, (d, 0), (d, 1));
  BOTH(part_through_the_stack, through_stack, (d, 0, 3), (d, 1, 3));
  BOTH(part_of_a_view, view, (View{d, 0, 1}), (View{d, 256, 1}));
  BOTH(part_of_a_structure, of_a_structure, (View{d, 0, 1}, 0), (View{d, 256, 1}, 0));
  BOTH(part_of_a_symbol, symbol, (0, 1), (256, 1));
  BOTH(part_when_called, called, (d, 0, 1), (d, 1, 1));
  BOTH(part_when_asked, asked, (d, 0), (d, 1));
  BOTH(part_when_stopped, stopped, (d, 0), (d, 1));
  BOTH(part_of_a_table, of_a_table, (parts, 0, 1), (parts, 1, 1));
  if (!std::strcmp(argv[1], "same_part_again")) {
    called<<<1, 256, 0, s>>>(d, 0, 1);
    called<<<1, 256, 0, s>>>(d, 1, 1);
    called<<<1, 256, 0, t>>>(d, 0, 2);
  }
  cudaDeviceSynchronize();
}
