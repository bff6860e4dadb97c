// Sums of products of a kernel's integer arguments and its launch's dimensions, exact, as bounds of what it touches.
#pragma once

#include "llvm/Support/JSON.h"

#include <map>
#include <set>
#include <string>
#include <vector>

namespace kesco {

using Wide = __int128;

// An unknown integer and what it is never below and never above.
struct Symbol {
    std::string Name;
    Wide Low, High;
    bool Dimension;
    bool operator<(const Symbol &Other) const { return Name < Other.Name; }
};

inline Symbol argument(unsigned Index, unsigned Bits, bool Signed = true) {
    Wide Half = Wide(1) << (Bits - 1);
    return {(Signed ? "s" : "u") + std::to_string(Bits) + " arg" + std::to_string(Index), Signed ? -Half : 0,
            Signed ? Half - 1 : 2 * Half - 1, false};
}

// How many blocks, or threads a block, along an axis; CUDA's limits bound it.
inline Symbol dimension(bool Grid, char Axis) {
    Wide Most = Grid ? (Axis == 'x' ? 0x7fffffff : 65535) : Axis == 'z' ? 64 : 1024;
    return {std::string(Grid ? "gridDim." : "blockDim.") + Axis, 1, Most, true};
}

class Poly {
  public:
    Poly() = default;
    explicit Poly(int64_t Number) {
        if (Number)
            Terms[{}] = Number;
    }
    static Poly symbol(Symbol One) {
        Poly Made;
        Made.Terms[{std::move(One)}] = 1;
        return Made;
    }

    void operator+=(const Poly &Other) {
        for (const auto &[Product, Factor] : Other.Terms)
            if (!(Terms[Product] += Factor))
                Terms.erase(Product);
    }
    void operator*=(const Poly &Other) {
        Poly Result;
        for (const auto &[A, M] : Terms)
            for (const auto &[B, N] : Other.Terms) {
                Poly One;
                std::multiset<Symbol> Both = A;
                Both.insert(B.begin(), B.end());
                One.Terms[Both] = M * N;
                Result += One;
            }
        *this = Result;
    }
    Poly minus(const Poly &Other) const {
        Poly Negative = Other;
        Negative *= Poly(-1);
        Negative += *this;
        return Negative;
    }

    Wide lowest() const { return ends().first; }
    Wide highest() const { return ends().second; }
    bool constant() const { return Terms.empty() || (Terms.size() == 1 && Terms.begin()->first.empty()); }
    size_t size() const { return Terms.size(); }
    int dimensions() const {
        int Count = 0;
        for (const auto &[Product, _] : Terms)
            for (const Symbol &One : Product)
                Count += One.Dimension;
        return Count;
    }

    llvm::json::Value json() const {
        llvm::json::Array Sum;
        for (const auto &[Product, Factor] : Terms) {
            llvm::json::Array Names;
            for (const Symbol &One : Product)
                Names.push_back(One.Name);
            Sum.push_back(llvm::json::Object{{"times", int64_t(Factor)}, {"of", std::move(Names)}});
        }
        return Sum;
    }

    bool operator<(const Poly &Other) const { return Terms < Other.Terms; }

  private:
    std::map<std::multiset<Symbol>, Wide> Terms;

    // Products of many symbols of 64 bits do not fit into 128: they count as having no end.
    static constexpr Wide Endless = Wide(1) << 120;
    static Wide clamped(Wide A, Wide B) {
        Wide Result;
        if (__builtin_mul_overflow(A, B, &Result))
            return (A < 0) == (B < 0) ? Endless : -Endless;
        return Result > Endless ? Endless : Result < -Endless ? -Endless : Result;
    }
    std::pair<Wide, Wide> ends() const {
        Wide Low = 0, High = 0;
        for (const auto &[Product, Factor] : Terms) {
            Wide A = Factor, B = Factor;
            for (const Symbol &One : Product) {
                Wide Ends[] = {clamped(A, One.Low), clamped(A, One.High), clamped(B, One.Low), clamped(B, One.High)};
                A = B = Ends[0];
                for (Wide End : Ends)
                    A = End < A ? End : A, B = End > B ? End : B;
            }
            Low += A, High += B;
        }
        return {Low < -Endless ? -Endless : Low, High > Endless ? Endless : High};
    }
};

// The value is not beyond `At`, if each polynomial of the conditions is at most the number beside it.
class Bound {
  public:
    Poly At;
    explicit Bound(Poly At) : At(std::move(At)) {}

    void need(const Poly &One, Wide Most) { Needs.insert({One, Most}); }
    void needs(const Bound &Other) { Needs.insert(Other.Needs.begin(), Other.Needs.end()); }
    void add(const Bound &Other) {
        At += Other.At;
        needs(Other);
    }
    bool simplerThan(const Bound &Other) const {
        return std::tuple(At.dimensions(), Needs.size(), At.size()) <
               std::tuple(Other.At.dimensions(), Other.Needs.size(), Other.At.size());
    }
    llvm::json::Value conditions() const {
        llvm::json::Array All;
        for (const auto &[One, Most] : Needs)
            All.push_back(llvm::json::Object{{"sum", One.json()}, {"at_most", int64_t(Most)}});
        return All;
    }

  private:
    std::set<std::pair<Poly, Wide>> Needs;
};

} // namespace kesco
