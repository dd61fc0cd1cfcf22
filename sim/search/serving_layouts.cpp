#include "sim/search/serving_layouts.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>

#include "models/generation/serving_replica.hpp"
#include "sim/scenario/serving_replica_spec.hpp"

namespace lockstep {
namespace {

constexpr int kMostPipeline = 8;

std::vector<int> powers_up_to(int most) {
  std::vector<int> out;
  for (int n = 1; n <= most; n *= 2) out.push_back(n);
  return out;
}

/// Widths of each axis that are tried.
struct Widths {
  std::vector<int> tensor, attention_data, expert;  ///< expert 0: all ranks of a stage
};

Widths widths_of(const ServingSpec& base, const ServingSpace& space) {
  const TransformerShape& m = base.model;
  const std::vector<int> within = powers_up_to(base.cluster.node.nvlink_domain);
  Widths out{space.tensor, space.attention_data, space.expert};
  if (out.tensor.empty()) out.tensor = within;
  if (out.attention_data.empty()) {
    out.attention_data = m.latent.key_value_rank > 0 ? within : std::vector<int>{1};
  }
  if (out.expert.empty()) {
    out.expert = m.experts.count > 0 ? std::vector<int>{1, 0} : std::vector<int>{1};
  }
  return out;
}

double longest_of(const ServingSpec& base) {
  double longest = 1;
  for (const ServedRequest& r : base.requests) {
    longest = std::max(longest, static_cast<double>(r.input) + r.output);
  }
  return longest;
}

/// Collects the layouts of one pipeline depth.
class LayoutCollector {
 public:
  LayoutCollector(const ServingSpec& base, const ServingPool& like, const ServingSpace& space)
      : base_(base), like_(like), widths_(widths_of(base, space)), longest_(longest_of(base)) {}

  void add_all(int pipeline) {
    for (const int tensor : widths_.tensor) {
      for (const int data : widths_.attention_data) {
        for (const int expert : widths_.expert) {
          ServingPool pool = like_;
          pool.replicas = 1;
          pool.tensor = tensor;
          pool.attention_data = data;
          pool.pipeline = pipeline;
          pool.expert = expert > 0 ? expert : tensor * data;
          const bool twice = expert == 0 && pool.expert == 1;
          if (!twice) add(std::move(pool));
        }
      }
    }
  }
  [[nodiscard]] FoundLayouts take() {
    std::ranges::stable_sort(out.pools, {}, [](const ServingPool& pool) { return pool.gpus(); });
    return std::move(out);
  }

  FoundLayouts out;

 private:
  void add(ServingPool pool) {
    ++out.looked_at;
    const int domain = std::max(base_.cluster.node.nvlink_domain, base_.cluster.node.gpus);
    const bool wide = widths_.tensor.size() > 1 && pool.tensor * pool.attention_data > domain;
    if (wide || pool.gpus() > base_.cluster.gpus() || layout_problem(pool, base_.model)) {
      ++out.refused;
      return;
    }
    const ServingReplica replica(replica_spec(pool, base_));
    if (replica.cache_tokens() < longest_ + pool.engine.serving->block) {
      ++out.over_memory;
      return;
    }
    out.pools.push_back(std::move(pool));
  }

  const ServingSpec& base_;
  const ServingPool& like_;
  Widths widths_;
  double longest_;
};

/// Each layout with each of the values that passes may take.
void spread_batching(const ServingSpace& space, std::vector<ServingPool>& pools) {
  const auto spread = [&](const std::vector<int>& values, int ServingEngine::* of) {
    if (values.empty()) return;
    std::vector<ServingPool> out;
    for (const ServingPool& pool : pools) {
      for (const int value : values) {
        out.push_back(pool);
        (*out.back().engine.serving).*of = value;
      }
    }
    pools = std::move(out);
  };
  spread(space.pass_tokens, &ServingEngine::pass_tokens);
  spread(space.most_sequences, &ServingEngine::most_sequences);
}

}  // namespace

FoundLayouts serving_layouts(const ServingSpec& base, const ServingPool& like,
                             const ServingSpace& space) {
  LayoutCollector collector(base, like, space);
  if (!space.pipeline.empty()) {
    for (const int stages : space.pipeline) collector.add_all(stages);
  } else {
    for (int stages = 1; stages <= kMostPipeline; stages *= 2) {
      collector.add_all(stages);
      if (!collector.out.pools.empty()) break;
    }
  }
  FoundLayouts found = collector.take();
  spread_batching(space, found.pools);
  return found;
}

std::string serving_layout_words(const ServingPool& pool) {
  std::string out = fmt::format("TP {}", pool.tensor);
  if (pool.pipeline > 1) out += fmt::format(", PP {}", pool.pipeline);
  if (pool.attention_data > 1) out += fmt::format(", attention DP {}", pool.attention_data);
  if (pool.expert > 1) out += fmt::format(", EP {}", pool.expert);
  return out;
}

namespace {

std::string way_words(const std::vector<ServingPool>& pools,
                      const std::function<std::string(const ServingPool&)>& place) {
  const auto words = [&](const ServingPool& pool) {
    return fmt::format("{} x {}{}", pool.replicas, serving_layout_words(pool), place(pool));
  };
  if (pools.size() == 1) return words(pools[0]);
  return fmt::format("prompts {}, decoding {}", words(pools[0]), words(pools[1]));
}

}  // namespace

std::string serving_way_words(const std::vector<ServingPool>& pools) {
  return way_words(pools, [](const ServingPool&) { return std::string(); });
}

std::string serving_way_words(const std::vector<ServingPool>& pools, const ServingSpec& base) {
  if (base.cluster.pools.empty()) return serving_way_words(pools);
  return way_words(pools,
                   [&](const ServingPool& pool) { return " on " + base.node_of(pool).name; });
}

}  // namespace lockstep
