#include "sim/measured/recorded_operators.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_map>

#include "sim/measured/kernel_kinds.hpp"
#include "sim/measured/operator_words.hpp"
#include "sim/measured/recorded_step.hpp"

namespace lockstep {
namespace {

/// What runs between two products, whichever comes first.
struct Between {
  ModelOperator one, other, of;
};
constexpr std::array kBetween{
    Between{ModelOperator::embedding, ModelOperator::qkv, ModelOperator::norm},
    Between{ModelOperator::qkv, ModelOperator::attention, ModelOperator::rotary},
    Between{ModelOperator::attention, ModelOperator::projection, ModelOperator::attention},
    Between{ModelOperator::projection, ModelOperator::mlp_up, ModelOperator::norm},
    Between{ModelOperator::projection, ModelOperator::router, ModelOperator::norm},
    Between{ModelOperator::mlp_up, ModelOperator::mlp_down, ModelOperator::activation},
    Between{ModelOperator::mlp_down, ModelOperator::qkv, ModelOperator::norm},
    Between{ModelOperator::mlp_down, ModelOperator::head, ModelOperator::norm},
    Between{ModelOperator::head, ModelOperator::loss, ModelOperator::loss},
};

/// A layer's course: what kernels without a name lie between.
constexpr std::array kAnchors{ModelOperator::embedding, ModelOperator::qkv,
                              ModelOperator::attention, ModelOperator::projection,
                              ModelOperator::router,    ModelOperator::experts,
                              ModelOperator::mlp_up,    ModelOperator::mlp_down,
                              ModelOperator::head,      ModelOperator::loss};

/// What tells the two products around attention apart.
constexpr std::array kBlocks{ModelOperator::attention, ModelOperator::router,
                             ModelOperator::experts,   ModelOperator::mlp_up,
                             ModelOperator::mlp_down,  ModelOperator::head};

template <std::size_t N>
bool is_in(const std::array<ModelOperator, N>& list, ModelOperator of) {
  return std::ranges::find(list, of) != list.end();
}

bool has_text(std::string_view name, std::string_view word) {
  return name.find(word) != std::string_view::npos;
}

/// Casts of weights and copies of exchanges, which lie anywhere.
bool has_no_place(std::string_view name) {
  return has_text(name, "fsdp::") || has_text(name, "c10d::") || name == "aten::linear";
}

class OperatorFinder {
 public:
  OperatorFinder(const KinetoRecording& recording, const JobProducts& products)
      : recording_(recording), products_(products), out_(recording.gpu.size()) {
    named_.reserve(recording.names.size());
    for (const std::string& name : recording.names) {
      named_.push_back(named_operators(name));
      kinds_.push_back(kernel_kind(name));
    }
    backward_.reserve(recording.launchers.size());
    for (const KinetoRecording::Launcher& chain : recording.launchers) {
      backward_.push_back(static_cast<char>(is_backward(chain)));
    }
  }

  std::vector<RecordedOperator> find() {
    for (std::uint32_t e = 0; e < out_.size(); ++e) {
      const RecordedPart part = recorded_part(recording_, recording_.gpu[e]);
      parts_.push_back(part);
      if (part == RecordedPart::product) {
        find_product(e);
      } else if (part == RecordedPart::memory) {
        find_named(e);
      }
      note_block(e);
    }
    learn_forward();
    follow_forward(RecordedPart::product);
    find_places();
    learn_forward();
    follow_forward(RecordedPart::memory);
    return std::move(out_);
  }

 private:
  /// Inside a node of autograd, but for what it computes once more.
  [[nodiscard]] bool is_backward(const KinetoRecording::Launcher& chain) const {
    for (const KinetoRecording::Enclosing& each : chain) {
      const std::string& name = recording_.names[each.name];
      if (name == "aten::linear" || name == "aten::matmul") return false;
      if (has_text(name, "Backward")) return !has_text(name, "Checkpoint");
    }
    return false;
  }
  [[nodiscard]] const KinetoRecording::Launcher& chain_of(std::uint32_t e) const {
    static const KinetoRecording::Launcher kNobody;
    const std::uint32_t launcher = recording_.gpu[e].launcher;
    return launcher == KinetoRecording::kNoLauncher ? kNobody : recording_.launchers[launcher];
  }
  [[nodiscard]] bool goes_back(std::uint32_t e) const {
    const std::uint32_t launcher = recording_.gpu[e].launcher;
    return launcher != KinetoRecording::kNoLauncher && backward_[launcher] != 0;
  }
  [[nodiscard]] bool names(std::uint32_t name, ModelOperator of) const {
    return std::ranges::find(named_[name], of) != named_[name].end();
  }
  /// Whether the kernel's name or one around it names the operator.
  [[nodiscard]] bool is_named(std::uint32_t e, ModelOperator of) const {
    return names(recording_.gpu[e].name, of) ||
           std::ranges::any_of(chain_of(e), [&](const KinetoRecording::Enclosing& each) {
             return names(each.name, of);
           });
  }
  [[nodiscard]] std::span<const TensorShape> arguments(
      const KinetoRecording::Enclosing& each) const {
    if (each.shapes == KinetoRecording::kNoShapes) return {};
    return recording_.shapes[each.shapes];
  }

  /// Behind a product that could be any, nobody knows where in a layer the next one is.
  void note_block(std::uint32_t e) {
    if (out_[e].of && is_in(kBlocks, *out_[e].of)) {
      before_ = out_[e].of;
      lost_ = false;
    } else if (parts_[e] == RecordedPart::product && !out_[e].of && !sized_) {
      lost_ = true;
    }
  }

  void find_product(std::uint32_t e) {
    sized_ = false;
    if (kinds_[recording_.gpu[e].name] == KernelKind::attention) {
      out_[e].of = ModelOperator::attention;
      return;
    }
    for (const ModelOperator of :
         {ModelOperator::optimiser, ModelOperator::attention, ModelOperator::experts}) {
      if (!is_named(e, of)) continue;
      out_[e].of = of;
      return;
    }
    const std::uint32_t launcher = recording_.gpu[e].launcher;
    if (launcher == KinetoRecording::kNoLauncher) return;
    // Of a product that is cut into parts, all of its kernels.
    const auto [at, added] = by_launcher_.try_emplace(launcher);
    if (added) at->second = product_of(e);
    out_[e] = at->second;
  }
  /// By the sizes of the product around the launch, or by the weights that a function of some
  /// framework's got.
  [[nodiscard]] RecordedOperator product_of(std::uint32_t e) {
    for (const KinetoRecording::Enclosing& each : chain_of(e)) {
      const auto sizes = product_sizes(recording_.names[each.name], arguments(each));
      if (!sizes) continue;
      RecordedOperator out{.of = chosen(*sizes, goes_back(e)), .sized = true};
      out.of_other_job = !out.of && !sized_;
      return out;
    }
    if (goes_back(e)) return {};
    for (const KinetoRecording::Enclosing& each : chain_of(e)) {
      for (const TensorShape& shape : arguments(each)) {
        if (const auto of = products_.of_weights(shape)) return {.of = of};
      }
    }
    return {};
  }
  [[nodiscard]] std::optional<ModelOperator> chosen(const ProductSizes& sizes, bool backward) {
    const std::vector<ModelOperator> may_be = products_.candidates(sizes, backward);
    sized_ = !may_be.empty();
    if (sizes.count > 1) {
      if (may_be.size() == 1 && may_be.front() == ModelOperator::experts) return may_be.front();
      return products_.is_over_heads(sizes) ? std::optional(ModelOperator::attention)
                                            : std::nullopt;
    }
    if (may_be.size() == 1) return may_be.front();
    // As wide as each other in many models. Forward the output's comes behind attention, backward
    // those of queries, keys and values do.
    const auto is = [&](ModelOperator of) { return std::ranges::find(may_be, of) != may_be.end(); };
    if (lost_ || may_be.size() != 2 || !is(ModelOperator::qkv) || !is(ModelOperator::projection)) {
      return std::nullopt;
    }
    const bool behind = before_ == ModelOperator::attention;
    return behind != backward ? ModelOperator::projection : ModelOperator::qkv;
  }

  void find_named(std::uint32_t e) {
    if (is_named(e, ModelOperator::optimiser)) {
      out_[e].of = ModelOperator::optimiser;
      return;
    }
    if (take_name(recording_.gpu[e].name, out_[e])) return;
    const KinetoRecording::Launcher& chain = chain_of(e);
    if (!chain.empty() &&
        product_sizes(recording_.names[chain.front().name], arguments(chain.front()))) {
      find_product(e);  // its bias
      return;
    }
    for (const KinetoRecording::Enclosing& each : chain) {
      if (take_name(each.name, out_[e])) return;
      if (!has_text(recording_.names[each.name], "softmax")) continue;
      const std::span<const TensorShape> args = arguments(each);
      out_[e].of = !args.empty() && products_.is_over_experts(args[0]) ? ModelOperator::router
                                                                       : ModelOperator::attention;
      return;
    }
  }
  /// Whether the name tells anything.
  bool take_name(std::uint32_t name, RecordedOperator& out) const {
    const std::vector<ModelOperator>& named = named_[name];
    if (named.size() == 1) out.of = named.front();
    out.of_several = named.size() > 1;
    return !named.empty();
  }

  /// Which operator each call of the forward pass is of, by autograd's number.
  void learn_forward() {
    for (std::uint32_t e = 0; e < out_.size(); ++e) {
      if (goes_back(e) || !out_[e].of) continue;
      const KinetoRecording::Launcher& chain = chain_of(e);
      const auto numbered = std::ranges::find_if(
          chain, [](const auto& each) { return each.sequence != KinetoRecording::kNoId; });
      if (numbered == chain.end()) continue;
      const auto [at, added] = forward_.try_emplace(numbered->sequence, out_[e]);
      if (!added && at->second.of != out_[e].of) at->second.of.reset();
    }
  }
  /// Kernels of the backward pass that are still of none are of what their call is of.
  void follow_forward(RecordedPart part) {
    for (std::uint32_t e = 0; e < out_.size(); ++e) {
      if (parts_[e] != part || !goes_back(e) || out_[e].of || out_[e].of_several) continue;
      const KinetoRecording::Launcher& chain = chain_of(e);
      const auto node = std::ranges::find_if(chain, [&](const auto& each) {
        return each.sequence != KinetoRecording::kNoId &&
               has_text(recording_.names[each.name], "Backward");
      });
      if (node == chain.end()) continue;
      const auto at = forward_.find(node->sequence);
      if (at != forward_.end()) out_[e] = at->second;
    }
  }

  /// Memory-bound kernels without a name between two products of their stream.
  void find_places() {
    struct Course {
      std::optional<ModelOperator> last;
      std::vector<std::uint32_t> since;
    };
    std::vector<Course> streams(recording_.streams);
    for (std::uint32_t e = 0; e < out_.size(); ++e) {
      Course& course = streams[recording_.gpu[e].stream];
      const auto of = out_[e].of;
      if (of && is_in(kAnchors, *of)) {
        place(course.last, *of, course.since);
        course = {.last = of, .since = {}};
      } else if (of == ModelOperator::optimiser || (!of && parts_[e] == RecordedPart::product)) {
        course = {};
      } else if (!of && parts_[e] == RecordedPart::memory && has_place(e)) {
        course.since.push_back(e);
      }
    }
  }
  [[nodiscard]] bool has_place(std::uint32_t e) const {
    return !out_[e].of_several && std::ranges::none_of(chain_of(e), [&](const auto& each) {
      return has_no_place(recording_.names[each.name]);
    });
  }
  void place(std::optional<ModelOperator> last, ModelOperator next,
             const std::vector<std::uint32_t>& events) {
    if (!last) return;
    const auto* const row = std::ranges::find_if(kBetween, [&](const Between& each) {
      return (each.one == *last && each.other == next) || (each.one == next && each.other == *last);
    });
    if (row == kBetween.end() || !products_.has(row->of)) return;
    for (const std::uint32_t e : events) out_[e] = {.of = row->of, .by_place = true};
  }

  const KinetoRecording& recording_;
  const JobProducts& products_;
  std::vector<RecordedOperator> out_;              ///< by event
  std::vector<RecordedPart> parts_;                ///< the same
  std::vector<std::vector<ModelOperator>> named_;  ///< by name
  std::vector<KernelKind> kinds_;                  ///< the same
  std::vector<char> backward_;                     ///< by launcher
  std::optional<ModelOperator> before_;            ///< the last one of kBlocks
  bool lost_ = false;                              ///< where that is
  bool sized_ = false;  ///< the last product's sizes are of some operator
  std::unordered_map<std::uint32_t, RecordedOperator> by_launcher_;
  std::unordered_map<std::int64_t, RecordedOperator> forward_;
};

}  // namespace

std::vector<RecordedOperator> recorded_operators(const KinetoRecording& recording,
                                                 const JobProducts& products) {
  return OperatorFinder(recording, products).find();
}

}  // namespace lockstep
