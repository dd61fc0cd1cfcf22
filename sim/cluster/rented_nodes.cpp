#include "sim/cluster/rented_nodes.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

namespace lockstep {
namespace {

constexpr RunTime kNotRented = std::numeric_limits<RunTime>::max();
constexpr double kGigabyte = 1e9;

/// Of the time from `from` to `to` what has passed by now.
RunTime passed(RunTime from, RunTime to, RunTime now) {
  return std::max<RunTime>(0, std::min(to, now) - from);
}

bool is_in(const std::vector<std::uint16_t>& names, std::uint16_t name) {
  return names.empty() || std::ranges::find(names, name) != names.end();
}

RunTime at_speed(RunTime work, double speed) {
  return speed == 1 ? work : static_cast<RunTime>(std::ceil(static_cast<double>(work) / speed));
}

}  // namespace

RentedNodes::RentedNodes(const QueueSpec& spec) : spec_(&spec) {
  if (!spec.burst || spec.burst->nodes == 0) return;
  of_ = &*spec.burst;
  gpus_per_node_ = of_->rented.node.gpus;
  price_ = of_->usd_per_gpu_hour;
  overdue_.resize(spec.jobs.size());
  due_.fit(spec.jobs.size());
}

/// Jobs that are bound to nodes of the cluster stay: by a reservation, or components in several
/// partitions. So do trainings that do not fill rented nodes.
bool RentedNodes::may(std::uint32_t j) const {
  const QueueJob& job = spec_->jobs[j];
  const JobTerms* const terms = spec_->terms_of(j);
  const bool bound = job.shape != 0 || (terms != nullptr && terms->reservation != 0);
  const std::int64_t most = of_->nodes * std::int64_t{gpus_per_node_};
  return !bound && is_in(of_->accounts, job.account) && is_in(of_->partitions, job.partition) &&
         is_in(of_->qos, job.qos) && job.gpus >= of_->least_gpus && job.gpus <= of_->most_gpus &&
         job.gpus <= most && (!of_->least_priority || job.priority >= *of_->least_priority) &&
         speed_of(job) > 0;
}

double RentedNodes::speed_of(const QueueJob& job) const {
  if (job.training < 0) return of_->speed;
  if (!of_->unlike) return 1;
  const QueueTraining& training = spec_->trainings[static_cast<std::size_t>(job.training)];
  if (!training.rented) return 0;
  return training.reference_step / training.rented_step;
}

void RentedNodes::waits(std::uint32_t j, RunTime now) {
  if (used() && may(j)) due_.set(j, now + of_->after);
}

void RentedNodes::waits_no_more(std::uint32_t j) {
  if (!used()) return;
  due_.remove(j);
  if (overdue_[j]) --overdue_count_;
  overdue_[j] = false;
}

RunTime RentedNodes::next_at() const {
  const RunTime due = due_.empty() ? kNotRented : due_.top().key;
  return kept_.empty() ? due : std::min(due, kept_.begin()->first);
}

void RentedNodes::pass(RunTime now) {
  while (!kept_.empty() && kept_.begin()->first <= now) end_lease(kept_.begin()->second);
  while (!due_.empty() && due_.top().key <= now) {
    overdue_[due_.pop().index] = true;
    ++overdue_count_;
  }
}

std::optional<Holding> RentedNodes::place(int gpus) const {
  const int whole = gpus / gpus_per_node_, part = gpus % gpus_per_node_;
  Holding out;
  const auto fullest = partly_free_.lower_bound({part, -1});
  const bool shares = part > 0 && fullest != partly_free_.end();
  const int needed = whole + (part > 0 && !shares ? 1 : 0);
  const int there = static_cast<int>(idle_.size());
  if (needed > there + of_->nodes - rented_) return std::nullopt;
  auto idle = idle_.begin(), returned = returned_.begin();
  int fresh = fresh_;
  for (int i = 0; i < needed; ++i) {
    const int node = idle != idle_.end()           ? *idle++
                     : returned != returned_.end() ? *returned++
                                                   : fresh++;
    out.push_back({node, i < whole ? gpus_per_node_ : part});
  }
  if (shares) out.push_back({fullest->second, part});
  return out;
}

RentedNodes::Run RentedNodes::plan(const QueueJob& job, RunTime now, RunTime left, RunTime restart,
                                   Holding where) const {
  Run run{.begin = now, .up = now, .left = left, .speed = speed_of(job), .held = std::move(where)};
  for (const HeldGpus& held : run.held) {
    const auto there = nodes_.find(held.node);
    const RunTime up = there == nodes_.end() ? now + of_->starts : there->second.up;
    run.up = std::max(run.up, up);
  }
  run.staged = run.up + of_->moves_in();
  run.ready = run.staged + restart;
  run.worked = run.ready + at_speed(left, run.speed);
  run.end = run.worked + of_->moves_out();
  return run;
}

RunTime RentedNodes::given_back_by(const QueueJob& job, const Run& run) const {
  return run.end + at_speed(job.limit - job.runs, run.speed) + of_->keeps;
}

double RentedNodes::egress_usd() const {
  return of_->data_out.base_units() / kGigabyte * of_->usd_per_gb_out;
}

double RentedNodes::most_usd_with(const QueueJob& job, const Run& run, RunTime now) const {
  const RunTime until = given_back_by(job, run);
  GpuTime all = counts_.rented;
  const auto rent = [&](RunTime by) { all += GpuTime(gpus_per_node_, by - now); };
  const auto is_on = [&](int node) {
    return std::ranges::find(run.held, node, &HeldGpus::node) != run.held.end();
  };
  for (const auto& [number, node] : nodes_) {
    rent(is_on(number) ? std::max(node.until, until) : node.until);
  }
  for (const HeldGpus& held : run.held) {
    if (!nodes_.contains(held.node)) rent(until);
  }
  return usd_of(all) + counts_.egress_usd + static_cast<double>(runs_.size() + 1) * egress_usd();
}

void RentedNodes::list(int node) {
  const Node& of = nodes_.at(node);
  if (of.free == gpus_per_node_) {
    idle_.insert(node);
    kept_.emplace(of.empty_till, node);
  } else if (of.free > 0) {
    partly_free_.emplace(of.free, node);
  }
}

void RentedNodes::unlist(int node) {
  const Node& of = nodes_.at(node);
  idle_.erase(node);
  kept_.erase({of.empty_till, node});
  partly_free_.erase({of.free, node});
}

void RentedNodes::take(const Holding& where, RunTime up, RunTime until) {
  for (const HeldGpus& held : where) {
    const auto [at, is_new] = nodes_.try_emplace(held.node, Node{gpus_per_node_, up, until, 0});
    if (is_new) {
      ++rented_;
      ++counts_.nodes;
      if (returned_.erase(held.node) == 0) ++fresh_;
    } else {
      unlist(held.node);
    }
    Node& node = at->second;
    node.free -= held.gpus;
    node.until = std::max(node.until, until);
    assert(node.free >= 0);
    list(held.node);
  }
  counts_.most_nodes = std::max(counts_.most_nodes, rented_);
}

void RentedNodes::end_lease(int node) {
  unlist(node);
  nodes_.erase(node);
  returned_.insert(node);
  --rented_;
}

void RentedNodes::give(const Holding& where, RunTime now) {
  for (const HeldGpus& held : where) {
    unlist(held.node);
    Node& node = nodes_.at(held.node);
    node.free += held.gpus;
    if (node.free == gpus_per_node_) node.until = node.empty_till = now + of_->keeps;
    list(held.node);
    if (node.free == gpus_per_node_ && of_->keeps == 0) end_lease(held.node);
  }
}

std::optional<RunTime> RentedNodes::start(std::uint32_t j, RunTime now, RunTime left,
                                          RunTime restart) {
  const QueueJob& job = spec_->jobs[j];
  std::optional<Holding> where = place(job.gpus);
  if (!where) return std::nullopt;
  Run run = plan(job, now, left, restart, *std::move(where));
  if (of_->most_usd && most_usd_with(job, run, now) > *of_->most_usd) return std::nullopt;
  // Of a node that is rented for this job; one that was there keeps its own time.
  take(run.held, now + of_->starts, given_back_by(job, run));
  const RunTime end = run.end;
  runs_.emplace(j, std::move(run));
  ++counts_.jobs;
  waits_no_more(j);
  return end;
}

RunTime RentedNodes::book(std::uint32_t j, const Run& run, RunTime now) {
  const std::int64_t gpus = spec_->jobs[j].gpus;
  const auto count = [&](RentedBucket bucket, RunTime time) {
    counts_.books[static_cast<std::size_t>(bucket)] += GpuTime(gpus, time);
  };
  const RunTime held = passed(run.ready, run.worked, now);
  RunTime done = run.left;
  if (now < run.worked) {
    done =
        std::min(run.left, static_cast<RunTime>(std::floor(static_cast<double>(held) * run.speed)));
  }
  count(RentedBucket::starting,
        passed(run.begin, run.up, now) + passed(run.staged, run.ready, now));
  count(RentedBucket::moving, passed(run.up, run.staged, now) + passed(run.worked, run.end, now));
  count(RentedBucket::useful, done);
  count(RentedBucket::slowed, held - done);
  held_time_[j] += GpuTime(gpus, passed(run.begin, run.end, now));
  return done;
}

RunTime RentedNodes::finish(std::uint32_t j, RunTime now) {
  const auto at = runs_.find(j);
  assert(at != runs_.end() && at->second.end == now);
  const Run run = std::move(at->second);
  runs_.erase(at);
  book(j, run, now);
  counts_.egress_usd += egress_usd();
  give(run.held, now);
  return run.worked - run.ready - run.left;
}

std::vector<std::uint32_t> RentedNodes::running() const {
  std::vector<std::uint32_t> out;
  out.reserve(runs_.size());
  for (const auto& [j, run] : runs_) out.push_back(j);
  return out;
}

void RentedNodes::close(RunTime now) {
  if (!used()) return;
  for (const auto& [j, run] : runs_) book(j, run, now);
  GpuTime& unused = counts_.books[static_cast<std::size_t>(RentedBucket::unused)];
  unused = counts_.rented;
  for (const RentedBucket held :
       {RentedBucket::useful, RentedBucket::slowed, RentedBucket::starting, RentedBucket::moving}) {
    unused -= counts_.books[static_cast<std::size_t>(held)];
  }
  counts_.gpu_usd = usd_of(counts_.rented);
}

}  // namespace lockstep
