#include "sim/search/compare/differences.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "models/base/json_text.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostTries = 2'000;
constexpr std::array<std::string_view, 15> kOrder{
    "model",      "cluster", "precision", "stack", "parallelism", "batch", "recompute", "routing",
    "stragglers", "run",     "training",  "power", "cost",        "price", "profile"};

/// Values that say one thing together: how large the job is, in which order passes run, what is
/// sharded, what context-parallel and expert-parallel ranks exchange.
struct FamilyMember {
  std::string_view pointer;
  int family;
};
constexpr std::array kFamilies{
    FamilyMember{"/cluster/nodes", 1},
    FamilyMember{"/cluster/pools", 1},
    FamilyMember{"/cluster/across", 1},
    FamilyMember{"/batch/sequences", 1},
    FamilyMember{"/batch/micro_batches", 1},
    FamilyMember{"/parallelism/data", 1},
    FamilyMember{"/parallelism/schedule", 2},
    FamilyMember{"/parallelism/schedule_file", 2},
    FamilyMember{"/parallelism/virtual_stages", 2},
    FamilyMember{"/parallelism/layers_per_stage", 2},
    FamilyMember{"/parallelism/embedding", 2},
    FamilyMember{"/parallelism/output", 2},
    FamilyMember{"/parallelism/sharding", 3},
    FamilyMember{"/parallelism/shard_group", 3},
    FamilyMember{"/parallelism/reshard", 3},
    FamilyMember{"/parallelism/prefetch", 3},
    FamilyMember{"/parallelism/context", 4},
    FamilyMember{"/parallelism/context_exchange", 4},
    FamilyMember{"/offload/optimiser", 6},
    FamilyMember{"/offload/parameters", 6},
    FamilyMember{"/parallelism/expert", 5},
    FamilyMember{"/parallelism/expert_tensor", 5},
    FamilyMember{"/parallelism/expert_dispatch", 5},
    FamilyMember{"/parallelism/expert_overlap", 5},
};

/// Families as one change each, every other difference by itself, in the order of their firsts.
std::vector<Change> by_family(const std::vector<Difference>& all) {
  std::vector<Change> out;
  std::vector<int> families;
  for (const Difference& difference : all) {
    const auto member = std::ranges::find(kFamilies, difference.pointer, &FamilyMember::pointer);
    const int family = member == kFamilies.end() ? 0 : member->family;
    const auto known = family == 0 ? families.end() : std::ranges::find(families, family);
    if (known != families.end()) {
      out[static_cast<std::size_t>(known - families.begin())].push_back(difference);
      continue;
    }
    families.push_back(family);
    out.push_back({difference});
  }
  return out;
}

void make_changes(const Change& change, Json& scenario) {
  for (const Difference& difference : change) make_change(difference, scenario);
}

std::size_t place_of(std::string_view key) {
  return static_cast<std::size_t>(std::ranges::find(kOrder, key) - kOrder.begin());
}

void compare_objects(const Json& a, const Json& b, const std::string& pointer,
                     std::vector<Difference>& out) {
  const auto below = [&](const std::string& key) { return pointer + "/" + pointer_part(key); };
  for (const auto& [key, value] : a.items()) {
    if (!b.contains(key)) {
      out.push_back({.pointer = below(key), .from = value});
    } else if (value.is_object() && b[key].is_object()) {
      compare_objects(value, b[key], below(key), out);
    } else if (nlohmann::json(value) != nlohmann::json(b[key])) {  // whatever the order of keys
      out.push_back({.pointer = below(key), .from = value, .to = b[key]});
    }
  }
  for (const auto& [key, value] : b.items()) {
    if (!a.contains(key)) out.push_back({.pointer = below(key), .to = value});
  }
}

/// The next choice of `count` of `n` things, in order; false after the last.
bool next_choice(std::vector<std::size_t>& chosen, std::size_t n) {
  std::size_t i = chosen.size();
  while (i > 0 && chosen[i - 1] == n - chosen.size() + i - 1) --i;
  if (i == 0) return false;
  ++chosen[i - 1];
  for (; i < chosen.size(); ++i) chosen[i] = chosen[i - 1] + 1;
  return true;
}

/// The smallest valid change from `now`; all of `left` where none was found in time.
std::vector<std::size_t> smallest_change(const Json& now, const std::vector<Change>& left,
                                         const std::function<bool(const Json&)>& valid) {
  std::size_t tries = 0;
  for (std::size_t size = 1; size < left.size(); ++size) {
    std::vector<std::size_t> chosen(size);
    for (std::size_t i = 0; i < size; ++i) chosen[i] = i;
    do {
      if (++tries > kMostTries) break;
      Json next = now;
      for (const std::size_t i : chosen) make_changes(left[i], next);
      if (valid(next)) return chosen;
    } while (next_choice(chosen, left.size()));
  }
  std::vector<std::size_t> all(left.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  return all;
}

}  // namespace

void drop_remarks(Json& scenario) {
  for (const char* key : {"$schema", "about", "expect"}) scenario.erase(key);
}

std::vector<Difference> differences(const Json& a, const Json& b) {
  std::vector<Difference> found, out;
  compare_objects(a, b, "", found);
  for (std::size_t place = 0; place <= kOrder.size(); ++place) {
    for (const Difference& difference : found) {
      const std::string_view pointer = difference.pointer;
      if (place_of(pointer.substr(1, pointer.find('/', 1) - 1)) == place) out.push_back(difference);
    }
  }
  return out;
}

void make_change(const Difference& difference, Json& scenario) {
  const Json::json_pointer place(difference.pointer);
  if (difference.to.is_discarded()) {
    scenario[place.parent_pointer()].erase(place.back());
  } else {
    scenario[place] = difference.to;
  }
}

std::vector<Change> steps_between(const Json& a, const std::vector<Difference>& all,
                                  const std::function<bool(const Json&)>& valid) {
  std::vector<Change> steps, left = by_family(all);
  Json now = a;
  while (!left.empty()) {
    const std::vector<std::size_t> chosen = smallest_change(now, left, valid);
    Change step;
    for (const std::size_t i : chosen) {
      make_changes(left[i], now);
      step.insert(step.end(), left[i].begin(), left[i].end());
    }
    for (std::size_t i = chosen.size(); i-- > 0;) {
      left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen[i]));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

}  // namespace lockstep
