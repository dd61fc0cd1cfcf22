#include "sim/scenario/listed_jobs.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sim/scenario/job_licenses.hpp"
#include "sim/scenario/queue_parts.hpp"
#include "sim/scenario/queue_rules.hpp"
#include "sim/scenario/queue_trace.hpp"

namespace lockstep {
namespace {

constexpr int kMostListedGpus = 10'000'000, kMostTasks = 4'000'000;
constexpr std::size_t kMostComponents = 128;  // MAX_HET_JOB_COMPS
constexpr std::string_view kDependencyForms =
    "dependencies such as \"afterok:a:b,afternotok:c\", of afterok, afterany, afternotok, after, "
    "aftercorr and singleton";

std::uint16_t partition_of(const JsonCursor& at, const std::string& name, const QueueSpec& spec) {
  std::vector<std::string> names;
  for (const QueuePartition& partition : spec.partitions) names.push_back(partition.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) at.fail_name(std::span(names).subspan(1));
  return static_cast<std::uint16_t>(found - names.begin());
}

std::uint16_t reservation_of(const JsonCursor& at, const std::string& name, const QueueSpec& spec) {
  std::vector<std::string> names;
  for (const AdvanceReservation& of : spec.reservations) names.push_back(of.name);
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) at.fail_name(names);
  return static_cast<std::uint16_t>(found - names.begin() + 1);
}

QueueJob job_of(const JsonCursor& at, const ListedJob& written, QueueSpec& out) {
  QueueJob job;
  job.submit = to_run_time(written.submit);
  job.runs = to_run_time(written.runs);
  job.limit = written.limit > Seconds{} ? to_run_time(written.limit) : job.runs;
  job.cut = job.limit < job.runs;
  job.runs = std::min(job.runs, job.limit);
  job.gpus = written.gpus;
  job.priority = written.priority;
  if (!written.user.empty()) job.user = label_of(written.user, out.users, out.file);
  if (!written.account.empty()) job.account = label_of(written.account, out.accounts, out.file);
  if (const auto of = at.find("partition"))
    job.partition = partition_of(*of, written.partition, out);
  if (const auto of = at.find("qos")) job.qos = qos_number(*of, written.qos, out);
  if (!written.licenses.empty()) {
    const auto set = license_set(written.licenses, out);
    if (!set) at.at("licenses").fail(allowed_licenses(out));
    job.licenses = *set;
  }
  return job;
}

}  // namespace

namespace {

void declare_request(const DeclaredMembers& member, ListedJob& out) {
  constexpr int kMostPriority = 1'000'000'000;
  member.optional("submit", out.submit, kQueueSpan, "Default: 0 s");
  member.required("runs", out.runs, kQueueSpan, "How long it runs undisturbed");
  member.optional("limit", out.limit, kQueueSpan, "Its time limit; default: as long as it runs");
  member.optional("gpus", out.gpus, 1, kMostListedGpus, "Default: 1");
  member.optional("user", out.user, "Whose it is");
  member.optional("account", out.account, "Which account pays");
  member.optional("partition", out.partition, "Nodes that it is bound to");
  member.optional("qos", out.qos, "Its quality of service");
  member.optional("licenses", out.licenses,
                  "Licences that it holds while it runs, as in \"matlab:2,ansys\"");
  member.optional("priority", out.priority, -kMostPriority, kMostPriority,
                  "Higher first; added to what \"multifactor\" reckons; default: 0");
}

void declare_part(const DeclaredMembers& member, ListedPart& out) {
  member.required("gpus", out.gpus, 1, kMostListedGpus, "GPUs of the component");
  member.optional("partition", out.partition, "Nodes that it is bound to");
}

void declare_terms(const DeclaredMembers& member, ListedJob& out) {
  member.optional(
      "dependency", out.dependency,
      "What of earlier jobs it waits for, as in \"afterok:a:b,afternotok:c\"; ? instead "
      "of , means that one is enough; also after:a+MINUTES, afterany, aftercorr, "
      "singleton");
  member.optional("begin", out.begin, kQueueSpan, "It does not start before; default: 0 s");
  member.optional("reservation", out.reservation, "Which one it runs in");
  member.optional("held", out.held, "It is held, and never starts; default: false");
  member.optional("fails", out.fails, "Its command fails in the end; default: false");
}

}  // namespace

void declare_listed_job(const DeclaredMembers& member, ListedJob& out) {
  member.required("name", out.name, "As answers and dependencies call it");
  declare_request(member, out);
  member.optional(
      "components", kMostComponents, "A component",
      "Instead of \"gpus\" and \"partition\": components that start and end together, as of a "
      "heterogeneous job",
      [](const DeclaredMembers& one) {
        ListedPart part;
        declare_part(one, part);
      },
      [&](const JsonCursor& list) {
        for (const JsonCursor& at : list.elements(kMostComponents)) {
          declare_part({at, Extent::whole}, out.components.emplace_back());
          at.finish();
        }
      });
  declare_widths(member, out.widths);
  member.optional("tasks", out.tasks, 1, kMostTasks,
                  "So many of it are an array: NAME_0, NAME_1 and so on");
  member.optional("at_once", out.at_once, 1, kMostTasks,
                  "Tasks of it that run at a time; default: any number");
  declare_terms(member, out);
}

void declare_unnamed_job(const DeclaredMembers& member, ListedJob& out) {
  declare_request(member, out);
  declare_terms(member, out);
}

namespace {

/// The partition of all nodes that the components may have.
std::uint16_t partition_of_all(const JobShape& shape, QueueSpec& out) {
  const auto first = static_cast<std::size_t>(shape.front().partition);
  const auto alike = [&](const JobPart& part) { return part.partition == first; };
  if (std::ranges::all_of(shape, alike)) return shape.front().partition;
  QueuePartition all = out.partitions[first];
  all.name.clear();
  std::set<int> nodes;
  bool every = false;
  for (const JobPart& part : shape) {
    const QueuePartition& of = out.partitions[part.partition];
    all.name += (all.name.empty() ? "" : "+") + (of.name.empty() ? "(none)" : of.name);
    nodes.insert(of.nodes.begin(), of.nodes.end());
    every = every || of.nodes.empty();
  }
  all.nodes.clear();
  if (!every) all.nodes.assign(nodes.begin(), nodes.end());
  const auto known = std::ranges::find(out.partitions, all.name, &QueuePartition::name);
  const auto number = known - out.partitions.begin();
  if (known == out.partitions.end()) out.partitions.push_back(std::move(all));
  return static_cast<std::uint16_t>(number);
}

}  // namespace

void set_shape(const JobShape& shape, QueueJob& job, QueueSpec& out) {
  job.gpus = 0;
  for (const JobPart& part : shape) job.gpus += part.gpus;
  job.partition = partition_of_all(shape, out);
  const auto known = std::ranges::find(out.shapes, shape);
  job.shape = static_cast<std::uint16_t>(known - out.shapes.begin());
  if (known == out.shapes.end()) out.shapes.push_back(shape);
}

JobTerms& new_terms(QueueSpec& out) {
  out.terms.resize(out.jobs.size() + 1);
  return out.terms.back();
}

std::int32_t array_number(const std::string& name, QueueSpec& out) {
  const auto [at, is_new] =
      out.array_numbers.try_emplace(name, static_cast<std::int32_t>(out.arrays.size()));
  if (is_new) out.arrays.push_back({.name = name});
  return at->second;
}

ReadJob read_listed_job(const JsonCursor& at, const ListedJob& written, QueueSpec& out) {
  ReadJob read{.job = job_of(at, written, out), .terms = {}};
  read.terms.written = written.dependency;
  read.terms.series = written.name;
  read.terms.begin = to_run_time(written.begin);
  read.terms.held = written.held;
  read.terms.fails = written.fails;
  if (const auto of = at.find("reservation")) {
    read.terms.reservation = reservation_of(*of, written.reservation, out);
  }
  return read;
}

namespace {

JobShape shape_of(const JsonCursor& list, const std::vector<ListedPart>& written,
                  const QueueSpec& out) {
  constexpr std::size_t kMostShapes = 65'535;
  if (out.shapes.size() >= kMostShapes) list.fail("fewer kinds of heterogeneous jobs");
  const std::vector<JsonCursor> items = list.elements(kMostComponents);
  if (items.size() < 2) list.fail("at least two components");
  JobShape shape;
  for (std::size_t c = 0; c < items.size(); ++c) {
    JobPart part{.gpus = written[c].gpus};
    if (const auto of = items[c].find("partition")) {
      part.partition = partition_of(*of, written[c].partition, out);
    }
    shape.push_back(part);
  }
  return shape;
}

}  // namespace

void add_listed_job(const JsonCursor& at, const ListedJob& written, QueueSpec& out) {
  if (written.at_once > 0 && written.tasks == 0)
    at.at("at_once").fail("no such key without \"tasks\"");
  auto [job, terms] = read_listed_job(at, written, out);
  if (const auto list = at.find("components")) {
    for (const std::string_view key : {"gpus", "partition", "tasks", "widths"}) {
      if (at.find(key)) at.at(key).fail("no such key beside \"components\"");
    }
    set_shape(shape_of(*list, written.components, out), job, out);
  }
  if (const auto list = at.find("widths")) {
    job.widths = width_table(*list, written.widths, job.gpus, out);
  }
  if (written.tasks > 0) {
    if (out.array_numbers.contains(written.name)) {
      at.at("name").fail("a name that no other array has");
    }
    terms.array = array_number(written.name, out);
    out.arrays.back().most_running = written.at_once;
  }
  for (int task = 0; task < std::max(1, written.tasks); ++task) {
    if (out.jobs.size() == kMostQueueJobs) {
      at.fail(fmt::format("at most {} jobs together", kMostQueueJobs));
    }
    new_terms(out) = terms;
    out.names.resize(out.jobs.size());
    out.names.push_back(written.tasks > 0 ? fmt::format("{}_{}", written.name, task)
                                          : written.name);
    out.jobs.push_back(job);
  }
}

namespace {

/// Jobs and arrays by their names.
class JobNames {
 public:
  explicit JobNames(const QueueSpec& spec) : spec_(&spec), tasks_(spec.arrays.size()) {
    for (std::uint32_t j = 0; j < spec.jobs.size(); ++j) {
      const auto [at, is_new] = jobs_.try_emplace(spec.job_name(j), j);
      if (!is_new) at->second = kSeveral;
      const JobTerms* const terms = spec.terms_of(j);
      if (terms == nullptr || terms->array < 0 || spec.jobs[j].submit == kNotSubmitted) continue;
      tasks_[static_cast<std::size_t>(terms->array)].push_back(j);
    }
    for (std::uint32_t a = 0; a < spec.arrays.size(); ++a) arrays_.emplace(spec.arrays[a].name, a);
  }

  static constexpr std::uint32_t kSeveral = 0xffffffff;
  [[nodiscard]] std::optional<std::uint32_t> array(const std::string& name) const {
    return find(arrays_, name);
  }
  [[nodiscard]] std::optional<std::uint32_t> job(const std::string& name) const {
    return find(jobs_, name);
  }
  /// In the order of the array.
  [[nodiscard]] const std::vector<std::uint32_t>& tasks(std::uint32_t array) const {
    return tasks_[array];
  }
  [[nodiscard]] std::string nearest(const std::string& name) const {
    constexpr std::size_t kCompared = 10'000;
    std::vector<std::string> names;
    for (const auto& [of, number] : arrays_) names.push_back(of);
    for (std::size_t j = 0; j < std::min(spec_->jobs.size(), kCompared); ++j) {
      names.push_back(spec_->job_name(j));
    }
    return nearest_name(name, names);
  }

 private:
  using Numbers = std::unordered_map<std::string, std::uint32_t>;
  static std::optional<std::uint32_t> find(const Numbers& in, const std::string& name) {
    const auto found = in.find(name);
    return found == in.end() ? std::nullopt : std::optional(found->second);
  }
  const QueueSpec* spec_;
  Numbers jobs_, arrays_;
  std::vector<std::vector<std::uint32_t>> tasks_;
};

class Resolver {
 public:
  explicit Resolver(QueueSpec& spec) : spec_(&spec), names_(spec) {}

  void resolve(std::uint32_t j) {
    job_ = j;
    const std::string text = std::exchange(spec_->terms[j].written, {});
    remember_series();
    if (text.empty()) return;
    const bool any = text.find('?') != std::string::npos;
    if (any && text.find(',') != std::string::npos) fail(text, "either , or ? between them");
    spec_->terms[j].any = any;
    for (std::size_t from = 0; from <= text.size();) {
      const std::size_t end = std::min(text.find(any ? '?' : ',', from), text.size());
      resolve_one(text, text.substr(from, end - from));
      from = end + 1;
    }
  }

 private:
  [[noreturn]] void fail(const std::string& found, std::string allowed,
                         std::string nearest = {}) const {
    throw InputError(
        {.file = spec_->file,
         .pointer = "/queue/jobs",
         .found = fmt::format("job {} with dependency {}", spec_->job_name(job_), in_quotes(found)),
         .allowed = std::move(allowed),
         .nearest = std::move(nearest)});
  }

  /// Earlier jobs of a user and a name, back to one that waited for all before it.
  void remember_series() {
    const std::string& series = spec_->terms[job_].series;
    if (series.empty()) return;
    earlier_ = &series_[{spec_->jobs[job_].user, series}];
    mine_ = *earlier_;
    earlier_->push_back(job_);
  }

  void resolve_one(const std::string& text, const std::string& part) {
    if (part == "singleton") {
      if (spec_->terms[job_].series.empty()) fail(text, "singleton of jobs that have a name");
      for (const std::uint32_t before : mine_) {
        add({.kind = DependencyKind::afterany, .on = before});
      }
      *earlier_ = {job_};
      return;
    }
    std::size_t colon = part.find(':');
    if (colon == std::string::npos) fail(text, std::string(kDependencyForms));
    const std::string kind = part.substr(0, colon);
    const bool corresponding = kind == "aftercorr";
    const auto named = std::ranges::find(kDependencyNames, kind);
    if (!corresponding && named == kDependencyNames.end()) {
      fail(text, std::string(kDependencyForms));
    }
    while (colon != std::string::npos) {
      const std::size_t next = part.find(':', colon + 1);
      std::string name =
          part.substr(colon + 1, next == std::string::npos ? next : next - colon - 1);
      colon = next;
      if (corresponding) {
        add(task_of(text, name));
      } else {
        add(on_name(text, static_cast<DependencyKind>(named - kDependencyNames.begin()), name));
      }
    }
  }

  JobDependency on_name(const std::string& text, DependencyKind kind, std::string name) const {
    JobDependency out{.kind = kind};
    const std::size_t plus = name.rfind('+');
    if (kind == DependencyKind::after && plus != std::string::npos) {
      int minutes = 0;
      const char* const end = name.data() + name.size();
      const auto [at, error] = std::from_chars(name.data() + plus + 1, end, minutes);
      if (error != std::errc() || at != end || minutes < 0) fail(text, "after:JOB+MINUTES");
      out.delay = RunTime{minutes} * 60'000'000'000;
      name.resize(plus);
    }
    if (const auto array = names_.array(name)) {
      out.of_array = true;
      out.on = *array;
      if (names_.tasks(*array).back() >= job_) fail(text, "arrays that were submitted before");
      return out;
    }
    const auto job = names_.job(name);
    if (!job) fail(text, "names of jobs or arrays", names_.nearest(name));
    if (*job == JobNames::kSeveral) fail(text, "names that one job alone has");
    if (*job >= job_) fail(text, "jobs that were submitted before");
    out.on = *job;
    return out;
  }

  JobDependency task_of(const std::string& text, const std::string& name) const {
    const auto array = names_.array(name);
    const std::int32_t own = spec_->terms[job_].array;
    if (!array || own < 0) fail(text, "aftercorr of an array, in an array");
    const auto& tasks = names_.tasks(static_cast<std::uint32_t>(own));
    const auto number = static_cast<std::size_t>(std::ranges::find(tasks, job_) - tasks.begin());
    if (number >= names_.tasks(*array).size()) fail(text, "an array of as many tasks");
    if (names_.tasks(*array)[number] >= job_) fail(text, "arrays that were submitted before");
    return {.kind = DependencyKind::afterok, .on = names_.tasks(*array)[number]};
  }

  void add(JobDependency dependency) { spec_->terms[job_].dependencies.push_back(dependency); }

  QueueSpec* spec_;
  JobNames names_;
  std::uint32_t job_ = 0;
  std::map<std::pair<std::uint16_t, std::string>, std::vector<std::uint32_t>> series_;
  std::vector<std::uint32_t>* earlier_ = nullptr;
  std::vector<std::uint32_t> mine_;
};

}  // namespace

void resolve_dependencies(QueueSpec& out) {
  const auto refers = [](const JobTerms& of) { return !of.written.empty(); };
  if (std::ranges::none_of(out.terms, refers)) return;
  Resolver resolver(out);
  for (std::uint32_t j = 0; j < out.terms.size(); ++j) resolver.resolve(j);
}

}  // namespace lockstep
