// Source: Kueue's API kueue.x-k8s.io, v1beta1 and v1beta2.
#include "sim/scenario/kueue_objects.hpp"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <initializer_list>
#include <set>
#include <type_traits>
#include <utility>
#include <yaml-cpp/yaml.h>

#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/yaml_documents.hpp"
#include "sim/scenario/slurm_conf.hpp"
#include "sim/scenario/slurm_settings.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostObjects = 1'000'000;
constexpr int kDeepest = 32;
constexpr std::int64_t kMostOfAnObject = 1'000'000'000;
constexpr SettingEffect kReadActs = SettingEffect::acts, kReadHarmless = SettingEffect::harmless,
                        kReadMatters = SettingEffect::matters;

/// Settings by their kind and path, with all below it; elements of lists have the list's path.
constexpr SlurmSetting kKueueSettings[] = {
    {"ClusterQueue/spec/admissionChecks", kReadMatters, "checks by others before a job starts"},
    {"ClusterQueue/spec/admissionChecksStrategy", kReadMatters,
     "checks by others before a job starts"},
    {"ClusterQueue/spec/admissionScope", kReadMatters, "the order by past usage"},
    {"ClusterQueue/spec/cohort", kReadActs, ""},
    {"ClusterQueue/spec/cohortName", kReadActs, ""},
    {"ClusterQueue/spec/fairSharing/weight", kReadActs, ""},
    {"ClusterQueue/spec/flavorFungibility", kReadHarmless, ""},
    {"ClusterQueue/spec/namespaceSelector", kReadMatters, "which namespaces may use it"},
    {"ClusterQueue/spec/preemption/borrowWithinCohort", kReadActs, ""},
    {"ClusterQueue/spec/preemption/reclaimWithinCohort", kReadActs, ""},
    {"ClusterQueue/spec/preemption/withinClusterQueue", kReadActs, ""},
    {"ClusterQueue/spec/queueingStrategy", kReadActs, ""},
    {"ClusterQueue/spec/resourceGroups/coveredResources", kReadActs, ""},
    {"ClusterQueue/spec/resourceGroups/flavors/name", kReadActs, ""},
    {"ClusterQueue/spec/resourceGroups/flavors/resources", kReadActs, ""},
    {"ClusterQueue/spec/stopPolicy", kReadMatters, "that it admits nothing more"},
    {"Cohort/spec/fairSharing/weight", kReadActs, ""},
    {"Cohort/spec/parent", kReadActs, ""},
    {"Cohort/spec/parentName", kReadActs, ""},
    {"Cohort/spec/resourceGroups/coveredResources", kReadActs, ""},
    {"Cohort/spec/resourceGroups/flavors/name", kReadActs, ""},
    {"Cohort/spec/resourceGroups/flavors/resources", kReadActs, ""},
    {"LocalQueue/spec/clusterQueue", kReadActs, ""},
    {"LocalQueue/spec/fairSharing", kReadMatters, "the order by past usage"},
    {"LocalQueue/spec/stopPolicy", kReadMatters, "that it admits nothing more"},
    {"ResourceFlavor/spec/nodeLabels", kReadHarmless, ""},
    {"ResourceFlavor/spec/nodeTaints", kReadHarmless, ""},
    {"ResourceFlavor/spec/tolerations", kReadHarmless, ""},
    {"ResourceFlavor/spec/topologyName", kReadMatters, "levels that the pods of a job stay within"},
    {"Workload/spec/active", kReadActs, ""},
    {"Workload/spec/maximumExecutionTimeSeconds", kReadActs, ""},
    {"Workload/spec/podSets", kReadActs, ""},
    {"Workload/spec/priority", kReadActs, ""},
    {"Workload/spec/priorityClassName", kReadActs, ""},
    {"Workload/spec/priorityClassRef", kReadActs, ""},
    {"Workload/spec/priorityClassSource", kReadHarmless, ""},
    {"Workload/spec/queueName", kReadActs, ""},
    {"WorkloadPriorityClass/description", kReadHarmless, ""},
    {"WorkloadPriorityClass/value", kReadActs, ""},
};

/// A value of an object, with its place.
class KueueValue {
 public:
  KueueValue(const std::string& file, const YAML::Node& node, std::string pointer)
      : file_(&file), node_(node), pointer_(std::move(pointer)) {}

  [[nodiscard]] const YAML::Node& node() const { return node_; }
  [[nodiscard]] bool is_map() const { return node_.IsMap(); }

  [[noreturn]] void fail(const std::string& allowed, const std::string& nearest = {}) const {
    const bool is_text = node_.IsDefined() && node_.IsScalar();
    const std::string found = is_text              ? in_quotes(node_.Scalar())
                              : node_.IsMap()      ? "a mapping"
                              : node_.IsSequence() ? "a list"
                                                   : "nothing";
    const int line = node_.IsDefined() ? node_.Mark().line : -1;
    throw InputError({.file = *file_,
                      .pointer = pointer_,
                      .found = line < 0 ? found : fmt::format("{} in line {}", found, line + 1),
                      .allowed = allowed,
                      .nearest = nearest});
  }

  /// The member of a mapping; nothing where there is none, or null.
  [[nodiscard]] std::optional<KueueValue> find(const std::string& key) const {
    if (!node_.IsMap()) return std::nullopt;
    const YAML::Node member = node_[key];
    if (!member.IsDefined() || member.IsNull()) return std::nullopt;
    return KueueValue(*file_, member, pointer_ + "/" + key);
  }
  [[nodiscard]] KueueValue at(const std::string& key) const {
    const std::optional<KueueValue> member = find(key);
    if (!member) fail(fmt::format("a mapping with {}", in_quotes(key)));
    return *member;
  }
  /// Members of a list; none of nothing.
  [[nodiscard]] std::vector<KueueValue> elements(const std::string& key) const {
    std::vector<KueueValue> out;
    const std::optional<KueueValue> list = find(key);
    if (!list) return out;
    if (!list->node_.IsSequence()) list->fail("a list");
    for (const YAML::Node& one : list->node_) {
      out.emplace_back(*file_, one, fmt::format("{}/{}", list->pointer_, out.size()));
    }
    return out;
  }
  [[nodiscard]] std::string text() const {
    if (!node_.IsScalar()) fail("a text");
    return node_.Scalar();
  }
  [[nodiscard]] std::string text(const std::string& key) const {
    const std::optional<KueueValue> member = find(key);
    return member ? member->text() : std::string();
  }
  [[nodiscard]] std::int64_t whole(std::int64_t low, std::int64_t high) const {
    const std::string digits = text();
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out);
    if (error != std::errc() || end != digits.data() + digits.size() || out < low || out > high) {
      fail(fmt::format("a whole number from {} to {}", low, high));
    }
    return out;
  }
  /// Which of `names` it is; 0 where there is none.
  [[nodiscard]] std::size_t choice(const std::string& key,
                                   std::initializer_list<std::string> names) const {
    const std::optional<KueueValue> member = find(key);
    if (!member || member->text().empty()) return 0;
    const auto found = std::ranges::find(names, member->text());
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::vector<std::string> all(names);
    member->fail(listed(all), nearest_name(member->text(), all));
  }

 private:
  const std::string* file_;
  YAML::Node node_;
  std::string pointer_;
};

bool is_gpu(const std::string& resource) { return resource.ends_with("/gpu"); }

std::string full_name(const std::string& space, const std::string& name) {
  return space.empty() ? name : space + "/" + name;
}

class KueueReader {
 public:
  KueueReader(const std::string& file, std::vector<std::string>& notes)
      : file_(&file), notes_(&notes) {}

  void read(const YAML::Node& document, int depth) {
    if (document.IsNull()) return;
    if (++objects_ > kMostObjects || depth > kDeepest) {
      throw InputError(
          {.file = *file_,
           .pointer = {},
           .found = depth > kDeepest ? "Lists of Lists" : "more than a million objects",
           .allowed = "objects of Kueue",
           .nearest = {}});
    }
    const KueueValue object(*file_, document, {});
    const std::string kind = object.at("kind").text();
    if (kind == "List" || kind.ends_with("QueueList") || kind == "WorkloadList" ||
        kind == "CohortList") {
      for (const KueueValue& item : object.elements("items")) read(item.node(), depth + 1);
      return;
    }
    const std::optional<KueueValue> meta = object.find("metadata");
    const std::string space = meta ? meta->text("namespace") : std::string();
    const std::string name = meta ? meta->text("name") : std::string();
    if (kind == "Configuration") return read_configuration(object);
    const bool known = kind == "ClusterQueue" || kind == "Cohort" || kind == "LocalQueue" ||
                       kind == "Workload" || kind == "WorkloadPriorityClass" ||
                       kind == "ResourceFlavor";
    if (!known) return tell(kind, kind + " is not read");
    if (name.empty()) object.fail(fmt::format("a {} with metadata/name", kind));
    const KueueValue named(*file_, document, fmt::format("/{}/{}", kind, name));
    tell_settings(named, kind, name);
    if (kind == "ClusterQueue") read_cluster_queue(named, name);
    if (kind == "Cohort") read_cohort(named, name);
    if (kind == "LocalQueue") {
      out_.local_queues.push_back(
          {full_name(space, name), named.at("spec").at("clusterQueue").text()});
    }
    if (kind == "WorkloadPriorityClass") {
      constexpr std::int64_t kMostPriority = 1'000'000'000;
      const std::int64_t value = named.at("value").whole(-kMostPriority, kMostPriority);
      out_.priorities[name] = static_cast<int>(value);
    }
    if (kind == "Workload") read_workload(named, space, name);
  }

  KueueObjects take() { return std::move(out_); }

 private:
  /// A line about what is not modelled: the first time that `what` occurs.
  void tell(const std::string& what, const std::string& line) {
    if (told_.insert(what).second) notes_->push_back(fmt::format("{}: {}", *file_, line));
  }

  void tell_settings(const KueueValue& object, const std::string& kind, const std::string& name) {
    if (kind == "WorkloadPriorityClass") {
      for (const auto& member : object.node()) {
        const std::string key = member.first.Scalar();
        const bool usual = key == "apiVersion" || key == "kind" || key == "metadata";
        if (!usual) tell_setting(fmt::format("{}/{}", kind, key), name, member.second);
      }
      return;
    }
    const std::optional<KueueValue> spec = object.find("spec");
    if (spec) tell_below(spec->node(), kind + "/spec", name, 0);
  }

  void tell_below(const YAML::Node& node, const std::string& path, const std::string& name,
                  int depth) {
    if (depth > kDeepest) return;
    if (node.IsSequence()) {
      for (const YAML::Node& one : node) tell_below(one, path, name, depth + 1);
      return;
    }
    if (!node.IsMap()) return;
    for (const auto& member : node) {
      if (member.first.IsScalar()) {
        tell_setting(path + "/" + member.first.Scalar(), name, member.second, depth + 1);
      }
    }
  }

  void tell_setting(const std::string& path, const std::string& name, const YAML::Node& value,
                    int depth = 0) {
    const auto covers = [&](const SlurmSetting& of) { return of.name == path; };
    const auto leads = [&](const SlurmSetting& of) {
      return of.name.starts_with(path) && of.name.substr(path.size()).starts_with("/");
    };
    const auto* const found = std::ranges::find_if(kKueueSettings, covers);
    if (found == std::end(kKueueSettings)) {
      if (std::ranges::any_of(kKueueSettings, leads)) return tell_below(value, path, name, depth);
      std::vector<std::string> names;
      for (const SlurmSetting& of : kKueueSettings) names.emplace_back(of.name);
      const std::string near = nearest_name(path, names);
      return tell(path, fmt::format("{} of {} is not known: not read{}", path, name,
                                    near.empty() ? "" : "; " + near + " is"));
    }
    const bool says_nothing = value.IsNull() || (value.IsMap() && value.size() == 0) ||
                              (value.IsSequence() && value.size() == 0) ||
                              (value.IsScalar() && value.Scalar() == "None");
    if (found->effect == SettingEffect::harmless) {
      tell(path, path + " is harmless: it does not bear on waits");
    } else if (found->effect == SettingEffect::matters && !says_nothing) {
      tell(path, fmt::format("{} of {} matters and is not modelled: {}", path, name, found->why));
    }
  }

  /// Of a resource of a flavor: what adds to the queue's or the cohort's.
  template <class Of>
  static void add_quota(const KueueValue& resource, Of& of, const std::string& above, bool first) {
    constexpr std::int64_t kNone = -1;
    const auto amount = [&](const std::string& key) {
      const std::optional<KueueValue> member = resource.find(key);
      return member ? member->whole(0, kMostOfAnObject) : kNone;
    };
    const auto add = [&](std::int64_t& to, std::int64_t more) {
      to = more < 0 || (to < 0 && !first) ? kNone : std::max<std::int64_t>(0, to) + more;
    };
    of.nominal += resource.at("nominalQuota").whole(0, kMostOfAnObject);
    add(of.borrowing_limit, amount("borrowingLimit"));
    add(of.lending_limit, amount("lendingLimit"));
    for (const auto& [key, limit] : {std::pair("borrowingLimit", of.borrowing_limit),
                                     std::pair("lendingLimit", of.lending_limit)}) {
      if (limit >= 0 && above.empty()) resource.at(key).fail("none without a cohort above it");
    }
  }

  /// Of a queue or a cohort below `above`; the flavors of GPUs that it names.
  template <class Of>
  std::vector<std::string> read_quotas(const KueueValue& spec, Of& of, const std::string& above) {
    std::vector<std::string> flavors;
    for (const KueueValue& group : spec.elements("resourceGroups")) {
      for (const KueueValue& flavor : group.elements("flavors")) {
        for (const KueueValue& resource : flavor.elements("resources")) {
          const std::string name = resource.at("name").text();
          if (!is_gpu(name)) {
            tell("resource " + name, fmt::format("quotas of {} matter and are not modelled: GPUs "
                                                 "are what jobs wait for",
                                                 name));
            continue;
          }
          add_quota(resource, of, above, flavors.empty());
          if constexpr (std::is_same_v<Of, ClusterQueue>) {
            if (of.lending_limit > of.nominal) {
              resource.at("lendingLimit")
                  .fail(fmt::format("at most {}, its nominalQuota", of.nominal));
            }
          }
          flavors.push_back(flavor.at("name").text());
        }
      }
    }
    if (flavors.size() > 1) {
      tell("flavors", fmt::format("several flavors of GPUs matter and are not modelled: quotas of "
                                  "{} are added, in {} and wherever else there are several",
                                  listed(flavors), of.name));
    }
    return flavors;
  }

  void read_weight(const KueueValue& spec, double& weight) {
    const std::optional<KueueValue> of = spec.find("fairSharing");
    const std::optional<KueueValue> written = of ? of->find("weight") : std::nullopt;
    if (!written) return;
    std::string text = written->text();
    const bool thousandths = text.ends_with('m');
    if (thousandths) text.pop_back();
    double value = -1;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    constexpr double kMostWeight = 1e6;
    if (thousandths) value /= 1000;
    if (!whole || !(value >= 0 && value <= kMostWeight)) {
      written->fail("a weight of 0 to 1000000, such as 2 or 500m");
    }
    weight = value;
    out_.weighted = true;
  }

  void read_cohort(const KueueValue& object, const std::string& name) {
    const auto same = [&](const QueueCohort& of) { return of.name == name; };
    if (std::ranges::any_of(out_.cohorts, same)) {
      object.at("metadata").at("name").fail("a name that no other Cohort has");
    }
    QueueCohort cohort{.name = name};
    if (const std::optional<KueueValue> spec = object.find("spec")) {
      cohort.parent = spec->text("parentName");
      if (cohort.parent.empty()) cohort.parent = spec->text("parent");
      read_weight(*spec, cohort.weight);
      (void)read_quotas(*spec, cohort, cohort.parent);
    }
    out_.cohorts.push_back(std::move(cohort));
  }

  /// Of Kueue's manager: its fairSharing alone bears on who waits for whom.
  void read_configuration(const KueueValue& object) {
    for (const auto& member : object.node()) {
      const std::string& key = member.first.Scalar();
      constexpr std::string_view kOthers[] = {"admissionFairSharing", "waitForPodsReady",
                                              "resources", "multiKueue"};
      if (std::ranges::find(kOthers, key) != std::end(kOthers)) {
        tell("Configuration/" + key,
             fmt::format("Configuration/{} matters and is not modelled", key));
      }
    }
    const std::optional<KueueValue> of = object.find("fairSharing");
    if (!of || of->text("enable") == "false") return;
    out_.fair_sharing.clear();
    for (const KueueValue& one : of->elements("preemptionStrategies")) {
      const std::vector<std::string> names{"LessThanOrEqualToFinalShare", "LessThanInitialShare"};
      const auto found = std::ranges::find(names, one.text());
      if (found == names.end()) one.fail(listed(names), nearest_name(one.text(), names));
      out_.fair_sharing.push_back(static_cast<FairStrategy>(found - names.begin()));
    }
    if (out_.fair_sharing.empty()) {
      out_.fair_sharing = {FairStrategy::less_than_or_equal_to_final_share,
                           FairStrategy::less_than_initial_share};
    }
    const bool ordered = out_.fair_sharing.size() == 1 ||
                         (out_.fair_sharing.size() == 2 &&
                          out_.fair_sharing[0] == FairStrategy::less_than_or_equal_to_final_share &&
                          out_.fair_sharing[1] == FairStrategy::less_than_initial_share);
    if (!ordered) {
      of->at("preemptionStrategies").fail("one, or both with LessThanInitialShare last");
    }
  }

  void read_cluster_queue(const KueueValue& object, const std::string& name) {
    const auto same = [&](const std::string& of) { return of == name; };
    if (std::ranges::any_of(taken_, same) || std::ranges::any_of(out_.without, same)) {
      object.at("metadata").at("name").fail("a name that no other ClusterQueue has");
    }
    const KueueValue spec = object.at("spec");
    ClusterQueue queue{.name = name};
    queue.cohort = spec.text("cohort");
    if (queue.cohort.empty()) queue.cohort = spec.text("cohortName");
    if (spec.choice("queueingStrategy", {"BestEffortFIFO", "StrictFIFO"}) == 1) {
      queue.strategy = QueueingStrategy::strict;
    }
    if (const auto preemption = spec.find("preemption")) {
      queue.within = static_cast<WithinClusterQueue>(preemption->choice(
          "withinClusterQueue", {"Never", "LowerPriority", "LowerOrNewerEqualPriority"}));
      queue.reclaim = static_cast<ReclaimWithinCohort>(
          preemption->choice("reclaimWithinCohort", {"Never", "LowerPriority", "Any"}));
      if (queue.cohort.empty()) queue.reclaim = ReclaimWithinCohort::never;
      read_borrowing(*preemption, queue);
    }
    read_weight(spec, queue.weight);
    const bool has_gpus = !read_quotas(spec, queue, queue.cohort).empty();
    (has_gpus ? taken_ : out_.without).push_back(name);
    if (has_gpus) out_.queues.push_back(queue);
  }

  static void read_borrowing(const KueueValue& preemption, ClusterQueue& queue) {
    const std::optional<KueueValue> of = preemption.find("borrowWithinCohort");
    if (!of || queue.cohort.empty() || of->choice("policy", {"Never", "LowerPriority"}) == 0) {
      return;
    }
    if (queue.reclaim == ReclaimWithinCohort::never) {
      of->at("policy").fail("Never where reclaimWithinCohort is Never");
    }
    queue.borrow_within_cohort = true;
    if (const auto most = of->find("maxPriorityThreshold")) {
      queue.max_priority_threshold =
          static_cast<int>(most->whole(-kMostOfAnObject, kMostOfAnObject));
    }
  }

  static std::int64_t gpus_of(const KueueValue& container) {
    const std::optional<KueueValue> resources = container.find("resources");
    if (!resources) return 0;
    for (const char* const key : {"requests", "limits"}) {
      const std::optional<KueueValue> amounts = resources->find(key);
      if (!amounts || !amounts->is_map()) continue;
      for (const auto& member : amounts->node()) {
        const std::string& name = member.first.Scalar();
        if (is_gpu(name)) return amounts->at(name).whole(0, kMostOfAnObject);
      }
    }
    return 0;
  }

  static std::int64_t gpus_of_pods(const KueueValue& spec) {
    std::int64_t out = 0;
    for (const KueueValue& set : spec.elements("podSets")) {
      const std::optional<KueueValue> written = set.find("count");
      const std::int64_t count = written ? written->whole(0, kMostQueuedPods) : 1;
      const KueueValue pod = set.at("template").at("spec");
      for (const KueueValue& container : pod.elements("containers")) {
        out += count * gpus_of(container);
      }
    }
    return out;
  }

  /// "2026-01-01T00:00:00Z"; below 0: there is none.
  static double time_of(const KueueValue& of, const std::string& key) {
    const std::optional<KueueValue> member = of.find(key);
    if (!member) return -1;
    std::string text = member->text();
    if (text.ends_with('Z')) text.pop_back();
    const std::optional<double> time = slurm_time(text);
    if (!time) member->fail("a time such as 2026-01-01T00:00:00Z");
    return *time;
  }

  void read_workload(const KueueValue& object, const std::string& space, const std::string& name) {
    const KueueValue spec = object.at("spec");
    KueueWorkload job{.name = full_name(space, name),
                      .local_queue = full_name(space, spec.text("queueName"))};
    if (const auto priority = spec.find("priority")) {
      job.priority = static_cast<int>(priority->whole(-kMostOfAnObject, kMostOfAnObject));
    }
    job.priority_class = spec.text("priorityClassName");
    if (const auto of = spec.find("priorityClassRef")) job.priority_class = of->text("name");
    job.gpus = gpus_of_pods(spec);
    job.active = spec.text("active") != "false";
    if (const auto limit = spec.find("maximumExecutionTimeSeconds")) {
      job.limit = static_cast<double>(limit->whole(1, kMostQueuedSeconds));
    }
    job.submit = time_of(object.at("metadata"), "creationTimestamp");
    if (const auto status = object.find("status")) {
      for (const KueueValue& condition : status->elements("conditions")) {
        if (condition.text("status") != "True") continue;
        const std::string type = condition.text("type");
        if (type == "Admitted") job.start = time_of(condition, "lastTransitionTime");
        if (type == "Finished") job.end = time_of(condition, "lastTransitionTime");
      }
    }
    out_.workloads.push_back(std::move(job));
  }

  static constexpr std::int64_t kMostQueuedPods = 1'000'000, kMostQueuedSeconds = 100'000'000;

  const std::string* file_;
  std::vector<std::string>* notes_;
  std::set<std::string> told_;
  std::vector<std::string> taken_;
  std::size_t objects_ = 0;
  KueueObjects out_;
};

}  // namespace

KueueObjects read_kueue_objects(const std::string& file, std::string_view text,
                                std::vector<std::string>& notes) {
  KueueReader reader(file, notes);
  try {
    for (const YAML::Node& document : yaml_documents(text)) reader.read(document, 0);
  } catch (const YAML::Exception& error) {
    const bool placed = error.mark.line >= 0;
    throw InputError({.file = file,
                      .pointer = {},
                      .found = placed
                                   ? fmt::format("at line {}, column {}: {}", error.mark.line + 1,
                                                 error.mark.column + 1, in_quotes(error.msg))
                                   : in_quotes(error.msg),
                      .allowed = "YAML",
                      .nearest = {}});
  }
  return reader.take();
}

}  // namespace lockstep
