#include "models/spec/adapters.hpp"

#include "models/spec/layer.hpp"

namespace lockstep {

double frozen_weight_bytes(const Adapters& a) {
  return a.base == BaseFormat::nf4 ? (4 + 0.127) / 8 : 2.0;
}

namespace {

/// Rows and columns of a product's thin matrices, all tensor-parallel ranks together.
double parameters_of(const Adapters& a, const Product& p) {
  if (!p.adapter || !a.on(*p.adapter)) return 0;
  return a.rank * (p.adapters * p.in.all() + p.out.all());
}
/// Of the products of routed experts, or of all others; of layers that have their weights together,
/// a part.
double parameters_of(const Adapters& a, const TransformerShape& m, LayerKind kind, bool experts) {
  double sum = 0;
  for_each_product(declare_layer(m, kind), [&](const Product& p) {
    if (p.of_experts() == experts) sum += parameters_of(a, p);
  });
  return sum / layers_together(m, kind);
}

/// What adapters of all layers have, by a function of a layer's kind.
template <class Count>
double over_layers(const TrainingJob& job, const Count& count) {
  PerKind<double> known;
  double sum = 0;
  for (int i = 0; job.adapters.any() && i < job.model.layers; ++i) {
    sum += known.at(job.kind(i), count);
  }
  return sum;
}

}  // namespace

bool has_product(const TransformerShape& m, LayerKind kind, AdapterModule module) {
  bool has = false;
  for_each_product(declare_layer(m, kind),
                   [&](const Product& p) { has = has || p.adapter == module; });
  return has;
}

int adapters_of(const Adapters& a, const TransformerShape& m, LayerKind kind) {
  int count = 0;
  for_each_product(declare_layer(m, kind), [&](const Product& p) {
    if (p.adapter && a.on(*p.adapter)) count += p.adapters;
  });
  return count;
}

double adapter_parameters(const Adapters& a, const TransformerShape& m, LayerKind kind) {
  return parameters_of(a, m, kind, false);
}

double expert_adapter_parameters(const TrainingJob& job, LayerKind kind) {
  const Parallelism& par = job.parallelism;
  const double here = static_cast<double>(job.model.experts.count) / par.expert;
  return parameters_of(job.adapters, job.model, kind, true) / par.expert_tensor *
         (job.adapters.experts == ExpertAdapters::own ? here : 1);
}

double adapter_parameters(const TrainingJob& job) {
  const Parallelism& par = job.parallelism;
  const double expert_ranks = static_cast<double>(par.expert) * par.expert_tensor;
  return over_layers(job, [&](LayerKind kind) {
    return adapter_parameters(job.adapters, job.model, kind) +
           expert_ranks * expert_adapter_parameters(job, kind);
  });
}

double met_adapter_parameters(const TrainingJob& job) {
  const double copies = job.model.experts.per_token * expert_load(job).kept;
  return over_layers(job, [&](LayerKind kind) {
    const Layer layer = declare_layer(job.model, kind);
    const Lengths lengths = lengths_of(layer, job.batch);
    double sum = 0;
    for_each_product(layer, [&](const Product& p) {
      sum += (p.of_experts() ? copies : 1) * rows_per_token(p, lengths, job.batch) *
             parameters_of(job.adapters, p);
    });
    return sum;
  });
}

}  // namespace lockstep
