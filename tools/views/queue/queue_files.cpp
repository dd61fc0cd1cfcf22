#include "tools/views/queue/queue_files.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "models/base/number_text.hpp"
#include "models/base/write_json.hpp"
#include "tools/views/queue/node_names.hpp"

namespace lockstep {
namespace {

constexpr double kQueueMicro = 1e6;

/// The begin ("b") or end ("e") of a job on a node.
std::string job_edge(char phase, const std::string& name, const JobSpan& span, int node,
                     RunTime at) {
  return fmt::format(
      ",\n{{\"ph\":\"{}\",\"cat\":\"job\",\"id\":{},\"name\":{},\"pid\":{},\"tid\":0,\"ts\":{:.3f}}"
      "}",
      phase, span.job, name, node, kQueueMicro * to_seconds(at).base_units());
}

/// One gauge: its value at the middle of each bin.
std::string gauge(std::string_view name, std::string_view help, double bin_s, std::size_t bins,
                  const std::function<double(std::size_t)>& value) {
  std::string out = fmt::format("# HELP {0} {1}\n# TYPE {0} gauge\n", name, help);
  for (std::size_t b = 0; b < bins; ++b) {
    out += fmt::format("{} {} {}\n", name, number_text(value(b)),
                       number_text((static_cast<double>(b) + 0.5) * bin_s));
  }
  return out;
}

}  // namespace

std::string queue_timeline(const QueueAnswer& a) {
  std::set<int> nodes;
  for (const JobSpan& span : a.result.spans) {
    for (const HeldGpus& held : span.held) nodes.insert(held.node);
  }
  std::string out = R"({"displayTimeUnit":"ms","traceEvents":[)";
  std::string_view between;
  for (const int node : nodes) {
    out += fmt::format(
        "{}\n{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":\"{}\"}}}}",
        between, node, node_name(a.spec, node));
    between = ",";
  }
  for (const JobSpan& span : a.result.spans) {
    if (span.end <= span.begin) continue;
    const std::string name = write_json(nlohmann::json(a.spec.job_name(span.job)));
    for (const HeldGpus& held : span.held) {
      out += job_edge('b', name, span, held.node, span.begin);
      out += job_edge('e', name, span, held.node, span.end);
    }
  }
  return out + "\n]}\n";
}

std::string queue_metrics(const QueueAnswer& a) {
  const QueueSeries& s = a.result.series;
  const double all = a.spec.cluster.gpus();
  const auto add = [&s](std::string_view name, std::string_view help,
                        const std::function<double(std::size_t)>& value) {
    return gauge(name, help, s.bin_s, s.held_gpus.size(), value);
  };
  const auto of = [](const std::vector<double>& values) {
    return [&values](std::size_t b) { return values[b]; };
  };
  std::string out;
  out += add("slurm_gpus_total", "GPUs of the cluster.", [all](std::size_t) { return all; });
  out += add("slurm_gpus_alloc", "GPUs that jobs hold.", of(s.held_gpus));
  const auto other = [&s](std::size_t b) {
    return s.broken_gpus[b] + (s.drained_gpus.empty() ? 0.0 : s.drained_gpus[b]);
  };
  out += add("slurm_gpus_other",
             s.drained_gpus.empty() ? "GPUs of broken nodes."
                                    : "GPUs of broken nodes, and free ones of drained nodes.",
             other);
  out += add("slurm_gpus_idle", "GPUs that no job holds.", [&s, all, other](std::size_t b) {
    return std::max(0.0, all - s.held_gpus[b] - other(b));
  });
  out += add("slurm_gpus_utilization", "Share of the GPUs that jobs hold.",
             [&s, all](std::size_t b) { return s.held_gpus[b] / all; });
  out += add("slurm_queue_pending", "Jobs that wait.", of(s.waiting_jobs));
  out += add("lockstep_pending_gpus", "GPUs that they ask for.", of(s.waiting_gpus));
  if (!s.rented_gpus.empty()) {
    out += add("lockstep_rented_gpus", "GPUs of rented nodes.", of(s.rented_gpus));
  }
  if (a.summary.power) {
    out += add("lockstep_power_watts", "Of the site, at its meter.", of(s.facility_w));
  }
  return out + "# EOF\n";
}

}  // namespace lockstep
