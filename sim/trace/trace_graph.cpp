#include "sim/trace/trace_graph.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace lockstep {

TraceSuccessors successors_of(const Trace& trace) {
  const std::size_t count = trace.size();
  TraceSuccessors out;
  out.first.resize(count + 1);
  out.list.resize(trace.dependencies.size());
  for (const std::uint32_t d : trace.dependencies) ++out.first[d];
  std::uint32_t sum = 0;
  for (std::uint32_t& first : out.first) sum += std::exchange(first, sum);
  // Filling moves each start to its end, which is the start of the next one.
  for (std::uint32_t n = 0; n < count; ++n) {
    for (const std::uint32_t d : trace.dependencies_of(n)) out.list[out.first[d]++] = n;
  }
  for (std::size_t n = count; n > 0; --n) out.first[n] = out.first[n - 1];
  out.first[0] = 0;
  return out;
}

namespace {

/// Whether every node comes after those that it waits for, as it mostly does.
bool goes_forward(const Trace& trace) {
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    for (const std::uint32_t d : trace.dependencies_of(n)) {
      if (d >= n) return false;
    }
  }
  return true;
}

StepTime longest_path_forward(const Trace& trace) {
  std::vector<StepTime> done;
  StepTime longest;
  for (std::size_t rank = 0; rank + 1 < trace.rank_first.size(); ++rank) {
    const std::uint32_t first = trace.rank_first[rank];
    done.assign(trace.rank_first[rank + 1] - first, {});
    for (std::uint32_t n = first; n < trace.rank_first[rank + 1]; ++n) {
      StepTime& own = done[n - first];
      for (const std::uint32_t d : trace.dependencies_of(n)) own = std::max(own, done[d - first]);
      if (takes_time(trace.nodes[n].kind)) {
        own = std::min(own + trace.nodes[n].duration, kLongestReplay);
      }
      longest = std::max(longest, own);
    }
  }
  return longest;
}

}  // namespace

StepTime longest_path(const Trace& trace, const TraceSuccessors& successors) {
  if (goes_forward(trace)) return longest_path_forward(trace);
  std::vector<std::uint32_t> unmet, order;
  std::vector<StepTime> done(trace.size());
  unmet.reserve(trace.size());
  order.reserve(trace.size());
  for (std::uint32_t n = 0; n < trace.size(); ++n) {
    unmet.push_back(static_cast<std::uint32_t>(trace.dependencies_of(n).size()));
    if (unmet.back() == 0) order.push_back(n);
  }
  StepTime longest;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::uint32_t n = order[i];
    if (takes_time(trace.nodes[n].kind)) {
      done[n] = std::min(done[n] + trace.nodes[n].duration, kLongestReplay);
    }
    longest = std::max(longest, done[n]);
    for (std::uint32_t s = successors.first[n]; s < successors.first[n + 1]; ++s) {
      StepTime& later = done[successors.list[s]];
      later = std::max(later, done[n]);
      if (--unmet[successors.list[s]] == 0) order.push_back(successors.list[s]);
    }
  }
  return longest;
}

std::vector<TraceCallTimes> call_times(
    const Trace& trace, const std::vector<CallTotals>& totals,
    const std::function<std::string_view(std::uint32_t)>& algorithm) {
  std::vector<TraceCallTimes> out;
  std::map<std::tuple<CollectiveOp, double, int, std::string_view>, std::size_t> index;
  for (std::uint32_t i = 0; i < totals.size(); ++i) {
    if (totals[i].calls == 0) continue;
    const TraceCollective& spec = trace.collectives[i];
    const auto members = static_cast<int>(trace.groups[spec.group].size());
    const auto [at, added] =
        index.try_emplace({spec.op, spec.payload.base_units(), members, algorithm(i)}, out.size());
    if (added) {
      TraceCallTimes& fresh = out.emplace_back();
      fresh.op = spec.op;
      fresh.payload = spec.payload;
      fresh.members = members;
      fresh.algorithm = algorithm(i);
    }
    TraceCallTimes& times = out[at->second];
    times.calls += totals[i].calls;
    times.moving += to_seconds(totals[i].moving);
    times.waiting += to_seconds(totals[i].waiting);
  }
  std::ranges::stable_sort(
      out, [](const TraceCallTimes& a, const TraceCallTimes& b) { return a.moving > b.moving; });
  return out;
}

}  // namespace lockstep
