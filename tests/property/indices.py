"""Random kernels that compute indices, as text that is a kernel to clang and, by other macros, C++ that notes accesses.

`draw(seed)` gives a body over ``x`` (the memory), the integers ``n u m z w h`` and the launch's dimensions. As a kernel
(`DEVICE`) it is what footprints are read from. On the host (`HOST`) its integers notice when signed arithmetic
overflows, so that runs without a meaning are left out.
"""

from __future__ import annotations

import random

TYPES = ("int", "int", "int", "unsigned", "long", "size_t", "short", "unsigned char", "signed char", "unsigned short")
WIDE = ("int", "int", "unsigned", "long", "size_t")
PARAMETERS = (("n", "int"), ("u", "unsigned"), ("m", "long"), ("z", "size_t"), ("w", "int"), ("h", "short"))
_LEAVES = ("threadIdx.x", "threadIdx.x", "blockIdx.x", "blockDim.x", "gridDim.x", "threadIdx.y", "blockIdx.y")
_NUMBERS = ("0", "1", "2", "3", "4", "7", "8", "16", "31", "32", "255", "-1", "1u", "64")

DEVICE = """\
#include <cstddef>
#define L(a) a
#define C(t, e) ((t)(e))
#define LEAST(t, a, b) min((t)(a), (t)(b))
#define G (blockIdx.x * blockDim.x + threadIdx.x)
#define BYTES(p) ((char*)(p))
#define DOUBLES(p) ((double*)(p))
#define TOUCH(p, i) (p)[i] = 1
#define DECLARE(t, v, e) t v = e
#define LOOP(t, v, s, c, i) for (t v = s; c; i)
#define TRIP
"""
HOST = r"""
#include <algorithm>
#include <climits>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <type_traits>
static bool wrong, any; static long low, high; static int trips;
template <class T> struct I { T v; I(T a = 0) : v(a) {} template <class U> I(I<U> o) : v((T)o.v) {}
  template <class U> I& operator+=(I<U> o); template <class U> I& operator-=(I<U> o); };
template <class T, class U> using R = decltype(T() + U());
#define SUM(op, f) template <class T, class U> I<R<T, U>> operator op(I<T> a, I<U> b) { using S = R<T, U>; S r; \
  if (f((S)a.v, (S)b.v, &r) && std::is_signed_v<S>) wrong = true; return I<S>(r); }
SUM(+, __builtin_add_overflow) SUM(-, __builtin_sub_overflow) SUM(*, __builtin_mul_overflow)
#define QUOTIENT(op) template <class T, class U> I<R<T, U>> operator op(I<T> a, I<U> b) { using S = R<T, U>; \
  S x = a.v, y = b.v; bool most = std::is_signed_v<S> && y == (S)-1 && x == std::numeric_limits<S>::min(); \
  if (y == 0 || most) { wrong = true; return I<S>(0); } return I<S>(x op y); }
QUOTIENT(/) QUOTIENT(%)
#define BITS(op) template <class T, class U> I<R<T, U>> operator op(I<T> a, I<U> b) { \
  return I<R<T, U>>((R<T, U>)a.v op (R<T, U>)b.v); }
BITS(&) BITS(|) BITS(^)
template <class T, class U> auto operator>>(I<T> a, I<U> b) { using S = decltype(+T()); return I<S>((S)a.v >> b.v); }
template <class T, class U> auto operator<<(I<T> a, I<U> b) { using S = decltype(+T()); S x = a.v;
  S r = (S)((std::make_unsigned_t<S>)x << b.v);
  if (std::is_signed_v<S> && (x < 0 || r < 0 || (r >> b.v) != x)) wrong = true;
  return I<S>(r); }
#define COMPARE(op) template <class T, class U> bool operator op(I<T> a, I<U> b) { \
  return (R<T, U>)a.v op (R<T, U>)b.v; }
COMPARE(<) COMPARE(<=) COMPARE(>) COMPARE(>=) COMPARE(==) COMPARE(!=)
template <class T> template <class U> I<T>& I<T>::operator+=(I<U> o) { return *this = I<T>(*this + o); }
template <class T> template <class U> I<T>& I<T>::operator-=(I<U> o) { return *this = I<T>(*this - o); }
template <int S> struct At { __int128 at = 0; };
template <int S, class T> At<S> operator+(At<S> p, I<T> i) { p.at += (__int128)i.v * S;
  if (p.at > ((__int128)1 << 47) || p.at < -((__int128)1 << 47)) wrong = true; return p; }
template <int S, class T> void touch(At<S> p, I<T> i) { long a = (long)(p + i).at; if (wrong) return;
  low = any ? std::min(low, a) : a; high = any ? std::max(high, a + S) : a + S; any = true; }
template <class T> I<T> L(T v) { return I<T>(v); }
#define C(t, e) (I<t>(e))
#define LEAST(t, a, b) I<t>(std::min(I<t>(a).v, I<t>(b).v))
#define G (blockIdx.x * blockDim.x + threadIdx.x)
#define BYTES(p) At<1>{(p).at}
#define DOUBLES(p) At<8>{(p).at}
#define TOUCH(p, i) touch(p, i)
#define DECLARE(t, v, e) I<t> v(e)
#define LOOP(t, v, s, c, i) for (I<t> v(s); c; i)
#define TRIP if (wrong || --trips < 0) { wrong = true; break; }
struct Shape { I<unsigned> x, y; };
static Shape threadIdx, blockIdx, blockDim, gridDim;
using Kernel = void (*)(At<4>, I<int>, I<unsigned>, I<long>, I<size_t>, I<int>, I<short>);
"""
MAIN = r"""
int main() {
  srand(1);
  const long odd[] = {0, 1, 2, 3, 5, 8, 16, 31, 33, 64, 100, 250, -1, -2, INT_MAX, INT_MIN, 1 << 20, 65536, -32768,
                      0x80000000L, 0xffffffffL, 1L << 32, (1L << 40) + 3, LONG_MAX, LONG_MIN};
  auto pick = [&] { return rand() % 10 < 6 ? odd[rand() % 13] : odd[rand() % (sizeof odd / sizeof *odd)]; };
  for (int k = 0; k < int(sizeof kernels / sizeof *kernels); ++k) for (int run = 0; run < 60; ++run) {
    int n = pick(), w = pick(); unsigned u = pick(); long m = pick(); size_t z = pick(); short h = pick();
    unsigned gx = rand() % 4 ? 1 + rand() % 4 : rand() % 2 ? 1u << 23 : 2147483647u, gy = 1 + rand() % 2;
    unsigned bx = rand() % 3 ? 1 + rand() % 8 : rand() % 2 ? 256 : 1024, by = bx > 512 ? 1 : 1 + rand() % 2;
    gridDim = {gx, gy}, blockDim = {bx, by}, wrong = any = false;
    for (int a = 0; a < (gx > 4 ? 4 : int(gx)); ++a) for (unsigned b = 0; b < gy; ++b)
      for (int c = 0; c < (bx > 8 ? 4 : int(bx)); ++c) for (unsigned d = 0; d < by; ++d) {
        blockIdx = {gx <= 4 || a < 2 ? unsigned(a) : a == 2 ? gx - 1 : unsigned(rand()) % gx, b};
        threadIdx = {bx <= 8 || c < 2 ? unsigned(c) : c == 2 ? bx - 1 : unsigned(rand()) % bx, d};
        trips = 300;
        kernels[k](At<4>{}, n, u, m, z, w, h);
      }
    if (!wrong && any)
      printf("%d %d %u %ld %zu %d %d %u %u %u %u %ld %ld\n", k, n, u, m, z, w, int(h), gx, gy, bx, by, low, high);
  }
}
"""


class Indices:
    """Draws one body."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.names = [name for name, _ in PARAMETERS]
        self.made = 0

    def body(self) -> str:
        first = self.random.random() < 0.6
        start = [self.declared("int", "G")] if first else []
        return " ".join([*start, *self.block(0, self.random.randint(1, 3)), self.access()])

    def declared(self, kind: str, value: str) -> str:
        self.made += 1
        self.names.append(f"v{self.made}")
        return f"DECLARE({kind}, v{self.made}, {value});"

    def leaf(self) -> str:
        drawn = self.random.random()
        if drawn < 0.3:
            return self.random.choice(_LEAVES)
        if drawn < 0.42:
            return "G"
        known = self.names[-5:] if self.random.random() < 0.6 else self.names
        return self.random.choice(known) if drawn < 0.8 else f"L({self.random.choice(_NUMBERS)})"

    def expression(self, depth: int = 0) -> str:
        drawn = self.random.random()
        if depth > 1 or drawn < 0.4:
            return self.leaf()
        if drawn >= 0.82:
            kind, inner = self.random.choice(TYPES), self.expression(depth + 1)
            if drawn < 0.92:
                return f"C({kind}, {inner})"
            return f"LEAST({self.random.choice(WIDE)}, {inner}, {self.expression(depth + 1)})"
        operator = self.random.choice("+++--**/%><&|^")
        right = self.expression(depth + 1)
        if operator in "/%":
            right = f"L({self.random.choice((1, 2, 3, 4, 8, 32, -2))})"
        elif operator in "<>":
            operator, right = operator * 2, f"L({self.random.choice((0, 1, 2, 3, 5, 31))})"
        elif operator in "&|^":
            right = f"L({self.random.choice((1, 3, 7, 31, 255, -4, -1))})"
        return f"({self.expression(depth + 1)} {operator} {right})"

    def condition(self) -> str:
        known, end = self.random.choice(self.names), self.random.choice(self.names)
        if self.random.random() < 0.3:
            return (
                f"({self.expression(1)} {self.random.choice(('<', '<=', '>', '>=', '!=', '=='))} {self.expression(1)})"
            )
        around = f"(({known} > L(0)) && ({known} < ({end} - L(1))))"
        return self.random.choice((f"({known} < {end})", f"({known} <= {end})", around, f"({end} > {known})"))

    def access(self) -> str:
        index = self.expression(1) if self.random.random() < 0.5 else self.random.choice(self.names)
        if self.random.random() < 0.2:
            index = self.element()
        base = self.random.choice(("x", "x", "x", "BYTES(x)", "DOUBLES(x)", f"(x + {self.leaf()})"))
        return f"TOUCH({base}, {index});"

    def element(self) -> str:
        """Of a matrix, or of one of several, with sizes and numbers that may be negative."""
        which, rows, columns = (self.random.choice(("n", "w", "n", "w", "h", "u", "m")) for _ in range(3))
        plane = f"({which} * {columns})" if self.random.random() < 0.5 else f"(({which} * {rows}) * {columns})"
        return f"(({plane} + ({self.leaf()} * {columns})) + {self.leaf()})"

    def block(self, depth: int, count: int) -> list[str]:
        found, known = [], list(self.names)
        for _ in range(count):
            drawn = self.random.random()
            if drawn < 0.32:
                found.append(self.declared(self.random.choice(TYPES), self.expression()))
            elif drawn < 0.5 or depth > 1:
                found.append(self.access())
            elif drawn < 0.66:
                inner = " ".join(self.block(depth + 1, self.random.randint(1, 2)))
                found.append(f"if ({self.condition()}) {{ {inner} {self.access()} }}")
            elif drawn < 0.74:
                found.append(f"if ({self.condition()}) return;")
            else:
                found.append(self.loop(depth))
        if depth:
            self.names = known
        return found

    def loop(self, depth: int) -> str:
        self.made += 1
        name, kind, up = f"i{self.made}", self.random.choice(WIDE), self.random.random() < 0.8
        step = self.random.choice(("L(1)", "L(1)", "L(2)", "blockDim.x", "(gridDim.x * blockDim.x)", "w"))
        if up:
            start, end = self.leaf(), self.random.choice(("n", "u", "m", "w", "L(32)", "(n - L(1))", "(n / L(2))"))
            head = f"{start}, ({name} {self.random.choice(('<', '<', '<=', '!='))} {end}), {name} += {step}"
        else:
            start, end = self.random.choice(("n", "(n - L(1))", "L(31)", "w")), self.random.choice(("L(0)", "w"))
            head = f"{start}, ({name} {self.random.choice(('>', '>=', '!='))} {end}), {name} -= {step}"
        known = list(self.names)
        self.names.append(name)
        inner = " ".join([*self.block(depth + 1, self.random.randint(0, 2)), self.access()])
        self.names = known
        return f"LOOP({kind}, {name}, {head}) {{ TRIP {inner} }}"


def draw(seed: int) -> str:
    """A random body of a kernel."""
    return Indices(seed).body()
