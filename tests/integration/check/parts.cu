// Pairs of launches on two streams, chosen by the first argument. `same_…`: there is a byte that both write, whatever
// else they are given. `apart_…`: what they are given decides where they write, and there is no such byte. `perhaps_…`:
// memory decides, or nobody can say.
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
struct Particle {
  float x, y, z;
};
struct Several {
  float *parts[4];
};
__global__ void component(float *d, int k, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) d[3 * i + k] = i;
}
__global__ void strided(float *d, int first, int step, int n) {
  for (int i = first + step * threadIdx.x; i < n; i += step * blockDim.x) d[i] = i;
}
__global__ void set_x(Particle *p, int n) {
  int i = threadIdx.x;
  if (i < n) p[i].x = i;
}
__global__ void set_z(Particle *p, int n) {
  for (int i = threadIdx.x; i < n; i += blockDim.x) p[i].z = i;
}
__global__ void tile(float *d, int pitch, int x0, int y0, int w, int h) {
  int x = threadIdx.x % 16, y = threadIdx.x / 16;
  if (x < w && y < h) d[(y0 + y) * pitch + x0 + x] = 1;
}
__global__ void red_black(float *d, int n, int color) {
  int x = threadIdx.x % 32, y = threadIdx.x / 32;
  if (x < n && y < n && (x + y) % 2 == color) d[y * n + x] += 1;
}
__global__ void swapped(float *d, int bit) {
  int i = threadIdx.x, other = i ^ bit;
  if (other > i) d[i] = d[other];
}
__global__ void sums(const int *first, const int *column, const float *x, float *y, int row, int rows) {
  int i = threadIdx.x;
  if (i >= rows) return;
  float sum = 0;
  for (int k = first[i]; k < first[i + 1]; ++k) sum += x[column[k]];
  y[row + i] = sum;
}
__global__ void searched(const float *x, int n, float *y, int at) {
  int found = -1;
  for (int i = 0; i < n; ++i)
    if (x[i] > threadIdx.x) {
      found = i;
      break;
    }
  y[at + threadIdx.x] = found;
}
__global__ void masked(const int *mask, float *d) {
  if (mask[threadIdx.x]) d[threadIdx.x] = 1;
}
__global__ void histogram(const int *x, int *counts) { atomicAdd(counts + x[threadIdx.x], 1); }
__global__ void one_of(Several s, int k, float value) { s.parts[k][threadIdx.x] = value; }
__global__ void copied(Particle *to, const Particle *from, int at) { to[at + threadIdx.x] = from[threadIdx.x]; }
__global__ void vectors(float4 *d, int at) { d[at + threadIdx.x] = make_float4(1, 2, 3, 4); }
__global__ void checked(const int *x, float *d, int at) {
  if (x[threadIdx.x] < 0) __trap();
  d[at + threadIdx.x] = 1;
}
__global__ void matrix(const float *a, float *c, int n, int row) {
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[k] * a[n - 1 - k];
  for (int k = 0; k < n; ++k) c[(row + threadIdx.x % 2) * n + k] = sum;
}

int main(int, char **argv) {
  float *d, *e, *x, *huge, *pair[2], **parts;
  int *n, *m;
  cudaMalloc(&d, 12288);
  cudaMalloc(&e, 4096);
  cudaMalloc(&x, 4096);
  cudaMalloc(&huge, 3 * 2048 * 256 * sizeof(float));
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
  BOTH(apart_by_a_condition, guarded, (d, 0, 1), (d, 1, 1));
  BOTH(apart_by_leaving, left_early, (d, 0), (d, 1));
  BOTH(perhaps_by_exit, trapped, (d, 0), (d, 1));
  BOTH(apart_by_a_choice, chosen, (d, 0), (d, 1));
  BOTH(apart_by_a_switch, switched, (d, 'a'), (d, 'b'));
  BOTH(apart_by_a_loop, counted, (d, 0, 9), (d, 9, 18));
  BOTH(perhaps_by_a_comparison, compared, (n, 0, 1), (n, 1, 2));
  BOTH(perhaps_by_an_index, indexed, (d, n), (d, m));
  BOTH(same_by_a_pointer, ended, (d, d + 256), (d + 128, d + 256));
  BOTH(perhaps_through_shared_memory, through_shared, (d, 0), (d, 1));
  BOTH(perhaps_through_the_stack, through_stack, (d, 0, 3), (d, 1, 3));
  BOTH(apart_of_a_view, view, (View{d, 0, 1}), (View{d, 256, 1}));
  BOTH(perhaps_of_a_structure, of_a_structure, (View{d, 0, 1}, 0), (View{d, 256, 1}, 0));
  BOTH(apart_of_a_symbol, symbol, (0, 1), (256, 1));
  BOTH(apart_when_called, called, (d, 0, 1), (d, 1, 1));
  BOTH(apart_when_asked, asked, (d, 0), (d, 1));
  BOTH(perhaps_when_stopped, stopped, (d, 0), (d, 1));
  BOTH(perhaps_of_a_table, of_a_table, (parts, 0, 1), (parts, 1, 1));
  BOTH(apart_components, component, (d, 0, 256), (d, 2, 256));
  BOTH(same_components, component, (d, 0, 256), (d, 3, 256));
  BOTH(apart_evens_and_odds, strided, (d, 0, 2, 1000), (d, 1, 2, 1000));
  BOTH(same_step_and_another, strided, (d, 0, 2, 1000), (d, 1, 3, 1000));
  BOTH(apart_tiles, tile, (d, 32, 0, 0, 16, 16), (d, 32, 16, 0, 16, 16));
  BOTH(same_tiles, tile, (d, 32, 0, 0, 16, 16), (d, 32, 15, 0, 16, 16));
  BOTH(apart_rows_of_tiles, tile, (d, 32, 0, 0, 16, 8), (d, 32, 0, 8, 16, 8));
  BOTH(same_row_of_tiles, tile, (d, 32, 0, 0, 16, 9), (d, 32, 0, 8, 16, 8));
  BOTH(apart_by_color, red_black, (d, 16, 0), (d, 16, 1));
  BOTH(same_color, red_black, (d, 16, 1), (d, 15, 1));
  BOTH(same_pairs, swapped, (d, 1), (d, 2));
  BOTH(apart_sums_of_rows, sums, (n, m, x, d, 0, 128), (n, m, x, d, 128, 128));
  BOTH(same_sums_of_rows, sums, (n, m, x, d, 0, 129), (n, m, x, d, 128, 128));
  BOTH(apart_after_a_search, searched, (x, 5, d, 0), (x, 5, d, 256));
  BOTH(same_after_a_search, searched, (x, 5, d, 0), (x, 7, d, 255));
  BOTH(perhaps_by_a_mask, masked, (n, d), (m, d));
  BOTH(perhaps_in_a_histogram, histogram, (n, (int *)d), (m, (int *)d));
  BOTH(apart_pointers_by_number, one_of, ((Several{d, e, x, x}), 0, 1), ((Several{d, e, x, x}), 1, 1));
  BOTH(same_pointer_by_number, one_of, ((Several{d, e, x, x}), 0, 1), ((Several{e, d, x, x}), 1, 2));
  BOTH(apart_structures, copied, ((Particle *)d, (Particle *)x, 0), ((Particle *)d, (Particle *)x, 256));
  BOTH(same_structures, copied, ((Particle *)d, (Particle *)x, 0), ((Particle *)d, (Particle *)x, 255));
  BOTH(apart_vectors, vectors, ((float4 *)d, 0), ((float4 *)d, 256));
  BOTH(same_vectors, vectors, ((float4 *)d, 0), ((float4 *)(d + 2), 255));
  BOTH(apart_when_checked, checked, (n, d, 0), (n, d, 256));
  BOTH(perhaps_when_checked, checked, (n, d, 0), (n, d, 255));
  BOTH(apart_rows, matrix, (x, d, 100, 0), (x, d, 100, 2));
  BOTH(same_rows, matrix, (x, d, 100, 0), (x, d, 100, 1));
  if (!std::strcmp(argv[1], "apart_fields")) {
    set_x<<<1, 256, 0, s>>>((Particle *)d, 256);
    set_z<<<1, 64, 0, t>>>((Particle *)d, 256);
  }
  if (!std::strcmp(argv[1], "same_as_a_memset")) {
    histogram<<<1, 256, 0, s>>>(n, (int *)d);
    cudaMemsetAsync(d, 0, 12288, t);
  }
  if (!std::strcmp(argv[1], "perhaps_half_a_memset")) {
    histogram<<<1, 256, 0, s>>>(n, (int *)d);
    cudaMemsetAsync(d, 0, 2048, t);
  }
  if (!std::strcmp(argv[1], "apart_from_a_copy")) {
    set_x<<<1, 256, 0, s>>>((Particle *)d, 256);
    cudaMemset2DAsync((char *)d + 4, 12, 0, 8, 256, t);
  }
  if (!std::strcmp(argv[1], "same_as_a_copy")) {
    set_x<<<1, 256, 0, s>>>((Particle *)d, 256);
    cudaMemset2DAsync((char *)d + 3, 12, 0, 8, 256, t);
  }
  if (!std::strcmp(argv[1], "apart_in_large_grids")) {
    component<<<2048, 256, 0, s>>>(huge, 0, 2048 * 256);
    component<<<2048, 256, 0, t>>>(huge, 1, 2048 * 256);
  }
  if (!std::strcmp(argv[1], "same_part_again")) {
    called<<<1, 256, 0, s>>>(d, 0, 1);
    called<<<1, 256, 0, s>>>(d, 1, 1);
    called<<<1, 256, 0, t>>>(d, 0, 2);
  }
  cudaDeviceSynchronize();
}
