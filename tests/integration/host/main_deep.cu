// Calls that are nested too deeply to be followed: what they may change is not known, and no other file is needed.
__global__ void k(float *p) { p[0] = 1; }
static float *set_deeply, *kept, *other;
template <int n> static void deep() { deep<n - 1>(); }
template <> void deep<0>() { set_deeply = other; }
int main() {
  cudaMalloc(&set_deeply, 8);  // @a
  cudaMalloc(&other, 8);  // @b
  cudaMalloc(&kept, 8);  // @c
  deep<130>();
  k<<<1, 1>>>(set_deeply);  // = ?
  k<<<1, 1>>>(kept);  // = c
}
