#include "models/accuracy/residuals.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <set>
#include <tuple>

namespace lockstep {
namespace {

/// Sources that have to have measured a release before it counts as known: of one alone nobody can
/// say what is the software's and what the cluster's.
constexpr std::size_t kReleaseSources = 2;

/// The sources of a stack, and those of one release of it.
struct StackSources {
  std::set<std::string_view> stack, release;
};
StackSources sources_of(const ResidualTable& table, const PredictionTraits& traits,
                        std::string_view without) {
  StackSources out;
  for (const Residual& r : table) {
    if (r.is_of(without) || r.traits.stack != traits.stack) continue;
    out.stack.insert(r.source);
    if (r.traits.release == traits.release) out.release.insert(r.source);
  }
  return out;
}

/// Median of the logarithm of what the default stack is off by, of runs of any software.
std::optional<double> default_bias(const ResidualTable& table, std::string_view without) {
  std::vector<double> errors;
  for (const Residual& r : table) {
    if (r.as_default && !r.is_of(without)) errors.push_back(*r.as_default);
  }
  if (errors.empty()) return std::nullopt;
  const auto middle = errors.begin() + static_cast<std::ptrdiff_t>(errors.size() / 2);
  std::ranges::nth_element(errors, middle);
  return *middle;
}

void judge_software(const ResidualTable& table, const PredictionTraits& traits,
                    std::string_view without, Knowledge& out) {
  out.software = SoftwareKnown::none;
  out.gaps.insert(out.gaps.end(), traits.unknown_software.begin(), traits.unknown_software.end());
  if (traits.learnt && traits.unknown_software.empty()) {
    out.software = SoftwareKnown::learnt;
    if (traits.learnt->distance > 0) {
      out.gaps.push_back(fmt::format("{} thing{} that no measured step had",
                                     traits.learnt->distance,
                                     traits.learnt->distance == 1 ? "" : "s"));
    }
    return;
  }
  const auto bias = traits.stack_stands_in ? default_bias(table, without) : std::nullopt;
  if (bias) {
    out.gaps.push_back(
        fmt::format("the default stack's steps are {:.0f} % too {} for published runs",
                    100 * std::abs(std::expm1(*bias)), *bias > 0 ? "long" : "short"));
  }
  if (traits.stack_stands_in || !traits.unknown_software.empty()) return;
  if (traits.composed) {
    const bool witnessed = std::ranges::any_of(
        table, [&](const Residual& r) { return r.composed && !r.is_of(without); });
    if (witnessed) out.software = SoftwareKnown::composed;
    out.gaps.emplace_back("composed from what it does, no published run of it");
    return;
  }
  const StackSources sources = sources_of(table, traits, without);
  if (sources.stack.empty()) {
    out.gaps.emplace_back("no published run of this stack");
    return;
  }
  if (!out.architecture) return;
  out.software = SoftwareKnown::stack;
  if (traits.release.empty()) {
    out.gaps.emplace_back("no release given");
  } else if (traits.release_stands_in || sources.release.empty()) {
    out.gaps.emplace_back("no published run of this release");
  } else if (sources.release.size() < kReleaseSources) {
    out.gaps.emplace_back("one source measured this release");
  } else {
    out.software = SoftwareKnown::release;
  }
}

void judge_machine(const ResidualTable& table, const PredictionTraits& traits,
                   std::string_view without, Knowledge& out) {
  out.network = traits.network.empty();
  out.fabric = traits.fabric.empty();
  const std::string_view maker = maker_of(traits.architecture);
  for (const Residual& r : table) {
    if (r.is_of(without)) continue;
    out.gpu = out.gpu || r.traits.gpu == traits.gpu;
    out.architecture = out.architecture || r.traits.architecture == traits.architecture;
    out.maker = out.maker || maker_of(r.traits.architecture) == maker;
    out.network = out.network || r.traits.network == traits.network;
    out.fabric = out.fabric || r.traits.fabric == traits.fabric;
  }
  const auto gap = [&](bool known, const char* words, const std::string& name) {
    if (!known) out.gaps.push_back(std::string(words) + name);
  };
  if (!out.maker) {
    out.gaps.push_back(fmt::format("unvalidated: no published run on any GPU of {}", maker));
  }
  gap(out.architecture || !out.maker, "no published run on GPUs of architecture ",
      traits.architecture);
  gap(out.gpu || !out.architecture, "no published run on ", traits.gpu);
  gap(out.network, "no published run over ", traits.network);
  gap(out.fabric, "no published run on a fabric of kind ", traits.fabric);
  out.others = static_cast<int>(traits.strange.size());
  out.gaps.insert(out.gaps.end(), traits.strange.begin(), traits.strange.end());
}

/// Whether two rows are the same to software_known(), whatever it leaves out.
bool run_alike(const Residual& a, const Residual& b) {
  const PredictionTraits &s = a.traits, &t = b.traits;
  return a.source == b.source && a.vendor == b.vendor && s.stack == t.stack &&
         s.release == t.release && s.architecture == t.architecture;
}

}  // namespace

std::string_view maker_of(std::string_view architecture) {
  return architecture.starts_with("cdna") ? "AMD" : "NVIDIA";
}

Knowledge knowledge_of(const ResidualTable& table, const PredictionTraits& traits,
                       std::string_view without) {
  Knowledge machine;
  judge_machine(table, traits, without, machine);
  Knowledge out = machine;
  out.gaps.clear();
  judge_software(table, traits, without, out);
  out.gaps.insert(out.gaps.end(), machine.gaps.begin(), machine.gaps.end());
  return out;
}

SoftwareKnown software_known(const ResidualTable& table, const PredictionTraits& traits,
                             std::string_view without) {
  return knowledge_of(table, traits, without).software;
}

void classify(ResidualTable& table) {
  // One row of each source, software, GPU and network says what all of them would.
  ResidualTable distinct;
  using Key = std::tuple<std::string_view, std::string_view, std::string_view, std::string_view>;
  std::set<Key> seen;
  for (const Residual& r : table) {
    if (!distinct.empty() && run_alike(distinct.back(), r)) continue;
    const PredictionTraits& t = r.traits;
    if (seen.emplace(r.source, t.stack, t.release, t.architecture).second) distinct.push_back(r);
  }
  // Rows have no other traits that software_known() looks at.
  std::map<Key, SoftwareKnown> known;
  const auto known_without = [&](const Residual& r, const std::string& without) {
    const PredictionTraits& t = r.traits;
    const auto [place, is_new] =
        known.try_emplace(Key{without, t.stack, t.release, t.architecture});
    if (is_new) place->second = software_known(distinct, t, without);
    return place->second;
  };
  // Those that were run alike follow each other.
  const Residual* before = nullptr;
  for (Residual& r : table) {
    const bool alike = before != nullptr && run_alike(*before, r);
    r.left_out_known = alike ? before->left_out_known : known_without(r, r.source);
    r.vendor_left_out_known = alike ? before->vendor_left_out_known : known_without(r, r.vendor);
    before = &r;
  }
}

std::string_view name_of(SoftwareKnown known) {
  switch (known) {
    case SoftwareKnown::release:
      return "known release";
    case SoftwareKnown::stack:
      return "known stack";
    case SoftwareKnown::learnt:
      return "own steps";
    case SoftwareKnown::composed:
      return "composed software";
    case SoftwareKnown::none:
      return "unknown software";
  }
  return {};
}

std::string_view kind_of(const PredictionTraits& traits) {
  return traits.experts ? "experts" : traits.sharded_weights ? "sharded weights" : "dense";
}

}  // namespace lockstep
