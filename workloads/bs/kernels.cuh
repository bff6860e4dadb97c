// B&S, kernel and reference: European call prices by the Black-Scholes formula, in double precision.
// Written from the description in the GrSched/GrCUDA and KeSCo papers (ten independent options).
#pragma once

#include "../common/device.cuh"
#include "../common/options.cuh"

constexpr int kOptions = 10;        // independent arrays of spot prices
constexpr double kRate = 0.08;      // risk-free interest rate, a year
constexpr double kVolatility = 0.3;
constexpr double kYears = 1.0;      // time to expiry
constexpr double kStrike = 60.0;

// The standard normal distribution function by formula 26.2.17 of Abramowitz and Stegun; error below 7.5e-8.
__device__ inline double normal_cdf(double d) {
  const double t = 1.0 / (1.0 + 0.2316419 * fabs(d));
  const double poly =
      t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))));
  const double tail = 0.3989422804014327 * exp(-0.5 * d * d) * poly;
  return d > 0.0 ? 1.0 - tail : tail;
}

__global__ void bs(const double* x, double* y, long n, double r, double v, double t, double k) {
  const double spread = v * sqrt(t);
  const double discounted = k * exp(-r * t);
  for (long i = thread_index(); i < n; i += thread_count()) {
    const double d1 = (log(x[i] / k) + (r + 0.5 * v * v) * t) / spread;
    y[i] = x[i] * normal_cdf(d1) - discounted * normal_cdf(d1 - spread);
  }
}

// Uses the error function instead of the polynomial. Tolerance 3e-5 of the largest price.
inline bool matches_reference(const double* x, const double* y, long n) {
  std::vector<double> want(n);
  const auto cdf = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); };
  for (long i = 0; i < n; ++i) {
    const double sigma = kVolatility * std::sqrt(kYears);
    const double d2 = (std::log(x[i]) - std::log(kStrike) + kRate * kYears) / sigma - 0.5 * sigma;
    want[i] = x[i] * cdf(d2 + sigma) - kStrike * std::exp(-kRate * kYears) * cdf(d2);
  }
  return all_close("y", y, want, 3e-5);
}
