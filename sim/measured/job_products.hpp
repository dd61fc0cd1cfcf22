/// Which of a job's matrix products a recorded one is, by its sizes.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "models/spec/specs.hpp"
#include "sim/measured/model_operators.hpp"
#include "sim/trace/pytorch/operator_work.hpp"

namespace lockstep {

/// m x k times k x n, `count` of them.
struct ProductSizes {
  double m = 0, k = 0, n = 0, count = 1;
};

/// Of the arguments of mm, addmm, bmm, baddbmm, _scaled_mm; nothing for other operators and for
/// shapes that do not fit.
std::optional<ProductSizes> product_sizes(std::string_view name, std::span<const TensorShape> args);

/// The products that one rank of a job runs.
class JobProducts {
 public:
  explicit JobProducts(const TrainingJob& job);

  /// Operators whose forward product, or one of its two gradients, has these sizes: each once.
  /// Where none has as many rows as the rank's micro batch, those of any rows.
  [[nodiscard]] std::vector<ModelOperator> candidates(const ProductSizes& sizes,
                                                      bool backward) const;
  /// Whether the job has an operator at all.
  [[nodiscard]] bool has(ModelOperator of) const { return has_[static_cast<std::size_t>(of)]; }
  /// Whether a product over each head is as wide as the model's heads.
  [[nodiscard]] bool is_over_heads(const ProductSizes& sizes) const;
  /// Whether a row is as wide as the router's choice.
  [[nodiscard]] bool is_over_experts(const TensorShape& shape) const;
  /// The operator of which all weights are so large; none where several are.
  [[nodiscard]] std::optional<ModelOperator> of_weights(const TensorShape& shape) const;

 private:
  struct Declared {
    ModelOperator of;
    double in = 0, out = 0;
    bool any_rows = false;  ///< of experts, which get as many tokens as they get
    friend bool operator==(const Declared&, const Declared&) = default;
  };
  void add(const Declared& product);
  void add_kind(const TrainingJob& job, LayerKind kind);
  [[nodiscard]] bool has_rows(const Declared& product, double rows) const;

  std::vector<Declared> products_;
  std::vector<double> head_dims_;
  std::array<bool, kModelOperators> has_{};
  double tokens_ = 0, tensor_ = 1, experts_ = 0;
};

}  // namespace lockstep
