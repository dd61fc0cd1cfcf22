#include "sim/measured/minimise.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>

namespace lockstep {
namespace {

using Function = std::function<double(const std::vector<double>&)>;

class Simplex {
 public:
  Simplex(const Function& f, const std::vector<double>& start, double step) : f_(f) {
    vertices_.push_back(evaluate(start));
    for (std::size_t i = 0; i < start.size(); ++i) {
      std::vector<double> corner = start;
      corner[i] += step;
      vertices_.push_back(evaluate(std::move(corner)));
    }
  }

  [[nodiscard]] int evaluations() const { return evaluations_; }

  [[nodiscard]] const std::vector<double>& best() const {
    return std::ranges::min_element(vertices_, lower)->at;
  }

  /// Replaces the worst vertex by a better one, else shrinks towards the best.
  void improve() {
    std::ranges::stable_sort(vertices_, lower);
    Vertex& worst = vertices_.back();
    const Vertex reflected = along(1);
    if (reflected.value < vertices_.front().value) {
      const Vertex expanded = along(2);
      worst = expanded.value < reflected.value ? expanded : reflected;
      return;
    }
    if (reflected.value < vertices_[vertices_.size() - 2].value) {
      worst = reflected;
      return;
    }
    const Vertex contracted = along(reflected.value < worst.value ? 0.5 : -0.5);
    if (contracted.value < std::min(reflected.value, worst.value)) {
      worst = contracted;
    } else {
      shrink();
    }
  }

 private:
  struct Vertex {
    std::vector<double> at;
    double value;
  };

  static bool lower(const Vertex& a, const Vertex& b) { return a.value < b.value; }

  Vertex evaluate(std::vector<double> at) {
    ++evaluations_;
    const double value = f_(at);
    return {std::move(at), value};
  }

  /// The point beyond the centre of all but the worst vertex, `t` times as far from it as the
  /// worst.
  Vertex along(double t) {
    const std::vector<double>& worst = vertices_.back().at;
    std::vector<double> at(worst.size());
    for (std::size_t j = 0; j < at.size(); ++j) {
      double centre = 0;
      for (std::size_t i = 0; i + 1 < vertices_.size(); ++i) centre += vertices_[i].at[j];
      centre /= static_cast<double>(vertices_.size() - 1);
      at[j] = centre + t * (centre - worst[j]);
    }
    return evaluate(std::move(at));
  }

  void shrink() {
    for (std::size_t i = 1; i < vertices_.size(); ++i) {
      std::vector<double> at = vertices_[i].at;
      for (std::size_t j = 0; j < at.size(); ++j) at[j] = (at[j] + vertices_.front().at[j]) / 2;
      vertices_[i] = evaluate(std::move(at));
    }
  }

  const Function& f_;
  std::vector<Vertex> vertices_;
  int evaluations_ = 0;
};

}  // namespace

std::vector<double> minimise(const Function& f, std::vector<double> start, double step,
                             int evaluations, int restarts) {
  assert(!start.empty() && step > 0);
  for (int i = 0; i < restarts; ++i) {
    Simplex simplex(f, start, step);
    while (simplex.evaluations() < evaluations) simplex.improve();
    start = simplex.best();
  }
  return start;
}

}  // namespace lockstep
