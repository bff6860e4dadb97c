// Each function is a case: "@x" names the allocation of a line, "= x y" says what a launch's pointers may be, ? for
// anything. No function here is called by another file's main, as far as is known: all may be, with any arguments.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <future>
#include <list>
#include <map>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

struct Pair {
  float *x;
  int n;
  float *y;
};
__global__ void k(float *p) { p[0] = 1; }
__global__ void both(Pair p) { p.x[0] = p.y[0]; }
__global__ void follow(Pair *p) { p->x[0] = 1; }
__device__ float *on_device;

void unseen();
void unseen(float **p);
float **anything();
typedef void (*Changes)(float **);
Changes any_function();
int number();


void plain() {
  float *a;
  cudaMalloc(&a, 8);  // @a
  k<<<1, 1>>>(a);  // = a
}
void strong() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @b1
  cudaMalloc(&b, 8);  // @b2
  float *p = a;
  float **q = &p;
  *q = b;
  k<<<1, 1>>>(p);  // = b2
}
void branch() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @c1
  cudaMalloc(&b, 8);  // @c2
  k<<<1, 1>>>(number() ? a : b);  // = c1 c2
}
void vector_elements() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @d1
  cudaMalloc(&b, 8);  // @d2
  std::vector<float *> v;
  v.push_back(a);
  v.push_back(b);
  k<<<1, 1>>>(v[0]);  // = d1
  k<<<1, 1>>>(v[1]);  // = d2
  for (float *one : v) k<<<1, 1>>>(one);  // = d1 d2
}
void vector_of_unknown_size() {
  std::vector<float *> v;
  for (int i = 0; i < number(); i++) {
    float *a;
    cudaMalloc(&a, 8);  // @e
    v.push_back(a);
  }
  k<<<1, 1>>>(v[3]);  // = e
}
void trips() {
  float *d[4], *e;
  cudaMalloc(&e, 8);  // @f2
  for (int i = 0; i < 4; i++) cudaMalloc(&d[i], 8);  // @f1
  d[1] = e;
  k<<<1, 1>>>(d[1]);  // = f2
  k<<<1, 1>>>(d[2]);  // = f1
}
void unknown_index() {
  Pair s[8];
  float *a, *b;
  cudaMalloc(&a, 8);  // @g1
  cudaMalloc(&b, 8);  // @g2
  for (int i = 0; i < number(); i++) {
    s[number()].x = a;
    s[number()].y = b;
  }
  k<<<1, 1>>>(s[number()].x);  // = g1
  k<<<1, 1>>>(s[number()].y);  // = g2
}
void in_turns() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @h1
  cudaMalloc(&b, 8);  // @h2
  while (number()) {
    k<<<1, 1>>>(a);  // = h1 h2
    float *t = a;
    a = b;
    b = t;
  }
}
void given(float *p) {
  k<<<1, 1>>>(p);  // = ?
}
void known_outside() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @i1
  cudaMalloc(&b, 8);  // @i2
  unseen(&a);
  k<<<1, 1>>>(a);  // = ?
  k<<<1, 1>>>(b);  // = i2
}
void kept_outside() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @j1
  cudaMalloc(&b, 8);  // @j2
  float *p = a;
  unseen(&p);
  p = b;
  unseen();
  k<<<1, 1>>>(p);  // = ?
}
void stored_anywhere() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @l1
  cudaMalloc(&b, 8);  // @l2
  float *p = a, *own = a;
  unsigned char *bytes = (unsigned char *)&p;
  float **w = *(float ***)anything();
  *(unsigned char **)w = bytes;
  **(float ***)w = b;
  k<<<1, 1>>>(p);    // = ?
  k<<<1, 1>>>(own);  // = l1
}
void called_anywhere() {
  float *a;
  cudaMalloc(&a, 8);  // @m
  float *own = a;
  any_function()(&a);
  k<<<1, 1>>>(a);    // = ?
  k<<<1, 1>>>(own);  // = m
}
static void again(int n, float *p, float *q) {
  k<<<1, 1>>>(p);  // = n1 n2
  if (n) again(n - 1, q, p);
}
void recursion() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @n1
  cudaMalloc(&b, 8);  // @n2
  again(number(), a, b);
}
static float *latest(int n, float *p, float *q) { return n ? latest(n - 1, q, p) : p; }
void result_of_recursion() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @o1
  cudaMalloc(&b, 8);  // @o2
  k<<<1, 1>>>(latest(number(), a, b));  // = o1 o2
}
void gotos() {
  float *a, *b, *p;
  cudaMalloc(&a, 8);  // @p1
  cudaMalloc(&b, 8);  // @p2
  p = a;
  if (number()) goto second;
  k<<<1, 1>>>(p);  // = p1
  goto end;
second:
  p = b;
end:
  k<<<1, 1>>>(p);  // = p1 p2
  switch (number()) {
    case 1:
      p = a;
      break;
    case 2:
      p = b;
      [[fallthrough]];
    default:
      k<<<1, 1>>>(p);  // = p1 p2
      return;
  }
  k<<<1, 1>>>(p);  // = p1
}
static void may_throw(float **p, float *b) {
  *p = b;
  if (number()) throw std::runtime_error("no");
  *p = nullptr;
}
void exceptions() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @q1
  cudaMalloc(&b, 8);  // @q2
  float *p = a;
  try {
    may_throw(&p, b);
  } catch (const std::exception &) {
    k<<<1, 1>>>(p);  // = q2
  }
}
struct Base {
  virtual ~Base() {}
  virtual float *get() = 0;
};
struct One : Base {
  float *p;
  float *get() override { return p; }
};
void virtual_calls() {
  float *a;
  cudaMalloc(&a, 8);  // @r
  std::unique_ptr<Base> base;
  auto *one = new One;
  one->p = a;
  base.reset(one);
  k<<<1, 1>>>(base->get());  // = r
}
static void launch_first(float *p, float *q) { k<<<1, 1>>>(p); }   // = s1
static void launch_second(float *p, float *q) { k<<<1, 1>>>(q); }  // = s2
static void (*const table[])(float *, float *) = {launch_first, launch_second};
void tables() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @s1
  cudaMalloc(&b, 8);  // @s2
  table[number() & 1](a, b);
}
void functions() {
  float *a;
  cudaMalloc(&a, 8);  // @t
  std::function<float *()> f = [=] { return a; };
  k<<<1, 1>>>(f());  // = t
}
void by_pointer() {
  float *a;
  cudaMalloc(&a, 8);  // @u
  void (*kernel)(float *) = k;
  kernel<<<1, 1>>>(a);  // = u
  void *arguments[] = {&a};
  cudaLaunchKernel((const void *)k, dim3(1), dim3(1), arguments, 0, 0);  // = u
}
void by_value() {
  Pair p;
  cudaMalloc(&p.x, 8);  // @v1
  cudaMalloc(&p.y, 8);  // @v2
  both<<<1, 1>>>(p);  // = v1 v2
}
void managed() {
  Pair *m;
  float *a;
  cudaMallocManaged(&m, sizeof(Pair));  // @w1
  cudaMalloc(&a, 8);  // @w2
  m->x = a;
  k<<<1, 1>>>(m->x);  // = w2
  follow<<<1, 1>>>(m);  // = w1
  cudaDeviceSynchronize();
  k<<<1, 1>>>(m->x);  // = ?
}
void from_the_device() {
  float **d, *a, *h[2];
  cudaMalloc(&d, 16);  // @x1
  cudaMalloc(&a, 8);  // @x2
  h[0] = a;
  cudaMemcpy(d, h, 16, cudaMemcpyHostToDevice);
  k<<<1, 1>>>(h[0]);  // = x2
  cudaMemcpy(h, d, 16, cudaMemcpyDeviceToHost);
  k<<<1, 1>>>(h[0]);  // = ?
}
void calls_may_fail() {
  float *p, *old;
  cudaMalloc(&p, 8);  // @y1
  old = p;
  cudaMalloc(&p, 16);  // @y2
  k<<<1, 1>>>(p);  // = y1 y2
  cudaFree(old);
}
void freed_before() {
  float *p;
  cudaMalloc(&p, 8);  // @z1
  cudaFree(p);
  cudaMalloc(&p, 16);  // @z2
  k<<<1, 1>>>(p);  // = z2
}
void maps() {
  std::map<int, float *> m;
  std::list<float *> l;
  float *a, *b;
  cudaMalloc(&a, 8);  // @aa1
  cudaMalloc(&b, 8);  // @aa2
  m[3] = a;
  l.push_back(b);
  k<<<1, 1>>>(m[3]);  // = aa1
  k<<<1, 1>>>(l.front());  // = aa2
}
void threads() {
  float *a;
  cudaMalloc(&a, 8);  // @ab
  std::thread one([=] {
    k<<<1, 1>>>(a);  // = ?
  });
  one.join();
  auto two = std::async(std::launch::async, [=] {
    k<<<1, 1>>>(a);  // = ?
  });
  two.wait();
}
void through_a_file() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @aj1
  cudaMalloc(&b, 8);  // @aj2
  float *p = a, **of = &p, **again;
  FILE *file = fopen("x", "w+");
  fwrite(&of, sizeof of, 1, file);
  rewind(file);
  if (fread(&again, sizeof again, 1, file) != 1) return;
  *again = b;
  k<<<1, 1>>>(p);  // = ?
}
void address_byte_by_byte() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @ak1
  cudaMalloc(&b, 8);  // @ak2
  float *p = a, **of = &p, **again;
  for (unsigned i = 0; i < sizeof of; i++) ((char *)&again)[i] = ((char *)&of)[i];
  *again = b;
  k<<<1, 1>>>(p);  // = ?
}
void address_in_a_number() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @al1
  cudaMalloc(&b, 8);  // @al2
  float *p = a;
  int n = number();
  uintptr_t u = (uintptr_t)&p ^ n;
  *(float **)(u ^ n) = b;
  k<<<1, 1>>>(p);  // = ?
}
void distances() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @am1
  cudaMalloc(&b, 8);  // @am2
  ptrdiff_t d = (char *)b - (char *)a;
  k<<<1, 1>>>((float *)((char *)a + d));  // = ?
}
static void called_back(float *p) {
  k<<<1, 1>>>(p);  // = ?
}
void keep(void (*)(float *));
void callbacks() {
  float *a;
  cudaMalloc(&a, 8);  // @an
  called_back(a);
  keep(called_back);
}
void one_of_two() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @ao1
  cudaMalloc(&b, 8);  // @ao2
  float *p = a, *r = a;
  float **q = number() ? &p : &r;
  *q = b;
  k<<<1, 1>>>(p);  // = ao1 ao2
}
static int order(const void *, const void *) { return number(); }
void sorted() {
  float *v[2];
  cudaMalloc(&v[0], 8);  // @ac1
  cudaMalloc(&v[1], 8);  // @ac2
  qsort(v, 2, sizeof *v, order);
  k<<<1, 1>>>(v[0]);  // = ?
}
void as_integers() {
  float *a;
  cudaMalloc(&a, 64);  // @ad
  uintptr_t u = ((uintptr_t)a + 15) & ~(uintptr_t)15;
  k<<<1, 1>>>((float *)u);  // = ad
  uintptr_t v = (uintptr_t)a ^ number();
  k<<<1, 1>>>((float *)v);  // = ?
}
void byte_by_byte() {
  float *a, *p;
  cudaMalloc(&a, 64);  // @ae
  for (unsigned i = 0; i < sizeof a; i++) ((char *)&p)[i] = ((char *)&a)[i];
  k<<<1, 1>>>(p);  // = ?
}
void whole_structs() {
  Pair p, q;
  cudaMalloc(&p.x, 8);  // @af1
  cudaMalloc(&p.y, 8);  // @af2
  memcpy(&q, &p, sizeof p);
  Pair *r = (Pair *)malloc(2 * sizeof(Pair));
  r[1] = q;
  k<<<1, 1>>>(r[1].x);  // = af1
  k<<<1, 1>>>(r[1].y);  // = af2
}
static int never() { return 0; }
void not_reached() {
  float *a;
  cudaMalloc(&a, 8);  // @ag
  if (never()) k<<<1, 1>>>(a);  // = never
}
void through_assembly() {
  float *a;
  cudaMalloc(&a, 8);  // @ah
  asm volatile("" : "+r"(a));
  k<<<1, 1>>>(a);  // = ?
}
void to_a_symbol() {
  Pair *m;
  float *a;
  cudaMallocManaged(&m, sizeof(Pair));  // @ai1
  cudaMalloc(&a, 8);  // @ai2
  m->x = a;
  cudaMemcpyToSymbol(on_device, &m, sizeof m);
  k<<<1, 1>>>(a);  // = ai2
  k<<<1, 1>>>(m->x);  // = ?
}
void distance_to_what_is_not_known() {
  float *a, *b = *anything();
  cudaMalloc(&a, 8);  // @aj
  k<<<1, 1>>>((float *)((char *)a + ((char *)b - (char *)a)));  // = ?
}
void aligned() {
  float *a = (float *)malloc(8192);  // @ak
  k<<<1, 1>>>((float *)(((uintptr_t)a + 4095) & ~(uintptr_t)4095));  // = ak
}
void far_into() {
  float *a;
  cudaMalloc(&a, 1 << 20);  // @al
  k<<<1, 1>>>((float *)((uintptr_t)a + 4 * (unsigned)number()));  // = ?
}
void deep_inside() {
  float *p[6], *q;
  cudaMalloc(&p[0], 8);  // @am0
  cudaMalloc(&p[1], 8);  // @am1
  cudaMalloc(&p[2], 8);  // @am2
  cudaMalloc(&p[3], 8);  // @am3
  cudaMalloc(&p[4], 8);  // @am4
  cudaMalloc(&p[5], 8);  // @am5
  cudaMalloc(&q, 8);  // @amq
  while (number()) {
    while (number()) {
      while (number()) {
        while (number()) {
          while (number()) {
            k<<<1, 1>>>(q);  // = amq am0 am1 am2 am3 am4 am5
            q = p[0];
            p[0] = p[1];
          }
          p[1] = p[2];
          for (int i = 0; i < 2; i++) {
            k<<<1, 1>>>(p[i + 1]);  // = am2 am3 am4 am5
            p[2] = p[3];
            while (number()) p[3] = p[4];
          }
        }
        p[4] = p[5];
      }
    }
  }
  k<<<1, 1>>>(q);  // = amq am0 am1 am2 am3 am4 am5
}
void behind_null() {
  float *a, *b, **q = nullptr;
  cudaMalloc(&a, 8);  // @an1
  cudaMalloc(&b, 8);  // @an2
  float *p = a;
  if (number()) {
    *q = b;
    p = b;
  }
  k<<<1, 1>>>(p);  // = an1
  if (number()) p = b + (**q > 0);
  k<<<1, 1>>>(p);  // = an1
}
void below_zero() {
  float *a, *b;
  cudaMalloc(&a, 8);  // @ao1
  cudaMalloc(&b, 8);  // @ao2
  float *p = a;
  unsigned n = number();
  if (n < 0u) p = b;
  k<<<1, 1>>>(p);  // = ao1
  if (n >= 0u) p = b;
  k<<<1, 1>>>(p);  // = ao2
  if (n > 0u) p = a;
  k<<<1, 1>>>(p);  // = ao1 ao2
}
void grown_in_loops() {
  float *a;
  cudaMalloc(&a, 8);  // @ap
  std::vector<int> v;
  while (number()) {
    v.resize(number());
    for (int &one : v) one = 1;
    v.push_back(number());
  }
  k<<<1, 1>>>(a);  // = ap
}
