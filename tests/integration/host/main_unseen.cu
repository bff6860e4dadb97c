// A program with code that is not seen: that may call what other files see, and so change what those change.
__global__ void k(float *p) { p[0] = 1; }
static float *changed, *untouched;
float *of_all, *set_elsewhere;
static float *set_before;
void elsewhere();
void change() { changed = nullptr; }
void set(float *p) { set_before = p; }
int main() {
  float *a, *b, *c;
  cudaMalloc(&a, 8);  // @a
  cudaMalloc(&b, 8);  // @b
  cudaMalloc(&c, 8);  // @c
  k<<<1, 1>>>(set_elsewhere);  // = ?
  k<<<1, 1>>>(set_before);     // = ?
  changed = a;
  untouched = b;
  of_all = c;
  k<<<1, 1>>>(changed);  // = a
  elsewhere();
  k<<<1, 1>>>(changed);  // = ?
  k<<<1, 1>>>(untouched);  // = b
  k<<<1, 1>>>(of_all);  // = ?
  return 0;
}
