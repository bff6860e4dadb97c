"""What random hosts do beside launches: one entry for each habit of C++, with the functions that it brings.

In a text ``@V`` is a variable that holds a pointer, ``@P`` any pointer, ``@C`` a condition, ``@K[names]`` a launch that
may use the names, too, ``@B[names]`` a few statements, ``@N`` the program's name, ``#`` a number of this use alone.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Habit:
    """Functions in front of the program, declarations at its beginning, and statements of which each may come often."""

    name: str
    uses: tuple[str, ...]
    functions: str = ""
    declares: str = ""
    needs: tuple[str, ...] = ()


_BUFFER = """\
struct @N_Buffer {
  float* p = nullptr;
  @N_Buffer() { cudaMalloc(&p, 4096); }
  @N_Buffer(@N_Buffer&& o) noexcept : p(o.p) { o.p = nullptr; }
  @N_Buffer& operator=(@N_Buffer&& o) noexcept { std::swap(p, o.p); return *this; }
  ~@N_Buffer() { if (p) cudaFree(p); }
  float* get() const { return p; }
};
"""
_OWN = """\
struct @N_Own : std::exception {
  int code;
  explicit @N_Own(int c) : code(c) {}
  const char* what() const noexcept override { return "own"; }
};
static void @N_check(cudaError_t e) { if (e != cudaSuccess) throw @N_Own(int(e)); }
"""
_LIBRARY = """\
static void @N_must(cudaError_t e) { if (e != cudaSuccess) throw std::runtime_error("CUDA"); }
"""

_HELPERS = (
    "static void @N_rotate(float*& a, float*& b, float*& c) {\nfloat* t = a;\na = b;\nb = c;\nc = t;\nk_x<<<1, 32>>>(a);\n}\n"
    "static void @N_turn(float*& a, float*& b, float*& c) {\nk_rw<<<1, 32>>>(a, b);\nstd::swap(b, c);\n}\n"
    "static void @N_first(float* a, float* b, int n) {\nk_rx<<<1, 32>>>(a, b);\nif (n > 1) return;\nk_rw<<<1, 32>>>(b, a);\nk_x<<<1, 32>>>(b);\n}\n"
    "static float* @N_pick(float* a, float* b, int n) {\nif (n > 2) return a;\nk_x<<<1, 32>>>(b);\nreturn b;\n}\n"
    "static float*& @N_either(float*& a, float*& b, int n) { return n > 1 ? a : b; }\n"
    "static int @N_count(float*& a, float*& b) { static int n = 0; k_rx<<<1, 32>>>(a, b); std::swap(a, b); return ++n; }\n"
    "static float* @N_bump(float*& a, float*& b) { k_x<<<1, 32>>>(a); std::swap(a, b); return a; }\n"
    "static void @N_two(float* a, float* b) { k_rx<<<1, 32>>>(a, b); }\n"
    "static void @N_recursive(float*& a, float*& b, int n) {\nif (n == 0) return;\nk_rx<<<1, 32>>>(a, b);\nstd::swap(a, b);\n@N_recursive(a, b, n - 1);\nk_x<<<1, 32>>>(a);\n}\n"
    "template <class... T> static void @N_all(T*&... p) { (k_x<<<1, 32>>>(p), ...); }\n"
)

HABITS = (
    Habit(
        "vector",
        (
            "for (float* e# : v) {\n@B[e#]\n}",
            "for (float*& e# : v) {\n@K[e#]\nstd::swap(e#, @V);\n@K[e#]\n}",
            "for (auto e# : v) {\nif (@C) continue;\n@K[e#]\n@K[e#]\n}",
            "for (auto& e# : v) {\n@K[e#]\nif (@C) break;\n@K[e#]\n}",
            "for (float* e# : v) for (float* f# : v) k_rx<<<1, 32>>>(e#, f#);",
            "for (float* e# : v) {\nfor (float*& f# : v) {\n@K[e#,f#]\n}\n@K[e#]\n}",
            "for (float* e# : v) {\n@K[e#]\nv[argc % 3] = @P;\n}",
            "for (float* e# : v) {\n@K[e#]\nv[1] = e#;\n}",
            "v[0] = @P;",
            "std::swap(v[0], v[2]);",
            "std::reverse(v.begin(), v.end());",
            "std::rotate(v.begin(), v.begin() + 1, v.end());",
            "v.push_back(@P);",
            "if (v.size() > 3) v.pop_back();",
            "v.insert(v.begin(), @P);",
            "if (v.size() > 3) v.erase(v.begin());",
            "for (size_t i# = 0; i# < v.size(); ++i#) {\n@K[v[i#]]\n@K[v[i#]]\n}",
            "for (const auto& e# : std::vector<float*>(v)) {\n@K[e#]\nv[0] = e#;\n@K[v[0]]\n}",
            "std::for_each(v.begin(), v.end(), [&](float* e#) {\n@K[e#]\n});",
            "for (float* t#; float* e# : v) {\nt# = e#;\n@K[t#]\n}",
        ),
        declares="std::vector<float*> v = {@P, @P, @P};",
    ),
    Habit(
        "arrays",
        (
            "for (float* e# : x) {\n@B[e#]\n}",
            "for (float*& e# : y) {\n@K[e#]\nstd::swap(e#, @V);\n}",
            "for (auto e# : {@P, @P, @P}) {\n@K[e#]\n@K[e#]\n}",
            "for (auto e# : {@P, @P}) k_x<<<1, 32>>>(e#);",
            "for (float* e# : std::initializer_list<float*>{@P, @P}) {\n@K[e#]\n@V = e#;\n}",
            "for (float*& e# : x) e# = @P;",
            "for (int i# : {0, 2, 1}) {\n@K[x[i#]]\n@K[y[i#]]\n}",
            "for (int i# : {2, 0}) k_rx<<<1, 32>>>(x[i#], y[i#]);",
            "for (float* e# : y) {\n@K[e#]\nx[1] = y[0];\n@K[x[1]]\n}",
            "x[argc % 3] = @P;",
            "y[argc % 3] = x[(argc + 1) % 3];",
            "std::swap(x, z);",
            "y.swap(w);",
            "y = w;",
            "for (float** e# = x; e# != x + 3; ++e#) {\n@K[*e#]\n}",
            "for (float*& e# : x) {\nif (@C) { std::swap(e#, x[0]); continue; }\n@K[e#]\n}",
            "for (auto& row# : g) for (float*& e# : row#) {\n@K[e#]\n}",
            "for (auto& row# : g) {\nfor (float* e# : row#) k_x<<<1, 32>>>(e#);\n@K[row#[0]]\n}",
            "std::swap(g[0], g[1]);",
            "std::swap(g[0][1], @V);",
        ),
        declares="float* x[3] = {@P, @P, @P};\nfloat* z[3] = {@P, @P, @P};\n"
        "std::array<float*, 3> y = {@P, @P, @P};\nstd::array<float*, 3> w = y;\nfloat* g[2][2] = {{@P, @P}, {@P, @P}};",
    ),
    Habit(
        "structs",
        (
            "for (Pair q# : ps) {\np_rw<<<1, 32>>>(q#);\n@K[q#.in,q#.out]\n}",
            "for (Pair& q# : ps) {\np_rw<<<1, 32>>>(q#);\nstd::swap(q#.in, q#.out);\n}",
            "for (auto [i#, o#] : ps) {\n@K[i#,o#]\n@K[i#,o#]\n}",
            "for (auto& [i#, o#] : ps) {\n@K[i#,o#]\nstd::swap(i#, o#);\n}",
            "for (const Pair& q# : {Pair{@P, @P}, Pair{@P, @P}}) {\np_xr<<<1, 32>>>(q#);\n@K[q#.in,q#.out]\n}",
            "for (auto& q# : pa) {\n@K[q#.in,q#.out]\nq#.out = @P;\n@K[q#.out]\n}",
            "std::swap(ps[0], ps[1]);",
            "ps[argc % 2].in = @P;",
            "Pair u# = ps[1];\nu#.in = @P;\np_rw<<<1, 32>>>(u#);\np_rw<<<1, 32>>>(ps[1]);",
            "pa[1] = ps[0];",
            "float* Pair::*f# = @C ? &Pair::in : &Pair::out;\nps[0].*f# = @P;\n@K[ps[0].*f#]",
            "m.at[m.now] = @P;\n@K[m.at[m.now]]",
            "m.now = (m.now + argc) % 4;",
            "@K[m.at[m.now],m.at[argc % 4],m.at[0]]",
            "for (float*& e# : m.at) {\n@K[e#]\nif (e# == @P) break;\n}",
            "std::swap(m.at[m.now], m.at[(m.now + 1) % 4]);",
            "@N_Many c# = m;\nc#.at[1] = @P;\nm = c#;",
            "for (int i# = 0; i# < 4; ++i#) k_rx<<<1, 32>>>(m.at[i#], m.at[(i# + 1) % 4]);",
        ),
        functions="struct @N_Many { float* at[4]; int now; };\n",
        declares="std::vector<Pair> ps = {{@P, @P}, {@P, @P}};\nPair pa[2] = {{@P, @P}, {@P, @P}};\n"
        "@N_Many m = {{@P, @P, @P, @P}, 0};",
    ),
    Habit(
        "own exceptions",
        (
            "try {\n@B\nif (@C) throw @N_Own(3);\n@B\n} catch (const @N_Own& e) {\n@B\n}",
            "try {\n@K\n@N_check(cudaGetLastError());\n@B\n} catch (const @N_Own& e) {\n@B\nh[0] = float(e.code);\n}",
            'try {\n@B\n@N_work(@P, @P, argc);\n@B\n} catch (const std::exception& e) {\n@K\nprintf("%s\\n", e.what());\n}',
            "try {\ntry {\n@B\nif (@C) throw @N_Own(argc);\n@K\n} catch (@N_Own& e) {\n@K\nif (@C) throw;\n@K\n}\n@K\n"
            "} catch (const std::exception&) {\n@K\n}",
            "@N_check(cudaMemset(@P, 0, 128));",
            "try {\nif (@C) throw 7;\n@K\n} catch (int i#) {\n@K\n} catch (...) {\n@K\n}",
            "try {\n@B\nif (@C) throw @N_Own(1);\n} catch (const @N_Own&) {\n"
            "cudaMemcpy(h, @P, 128, cudaMemcpyDeviceToHost);\nshow(h);\n@K\n}",
            "for (float* e# : {@P, @P, @P}) {\ntry {\n@K[e#]\nif (@C) throw @N_Own(2);\n@K[e#]\n} catch (const @N_Own&) {\n"
            "@K[e#]\nbreak;\n}\n}",
            "@N_catches(@P, @P, argc);",
        ),
        functions=_OWN
        + "static void @N_work(float* a, float* b, int n) {\nk_rx<<<1, 32>>>(a, b);\n@N_check(cudaGetLastError());\n"
        "if (n > 2) throw @N_Own(n);\nk_x<<<1, 32>>>(a);\n}\n"
        "static void @N_catches(float* a, float* b, int n) try {\nk_x<<<1, 32>>>(a);\nif (n > 1) throw @N_Own(n);\n"
        "k_rw<<<1, 32>>>(b, a);\n} catch (const @N_Own&) {\nk_rx<<<1, 32>>>(a, b);\n}\n",
    ),
    Habit(
        "exceptions",
        (
            'try {\n@B\nif (@C) throw std::runtime_error("no");\n@B\n} catch (const std::exception& e) {\n@B\n}',
            "try {\n@K\n@N_must(cudaGetLastError());\n@K\n@N_must(cudaGetLastError());\n@K\n} catch (const std::exception& e) {\n"
            "std::cerr << e.what();\nreturn 1;\n}",
            "@K\n@N_must(cudaGetLastError());",
            "@N_must(cudaMemcpy(h, @P, 128, cudaMemcpyDeviceToHost));\nshow(h);",
            "try {\n@N_risky(@V, @V, argc);\n@K\n} catch (const std::runtime_error&) {\n@K\nstd::swap(@V, @V);\n}",
            "try {\n@B\nstd::vector<int>{1, 2}.at(argc);\n@K\n} catch (const std::out_of_range&) {\n@K\n}",
        ),
        functions=_LIBRARY
        + "static void @N_risky(float*& a, float*& b, int n) {\nk_x<<<1, 32>>>(a);\nstd::swap(a, b);\n"
        'if (n > 2) throw std::runtime_error("risky");\nk_rw<<<1, 32>>>(a, b);\n}\n',
    ),
    Habit(
        "buffers",
        (
            "{\n@N_Buffer t#;\nk_w<<<1, 32>>>(t#.get());\n@K[t#.get()]\n@K[t#.get(),t#.p]\n}",
            "{\n@N_Buffer t#, u#;\nk_w<<<1, 32>>>(t#.p);\nu# = std::move(t#);\n@K[u#.p]\n@K[t#.p,u#.p]\n}",
            "bs.emplace_back();\nk_w<<<1, 32>>>(bs.back().p);",
            "if (bs.size() > 1) bs.pop_back();",
            "std::swap(bs[0], bs[bs.size() - 1]);",
            "for (auto& e# : bs) {\n@K[e#.p]\n@K[e#.get()]\n}",
            "for (const @N_Buffer& e# : bs) k_rx<<<1, 32>>>(e#.get(), @P);",
            "@K[bs[0].get(),bs.back().p]",
            "@N_take(std::move(bs[0]), @P);\nbs[0] = @N_Buffer();\nk_w<<<1, 32>>>(bs[0].p);",
            "{\nauto t# = std::make_unique<@N_Buffer>();\nk_w<<<1, 32>>>(t#->p);\n@K[t#->p]\nif (@C) t#.reset();\n@K\n}",
        ),
        functions=_BUFFER
        + "static void @N_take(@N_Buffer b, float* a) {\nk_rx<<<1, 32>>>(b.get(), a);\nk_x<<<1, 32>>>(b.get());\n}\n",
        declares="std::vector<@N_Buffer> bs(2);\nk_w<<<1, 32>>>(bs[0].p);\nk_w<<<1, 32>>>(bs[1].p);",
    ),
    Habit(
        "busy destructors",
        (
            "{\n@N_Last t#{@P, @P};\n@B\n}",
            "{\n@N_Copy t#{h, @P};\n@B\n}\nshow(h);",
            "for (int i# = 0; i# < 3; ++i#) {\n@N_Last t#{@P, @P};\n@K\nif (@C) continue;\n@K\n}",
            "{\n@N_Last t#{@P, @P};\n@K\nt#.a = @P;\n}",
            "@N_Last{@P, @P};",
        ),
        functions="struct @N_Last {\nfloat *a, *b;\n~@N_Last() { k_rx<<<1, 32>>>(a, b); }\n};\n"
        "struct @N_Copy {\nfloat *h, *d;\n~@N_Copy() { cudaMemcpy(h, d, 128, cudaMemcpyDeviceToHost); }\n};\n",
    ),
    Habit(
        "lambdas",
        (
            "exchange();",
            "step(@P);",
            "auto f# = [&](float* q) { k_rx<<<1, 32>>>(q, @P); @V = q; };\nf#(@P);\n@K\nf#(@P);",
            "auto f# = [p = @P](float* q) mutable { k_rx<<<1, 32>>>(p, q); p = q; };\nf#(@P);\nf#(@P);",
            "std::function<void(float*)> f# = [&](float* q) { k_x<<<1, 32>>>(q); std::swap(@V, @V); };\nf#(@P);\n@K\nf#(@P);",
            "auto f# = [&](auto& self, int n) -> void { if (n > 0) { k_rx<<<1, 32>>>(@P, @P); std::swap(@V, @V); self(self, n - 1); } };\n"
            "f#(f#, argc);",
            "[&] { @V = @P; k_x<<<1, 32>>>(@P); }();",
            "step(next());",
            "@V = next();",
        ),
        declares="auto exchange = [&] { std::swap(@V, @V); };\nauto step = [&](float* q) { k_rx<<<1, 32>>>(q, @P); k_x<<<1, 32>>>(@P); };\n"
        "auto next = [&]() -> float* { std::swap(@V, @V); return @P; };",
    ),
    Habit(
        "helpers",
        (
            "@N_rotate(@V, @V, @V);",
            "@N_first(@P, @P, argc);",
            "@V = @N_pick(@P, @P, argc);",
            "@N_either(@V, @V, argc) = @P;",
            "std::swap(@N_either(@V, @V, argc), @V);",
            "auto f# = @C ? &@N_rotate : &@N_turn;\nf#(@V, @V, @V);\n@K",
            "@N_recursive(@V, @V, argc);",
            "@N_all(@V, @V, @V);",
        ),
        functions=_HELPERS,
    ),
    Habit(
        "open order",
        (
            "k_rx<<<1, 32>>>(@N_pick(@P, @P, argc), @N_pick(@P, @P, argc - 1));",
            "@N_first(@N_pick(@P, @P, argc), @N_pick(@P, @P, 1), argc);",
            "if (@N_count(@V, @V) + @N_count(@V, @V) > 3) @K",
            "@N_two(@N_bump(@V, @V), @N_bump(@V, @V));",
            "k_rx<<<1, 32>>>((std::swap(@V, @V), @P), @P);",
            "step#(next(), @P);",
            "k_rx<<<1, 32>>>(next(), @P);",
            "k_rx<<<1, 32>>>((@C ? next() : @P), @P);",
            "@N_two(next(), @P);",
        ),
        functions=_HELPERS,
        declares="auto next = [&]() -> float* { std::swap(@V, @V); return @P; };",
    ),
    Habit(
        "indices",
        (
            "for (int i# = 0; i# < 4; ++i#) {\n@K[n[i# ^ 1],n[(i# * 3 + 1) % 4]]\n@K[n[i#],n[3 - i#]]\n}",
            "for (int i# = -3; i# < 3; ++i#) {\n@K[n[(i# % 2) + 1],n[i# & 3],n[(i# >> 1) & 1]]\n@K[n[(i# + 3) / 2]]\n}",
            "for (unsigned char i# = 253; i# != 2; ++i#) {\n@K[n[i# % 4],n[(i# + 1) & 3]]\n}",
            "for (unsigned i# = 3; i# < 4; --i#) {\n@K[n[i#]]\nn[i#] = @P;\n}",
            "for (int i# = 0, j# = 3; i# < j#; ++i#, --j#) {\n@K[n[i#],n[j#]]\nstd::swap(n[i#], n[j#]);\n}",
            "for (int i# = 1; i# < 8; i# *= 2) {\n@K[n[i# & 3],n[i# / 4]]\n@K[n[i# % 3]]\n}",
            "for (float f# = 0; f# < 4; f# += 0.75f) {\n@K[n[int(f#)]]\n}",
            "for (int i# : {3, 1, 2}) {\n@K[n[i#],n[i# ^ 3]]\nif (@C) break;\n@K[n[i# - 1]]\n}",
            "{\nsigned char s# = 126;\nwhile (s# > 0) {\n@K[n[s# & 3]]\ns# += 1;\n}\n@K[n[(s# + 128) % 4]]\n}",
            "r.now += 3;\n@K[r.at[r.now]]",
            "for (int i# = 0; i# < 5; ++i#) {\n@K[r.at[r.now],r.at[(r.now + 1) % 4]]\n++r.now;\n}",
            "r.at[r.now] = @P;",
            "n[(argc * 7) & 3] = @P;",
            "for (float** e# = n; e# < n + 4; e# += 2) {\n@K[e#[0],e#[1]]\nstd::swap(*e#, *(e# + 1));\n}",
            "{\nint k# = 0;\nk_x<<<1, 32>>>(n[k#++]);\n@K[n[k#]]\nk_x<<<1, 32>>>(n[++k#]);\n}",
            "for (size_t i# = 4; i#-- > 0;) {\n@K[n[i#]]\n@K[n[i#]]\n}",
            "for (int i# = 0; i# < 3; ++i#) {\nfor (int j# = i#; j# < 3; ++j#) k_rx<<<1, 32>>>(n[i#], n[j# + 1]);\n}",
        ),
        functions="struct @N_Ring { float* at[4]; unsigned now : 2; };\n",
        declares="float* n[4] = {@P, @P, @P, @P};\n@N_Ring r = {{@P, @P, @P, @P}, 1};",
    ),
    Habit(
        "bytes",
        (
            "std::memcpy(&@V, &@V, sizeof(float*));",
            "{\nuintptr_t u# = reinterpret_cast<uintptr_t>(@P);\n@V = reinterpret_cast<float*>(u#);\n}\n@K",
            "{\nunion { float* p; uintptr_t u; } u#;\nu#.p = @P;\n@K[u#.p]\nu#.u += 64;\n@K[u#.p]\n}",
            "{\nalignas(Pair) char room#[sizeof(Pair)];\nPair* q# = new (room#) Pair{@P, @P};\n@K[q#->in,q#->out]\nstd::swap(q#->in, @V);\n@K[q#->in]\n}",
            "{\nfloat* volatile t# = @P;\n@K[t#]\nt# = @P;\n@K[t#]\n}",
            "{\nfloat** b# = new float*[2]{@P, @P};\n@K[b#[0],b#[1]]\nb#[argc % 2] = @P;\n@K[b#[0]]\ndelete[] b#;\n}",
            "{\nvoid* t# = &@V;\n*static_cast<float**>(t#) = @P;\n}\n@K",
            "@V = std::exchange(@V, @P);",
            "std::tie(@V, @V) = std::make_pair(@P, @P);",
        ),
    ),
    Habit(
        "operators",
        (
            "@V = (@C ? @V : @V);",
            "(@C ? @V : @V) = @P;",
            "{\n@N_Ref r#{@V, @V};\nk_x<<<1, 32>>>(r#);\nk_rx<<<1, 32>>>(r#, @P);\n}",
            "{\n@N_Ref r#{@V, @V};\nr# += @P;\n++r#;\n}\n@K",
            "{\nstd::optional<float*> o#;\nif (@C) o# = @P;\n@K\nk_x<<<1, 32>>>(o#.value_or(@P));\n}",
            "{\nauto t# = std::make_tuple(@P, @P);\n@K[std::get<0>(t#),std::get<1>(t#)]\nstd::get<0>(t#) = @P;\n@K[std::get<0>(t#)]\n}",
            "{\nauto t# = std::tie(@V, @V);\nstd::get<0>(t#) = @P;\n}\n@K",
            "float*& r# = @C ? @V : @V;\n@K[r#]\nr# = @P;\n@K",
            "float** pp# = @C ? &@V : &@V;\n*pp# = @P;\n@K[*pp#]",
            "{\n@N_Steps s#{{@P, @P, @P}};\nfor (float* e# : s#) {\n@K[e#]\n@K[e#]\n}\n}",
            "{\nstd::deque<float*> d# = {@P, @P};\nd#.push_front(@P);\nfor (float* e# : d#) {\n@K[e#]\n}\n}",
            "{\nstd::map<int, float*> d# = {{1, @P}, {0, @P}};\nfor (auto& [k#, e#] : d#) {\n@K[e#]\n@K[d#[1]]\n}\n}",
            "{\nstd::list<float*> d# = {@P, @P};\nd#.reverse();\nfor (float* e# : d#) {\n@K[e#]\n}\n}",
        ),
        functions="struct @N_Ref {\nfloat *&a, *&b;\noperator float*() { std::swap(a, b); return a; }\nvoid operator+=(float* c) { k_rx<<<1, 32>>>(c, a); b = c; }\n"
        "@N_Ref& operator++() { k_x<<<1, 32>>>(a); std::swap(a, b); return *this; }\n};\n"
        "struct @N_Steps {\nfloat* at[3];\nstruct It {\nfloat** p;\nbool operator!=(const It& o) const { return p != o.p; }\n"
        "It& operator++() { k_x<<<1, 32>>>(*p); ++p; return *this; }\nfloat* operator*() const { return *p; }\n};\n"
        "It begin() { return {at}; }\nIt end() { return {at + 3}; }\n};\n",
    ),
    Habit(
        "cleanups",
        (
            "@N_lasting(@P, @P);",
            "@N_of_thread(@P, @P);",
            "@N_once(@P, @P);",
        ),
        functions="static void @N_clean(float** p) { k_x<<<1, 32>>>(*p); }\n"
        "static void @N_lasting(float* a, float* b) {\nstatic float* last = a;\nk_rx<<<1, 32>>>(last, b);\nlast = a;\nk_x<<<1, 32>>>(b);\n}\n"
        "static void @N_of_thread(float* a, float* b) {\nthread_local float* last = a;\nk_rx<<<1, 32>>>(last, b);\nlast = a;\nk_x<<<1, 32>>>(b);\n}\n"
        "struct @N_Made { float* kept; explicit @N_Made(float* p) : kept(p) { k_x<<<1, 32>>>(p); } };\n"
        "static void @N_once(float* a, float* b) {\nstatic @N_Made made(a);\nk_rx<<<1, 32>>>(made.kept, b);\nk_x<<<1, 32>>>(b);\n}\n",
    ),
    Habit(
        "host memory",
        (
            "cudaDeviceSynchronize();\npin[0] += 1.0f;\n@K[pin]",
            "cudaDeviceSynchronize();\nman[1] = 3.0f;\n@K[man]",
            "@K[man]\ncudaDeviceSynchronize();\nif (man[0] > 500000.0f) @K[man]",
            "@K[man]\ncudaDeviceSynchronize();\nshow(man);\n@K",
            "cudaMemcpyAsync(pin, @P, 128, cudaMemcpyDeviceToHost);\n@K\ncudaDeviceSynchronize();\nshow(pin);",
            "cudaMemcpyAsync(@P, pin, 128, cudaMemcpyHostToDevice);\n@K",
            "cudaMemcpy(pin, @P, 128, cudaMemcpyDeviceToHost);\npin[2] += pin[3];\ncudaMemcpyAsync(@P, pin, 128, cudaMemcpyHostToDevice);\n@K",
            "cudaMemset(man, 0, 128);\n@K[man]",
            "for (float* e# : {man, @P}) {\n@K[e#]\ncudaDeviceSynchronize();\nman[4] += 1.0f;\n}",
            "@K[man,pin]",
        ),
        declares="float *pin, *man;\ncudaMallocHost(&pin, 4096);\ncudaMallocManaged(&man, 4096);\nk_w<<<1, 32>>>(man);\nk_w<<<1, 32>>>(pin);",
    ),
)

RARE = (  # what keeps most of a function as it is
    "for (int i# = 0; i# < 3; ++i#) {\nfor (int j# = 0; j# < 2; ++j#) {\n@K\nif (@C) goto out#;\n}\n@K\n}\nout#: ;",
    "for (float* e# : {@P, @P, @P}) {\n@K[e#]\nif (@C) goto out#;\n@K[e#]\n}\nout#: ;",
    "again#: @K\nif (@C && h[1] < 3.0f) {\nh[1] += 1.0f;\ngoto again#;\n}",
)

ORDINARY = (
    "if (@C) {\n@B\n}",
    "if (@C) {\n@B\n} else {\n@B\n}",
    "for (int i# = 0; i# < 3; ++i#) {\n@B\n}",
    "for (int i# = 0; i# < argc; ++i#) {\n@B\n}",
    "for (int i# = 0; i# < 4; ++i#) {\n@K\nif (@C) break;\nstd::swap(@V, @V);\n@K\n}",
    "switch (argc) {\ncase 1:\n@K\ncase 2:\n@K\nbreak;\ndefault:\n@K\n}",
    "int i# = 0;\ndo {\n@K\nstd::swap(@V, @V);\n} while (++i# < argc);",
    "std::swap(@V, @V);",
    "@V = @P;",
    "float* t# = @P;\n@K[t#]\n@V = t#;",
    "cudaMemset(@P, 0, 128);",
    "cudaMemcpy(@P, @P, 128, cudaMemcpyDeviceToDevice);",
    "cudaMemcpy(@P, h, 128, cudaMemcpyHostToDevice);\nh[0] += 1.0f;",
    "cudaMemcpy(h, @P, 128, cudaMemcpyDeviceToHost);\nshow(h);",
    "cudaDeviceSynchronize();",
    "if (cudaGetLastError() != cudaSuccess) return 1;",
)
