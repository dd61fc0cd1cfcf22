#include "sim/measured/job_products.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "models/spec/layer.hpp"

namespace lockstep {
namespace {

struct MatrixOperator {
  std::string_view name;
  std::size_t first;  ///< argument that is the left matrix
};
constexpr std::array kMatrixOperators{
    MatrixOperator{"aten::mm", 0},       MatrixOperator{"aten::addmm", 1},
    MatrixOperator{"aten::addmm_", 1},   MatrixOperator{"aten::_addmm_activation", 1},
    MatrixOperator{"aten::bmm", 0},      MatrixOperator{"aten::baddbmm", 1},
    MatrixOperator{"aten::baddbmm_", 1}, MatrixOperator{"aten::_scaled_mm", 0},
    MatrixOperator{"aten::_int_mm", 0},
};

bool is_size(double recorded, double declared) { return std::abs(recorded - declared) < 0.5; }

/// Columns that may be a product of their own.
std::vector<double> parts_of(const Product& product, double ways, bool gated) {
  const double all = product.out.on(ways);
  std::vector<double> parts{all};
  const ModelOperator of = operator_of(product.names[0]);
  if (gated && (of == ModelOperator::mlp_up || product.names[0] == "expert_up")) {
    parts.push_back(all / 2);  // gate and up
  }
  if (of != ModelOperator::qkv || product.out.units == 0) return parts;
  const double queries = product.out.shared / ways, both = all - queries;
  parts.insert(parts.end(), {queries, queries / 2, both, both / 2});  // half: beside a gate
  return parts;
}

double ways_of(const Parallelism& par, Ways ways) {
  return ways == Ways::none ? 1 : ways == Ways::tensor ? par.tensor : par.expert_tensor;
}

}  // namespace

std::optional<ProductSizes> product_sizes(std::string_view name,
                                          std::span<const TensorShape> args) {
  const auto* const row = std::ranges::find(kMatrixOperators, name, &MatrixOperator::name);
  if (row == kMatrixOperators.end() || args.size() < row->first + 2) return std::nullopt;
  const TensorShape &a = args[row->first], &b = args[row->first + 1];
  if (a.size() < 2 || a.size() > 3 || a.size() != b.size()) return std::nullopt;
  const std::size_t last = a.size() - 1;
  if (a[last] != b[last - 1]) return std::nullopt;
  return ProductSizes{
      .m = a[last - 1], .k = a[last], .n = b[last], .count = last == 2 ? a[0] : 1.0};
}

JobProducts::JobProducts(const TrainingJob& job)
    : tokens_(static_cast<double>(job.batch.micro_sequences) * job.batch.tokens /
              job.parallelism.context),
      tensor_(job.parallelism.tensor),
      experts_(job.model.experts.count) {
  const auto all = {ModelOperator::embedding, ModelOperator::norm, ModelOperator::loss,
                    ModelOperator::optimiser};
  for (const ModelOperator of : all) has_[static_cast<std::size_t>(of)] = true;
  std::vector<LayerKind> done;
  for (int i = 0; i < job.model.layers; ++i) {
    const LayerKind kind = job.kind(i);
    if (std::ranges::find(done, kind) != done.end()) continue;
    done.push_back(kind);
    add_kind(job, kind);
  }
  add({.of = ModelOperator::head,
       .in = embedding_width(job.model),
       .out = job.model.vocabulary / tensor_});
}

void JobProducts::add(const Declared& product) {
  has_[static_cast<std::size_t>(product.of)] = true;
  if (std::ranges::find(products_, product) == products_.end()) products_.push_back(product);
}

void JobProducts::add_kind(const TrainingJob& job, LayerKind kind) {
  const Layer layer = declare_layer(job.model, kind);
  for_each_product(layer, [&](const Product& product) {
    const double ways = ways_of(job.parallelism, product.ways);
    for (const double out : parts_of(product, ways, layer.gated)) {
      add({.of = operator_of(product.names[0]),
           .in = product.in.on(ways),
           .out = out,
           .any_rows = product.of_experts()});
    }
  });
  for (const Row& row : layer.rows) {
    if (const auto* const kernel = std::get_if<Kernel>(&row)) {
      has_[static_cast<std::size_t>(operator_of(kernel->name))] = true;
    } else if (const auto* const core = std::get_if<Core>(&row)) {
      has_[static_cast<std::size_t>(ModelOperator::attention)] = true;
      head_dims_.push_back(core->head_dim);
      if (core->query_dim > 0) head_dims_.push_back(core->query_dim);
    }
  }
}

bool JobProducts::has_rows(const Declared& product, double rows) const {
  return product.any_rows || is_size(rows, tokens_) || is_size(rows, tokens_ / tensor_);
}

std::vector<ModelOperator> JobProducts::candidates(const ProductSizes& sizes, bool backward) const {
  std::vector<ModelOperator> out, of_any_rows;
  const auto add_to = [](ModelOperator of, std::vector<ModelOperator>& list) {
    if (std::ranges::find(list, of) == list.end()) list.push_back(of);
  };
  for (const Declared& each : products_) {
    const auto meet = [&](bool fits, double rows) {
      if (!fits) return;
      add_to(each.of, of_any_rows);
      if (has_rows(each, rows)) add_to(each.of, out);
    };
    if (!backward) {
      meet(is_size(sizes.k, each.in) && is_size(sizes.n, each.out), sizes.m);
      continue;
    }
    meet(is_size(sizes.k, each.out) && is_size(sizes.n, each.in), sizes.m);
    meet(is_size(sizes.m, each.out) && is_size(sizes.n, each.in), sizes.k);
    meet(is_size(sizes.m, each.in) && is_size(sizes.n, each.out), sizes.k);
  }
  return out.empty() ? of_any_rows : out;
}

bool JobProducts::is_over_heads(const ProductSizes& sizes) const {
  return sizes.count > 1 && std::ranges::any_of(head_dims_, [&](double dim) {
           return is_size(sizes.m, dim) || is_size(sizes.k, dim) || is_size(sizes.n, dim);
         });
}

bool JobProducts::is_over_experts(const TensorShape& shape) const {
  return experts_ > 1 && !shape.empty() && is_size(shape.back(), experts_);
}

std::optional<ModelOperator> JobProducts::of_weights(const TensorShape& shape) const {
  if (shape.size() != 2) return std::nullopt;
  std::optional<ModelOperator> out;
  for (const Declared& each : products_) {
    if (!is_size(shape[0], each.out) || !is_size(shape[1], each.in)) continue;
    if (out && *out != each.of) return std::nullopt;
    out = each.of;
  }
  return out;
}

}  // namespace lockstep
