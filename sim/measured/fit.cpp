#include "sim/measured/fit.hpp"

#include <algorithm>
#include <cmath>
#include <tbb/parallel_for.h>

#include <Eigen/Dense>

#include "models/base/input_error.hpp"
#include "sim/measured/fit_constants.hpp"
#include "sim/measured/row_scenario.hpp"
#include "sim/step/step.hpp"

namespace lockstep {
namespace {

constexpr double kNoise = 0.05;  ///< relative, of one row: what twin rows of one stack differ by
constexpr double kHuber = 2.0;   ///< in units of it; beyond, a row counts linearly
constexpr double kDifference = 0.02;  ///< of a parameter's logarithm, for derivatives
constexpr int kIterations = 8;
constexpr int kLinearIterations = 100;
constexpr double kSettled = 1e-3;  ///< of parameters' logarithms

Scenario with_constants(const FitRow& row, const std::vector<FitParameter>& parameters,
                        const Eigen::VectorXd& x) {
  Scenario s = row.scenario;
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    const FitParameter& p = parameters[j];
    double* constant = fit_constant(p, s);
    if (constant == nullptr) continue;
    *constant = std::clamp(p.prior * std::exp(x[static_cast<Eigen::Index>(j)]), p.min, p.max);
  }
  return s;
}

double log_error(const FitRow& row, const Scenario& scenario) {
  return std::log(simulate_step(scenario).step_s / row.measured_s);
}

/// Where the fit is: the logarithm of each value over its prior.
Eigen::VectorXd logarithms(const std::vector<FitParameter>& parameters) {
  Eigen::VectorXd x(static_cast<Eigen::Index>(parameters.size()));
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    x[static_cast<Eigen::Index>(j)] = std::log(parameters[j].value / parameters[j].prior);
  }
  return x;
}

/// Residuals and their derivatives, rows on all cores, each row only by what it depends on.
struct Linearised {
  Eigen::VectorXd residual;
  Eigen::MatrixXd jacobian;
};
Linearised linearise(const std::vector<const FitRow*>& rows,
                     const std::vector<FitParameter>& parameters, const Eigen::VectorXd& x) {
  const auto n = static_cast<Eigen::Index>(rows.size());
  const auto m = static_cast<Eigen::Index>(parameters.size());
  Linearised out{Eigen::VectorXd::Zero(n), Eigen::MatrixXd::Zero(n, m)};
  tbb::parallel_for(Eigen::Index{0}, n, [&](Eigen::Index i) {
    const FitRow& row = *rows[static_cast<std::size_t>(i)];
    Scenario base = with_constants(row, parameters, x);
    out.residual[i] = log_error(row, base);
    for (Eigen::Index j = 0; j < m; ++j) {
      const FitParameter& p = parameters[static_cast<std::size_t>(j)];
      if (fit_constant(p, base) == nullptr) continue;
      // A step beyond the bound would show nothing.
      const bool at_top = p.prior * std::exp(x[j] + kDifference) > p.max;
      const double step = at_top ? -kDifference : kDifference;
      Eigen::VectorXd moved = x;
      moved[j] += step;
      out.jacobian(i, j) =
          (log_error(row, with_constants(row, parameters, moved)) - out.residual[i]) / step;
    }
  });
  return out;
}

double huber_weight(double residual) {
  const double size = std::abs(residual) / kNoise;
  return (size <= kHuber ? 1.0 : kHuber / size) / (kNoise * kNoise);
}

Eigen::VectorXd improved(const Linearised& at, const std::vector<FitParameter>& parameters,
                         const Eigen::VectorXd& x) {
  const auto m = static_cast<Eigen::Index>(parameters.size());
  Eigen::VectorXd weights(at.residual.size());
  for (Eigen::Index i = 0; i < weights.size(); ++i) weights[i] = huber_weight(at.residual[i]);
  Eigen::MatrixXd normal = at.jacobian.transpose() * weights.asDiagonal() * at.jacobian;
  Eigen::VectorXd gradient = at.jacobian.transpose() * (weights.asDiagonal() * at.residual);
  for (Eigen::Index j = 0; j < m; ++j) {
    const double spread = parameters[static_cast<std::size_t>(j)].spread;
    normal(j, j) += 1 / (spread * spread);
    gradient[j] += x[j] / (spread * spread);
  }
  Eigen::VectorXd next = x - normal.ldlt().solve(gradient).cwiseMax(-0.3).cwiseMin(0.3);
  for (Eigen::Index j = 0; j < m; ++j) {
    const FitParameter& p = parameters[static_cast<std::size_t>(j)];
    next[j] = std::clamp(next[j], std::log(p.min / p.prior), std::log(p.max / p.prior));
  }
  return next;
}

double three_digits(double value) {
  const double scale = std::pow(10.0, 2 - std::floor(std::log10(std::abs(value))));
  return std::round(value * scale) / scale;
}

std::vector<const FitRow*> pointers_to(const std::vector<FitRow>& rows) {
  std::vector<const FitRow*> out;
  out.reserve(rows.size());
  for (const FitRow& row : rows) out.push_back(&row);
  return out;
}

}  // namespace

std::vector<FitRow> fit_rows(const std::vector<ReferenceRow>& rows, const PresetStore& presets,
                             const Vendors& vendors) {
  std::vector<FitRow> out;
  for (const ReferenceRow& row : rows) {
    if (!row.obstacle.empty() || !row.complete || !row.measured_step_s) continue;
    try {
      const auto vendor = vendors.find(row.source);
      out.push_back({row.id, row.source, vendor == vendors.end() ? row.source : vendor->second,
                     row.release, row_scenario(row, presets), *row.measured_step_s});
    } catch (const InputError&) {
      continue;  // `validate` lists it with the reason
    }
  }
  return out;
}

std::vector<double> fit_errors(const std::vector<FitRow>& rows,
                               const std::vector<FitParameter>& parameters) {
  const Eigen::VectorXd x = logarithms(parameters);
  std::vector<double> errors(rows.size());
  tbb::parallel_for(std::size_t{0}, rows.size(), [&](std::size_t i) {
    errors[i] = std::expm1(log_error(rows[i], with_constants(rows[i], parameters, x)));
  });
  return errors;
}

void fit(const std::vector<FitRow>& rows, std::vector<FitParameter>& parameters) {
  const std::vector<const FitRow*> used = pointers_to(rows);
  Eigen::VectorXd x = logarithms(parameters);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
    const Linearised at = linearise(used, parameters, x);
    const Eigen::VectorXd next = improved(at, parameters, x);
    const double moved = (next - x).cwiseAbs().maxCoeff();
    x = next;
    if (moved < kSettled) break;
  }
  for (std::size_t j = 0; j < parameters.size(); ++j) {
    FitParameter& p = parameters[j];
    // As presets hold it, so that what rows miss by is what a prediction with the presets misses
    // by.
    p.value = three_digits(p.prior * std::exp(x[static_cast<Eigen::Index>(j)]));
    p.rows = 0;
    for (const FitRow* row : used) {
      Scenario s = row->scenario;
      if (fit_constant(p, s) != nullptr) ++p.rows;
    }
  }
}

std::vector<const FitParameter*> at_bounds(const std::vector<FitParameter>& parameters) {
  constexpr double kThere = 1e-3;  // relative: what three printed digits do not tell apart
  std::vector<const FitParameter*> out;
  for (const FitParameter& p : parameters) {
    if (p.value <= p.min * (1 + kThere) || p.value >= p.max * (1 - kThere)) out.push_back(&p);
  }
  return out;
}

std::vector<std::vector<FitParameter>> fit_without_each(const std::vector<FitRow>& rows,
                                                        const std::vector<std::string>& names,
                                                        const std::vector<FitParameter>& fitted) {
  const Eigen::VectorXd x0 = logarithms(fitted);
  const Linearised all = linearise(pointers_to(rows), fitted, x0);
  std::vector<std::vector<FitParameter>> out;
  for (const std::string& name : names) {
    std::vector<Eigen::Index> used;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const bool left_out = rows[i].source == name || rows[i].vendor == name;
      if (!left_out) used.push_back(static_cast<Eigen::Index>(i));
    }
    const Eigen::VectorXd residual0 = all.residual(used);
    Linearised at{residual0, all.jacobian(used, Eigen::all)};
    Eigen::VectorXd x = x0;
    for (int iteration = 0; iteration < kLinearIterations; ++iteration) {
      at.residual = residual0 + at.jacobian * (x - x0);
      const Eigen::VectorXd next = improved(at, fitted, x);
      const double moved = (next - x).cwiseAbs().maxCoeff();
      x = next;
      if (moved < kSettled) break;
    }
    out.push_back(fitted);
    for (std::size_t j = 0; j < fitted.size(); ++j) {
      out.back()[j].value = fitted[j].prior * std::exp(x[static_cast<Eigen::Index>(j)]);
    }
  }
  return out;
}

}  // namespace lockstep
