#include "sim/trace/pytorch/kineto_recording.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <tuple>
#include <unordered_map>
#include <utility>

#include <nlohmann/json.hpp>

#include "models/base/input_error.hpp"
#include "models/base/json_text.hpp"
#include "models/base/letter_case.hpp"
#include "models/base/write_json.hpp"
#include "sim/trace/pytorch/called_ranges.hpp"
#include "sim/trace/pytorch/kineto_json.hpp"

namespace lockstep {
namespace {

using KinetoJson = nlohmann::json;

constexpr std::string_view kKinetoForm =
    "a trace of the PyTorch profiler (export_chrome_trace) with GPU kernels";
constexpr double kLatestKineto = 1e17, kLongestKineto = 8.64e11;  // 10 days
constexpr double kMostStreamNumber = 1e15;

/// The key's spelling changed in 2021.
std::int64_t external_of(const KinetoJson& args) {
  const std::int64_t id = kineto_id(args, "External id");
  return id != KinetoRecording::kNoId ? id : kineto_id(args, "external id");
}

class KinetoParser {
 public:
  KinetoParser(const std::string& file, bool with_host) : with_host_(with_host) {
    out_.file = file;
  }

  /// Nothing for a text that is no JSON.
  std::optional<KinetoRecording> read(std::string_view text) {
    in_list_ = is_event_list(text);
    const auto head =
        read_kineto_json(out_.file, text, [&](const KinetoJson& event, std::size_t index) {
          event_ = index;
          read_event(event);
        });
    if (!head) return std::nullopt;
    if (out_.gpu.empty()) fail("no kernel");
    read_head(*head);
    out_.streams = stream_count_;
    out_.threads = threads_.size();
    set_times();
    return std::move(out_);
  }

 private:
  /// Microseconds, as in the file.
  struct Span {
    double start = 0, took = 0;
  };
  struct Launch {
    double start = 0;
    std::int64_t thread = 0;
  };

  /// As the file numbers them.
  struct SyncStreams {
    std::int64_t device = 0, stream = 0, wait_on = 0;
  };

  [[noreturn]] void fail(std::string found) const {
    fail_trace(out_.file, std::move(found), std::string(kKinetoForm));
  }
  [[noreturn]] void fail_event(std::string_view name, std::string_view found,
                               std::string allowed) const {
    throw InputError({.file = out_.file,
                      .pointer = fmt::format("{}/{}", in_list_ ? "" : "/traceEvents", event_),
                      .found = fmt::format("{} {}", in_quotes(name), found),
                      .allowed = std::move(allowed),
                      .nearest = {}});
  }

  void read_event(const KinetoJson& json) {
    if (kineto_text(json, "ph") != "X") return;
    const std::string category = lowered(kineto_text(json, "cat"));
    const bool copies = category.ends_with("memcpy") || category.ends_with("memset");
    static const KinetoJson kNothing = KinetoJson::object();
    const auto found = json.find("args");
    const KinetoJson& args = found != json.end() && found->is_object() ? *found : kNothing;
    if (category == "kernel" || copies) return read_gpu(json, args, copies);
    const bool is_range = category == "user_annotation";
    if (!category.starts_with("gpu_")) read_mark(json);
    // "cuda_runtime", "cuda_driver", "xpu_runtime"; "Runtime" in 2021.
    const bool is_call = category.ends_with("runtime") || category.ends_with("driver");
    if (is_call) read_launch(json, args);
    if (is_range || category == "cpu_op") called_.add(json, args);
    if (!with_host_) return;
    if (is_range || category == "cpu_op" || category == "operator") {
      read_operator(json, args, is_range);
    } else if (is_call) {
      read_runtime(json, args);
    } else if (category == "cuda_sync") {
      read_sync(args);
    }
  }

  void read_mark(const KinetoJson& json) {
    constexpr std::string_view kMark = "ProfilerStep#";
    const auto found = json.find("name");
    if (found == json.end() || !found->is_string()) return;
    const auto& name = found->get_ref<const std::string&>();
    if (!name.starts_with(kMark)) return;
    KinetoRecording::Mark mark;
    const char* const end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + kMark.size(), end, mark.number);
    if (error != std::errc{} || stop != end) return;
    mark_spans_.push_back(span_of(json, name));
    out_.marks.push_back(mark);
  }
  /// When kernels were launched: calls of a trace without any are passed over.
  void read_launch(const KinetoJson& json, const KinetoJson& args) {
    const std::int64_t correlation = kineto_id(args, "correlation");
    const std::optional<double> start = kineto_number(json, "ts");
    if (correlation == KinetoRecording::kNoId || !start || !(std::abs(*start) <= kLatestKineto)) {
      return;
    }
    launches_.try_emplace(correlation, Launch{*start, kineto_id(json, "tid")});
  }

  Span span_of(const KinetoJson& json, std::string_view name) const {
    const std::optional<double> start = kineto_number(json, "ts"),
                                took = kineto_number(json, "dur");
    if (!start || !took || !(std::abs(*start) <= kLatestKineto) || !(*took >= 0) ||
        *took > kLongestKineto) {
      fail_event(name, "without times", R"("ts" and "dur" in microseconds)");
    }
    return {*start, *took};
  }

  void read_gpu(const KinetoJson& json, const KinetoJson& args, bool copies) {
    const std::string name = kineto_text(json, "name");
    KinetoRecording::GpuEvent event;
    gpu_spans_.push_back(span_of(json, name));
    const double stream =
        kineto_number(args, "stream").value_or(kineto_number(json, "tid").value_or(0));
    if (!(std::abs(stream) <= kMostStreamNumber)) fail_event(name, "on no stream", "a number");
    // Every card of a process has a stream 7.
    event.stream = stream_index({device_of(args), static_cast<std::int64_t>(stream)}, name);
    // "Memset (Device)" and "Memcpy DtoD (Device -> Device)" stay on the card.
    event.copies = copies && name.find("DtoD") == std::string::npos && !name.starts_with("Memset");
    event.name = name_index(name);
    event.correlation = kineto_id(args, "correlation");
    event.external = external_of(args);
    if (!copies && communicates(event.name)) {
      event.call = static_cast<std::uint32_t>(out_.calls.size());
      out_.calls.push_back(nccl_call_text(args));
    }
    out_.gpu.push_back(event);
  }

  void read_operator(const KinetoJson& json, const KinetoJson& args, bool is_range) {
    const std::string name = kineto_text(json, "name");
    operator_spans_.push_back(span_of(json, name));
    KinetoRecording::Operator added;
    added.external = external_of(args);
    added.record_function = std::max<std::int64_t>(kineto_id(args, "Record function id"), 0);
    added.thread = thread_of(json);
    added.name = name_index(name);
    added.sequence = kineto_id(args, "Sequence number");
    added.shapes = shapes_index(args);
    added.is_range = is_range;
    out_.operators.push_back(added);
  }

  void read_runtime(const KinetoJson& json, const KinetoJson& args) {
    const std::string name = kineto_text(json, "name");
    runtime_spans_.push_back(span_of(json, name));
    KinetoRecording::RuntimeCall call;
    call.correlation = kineto_id(args, "correlation");
    call.thread = thread_of(json);
    call.name = name_index(name);
    call.what = kineto_call_named(name);
    out_.runtime.push_back(call);
  }

  void read_sync(const KinetoJson& args) {
    // Streams are numbered as kernels come, and these may come before: set_times() looks again.
    sync_streams_.push_back(
        {device_of(args), kineto_id(args, "stream"), kineto_id(args, "wait_on_stream")});
    KinetoRecording::Sync sync;
    sync.correlation = kineto_id(args, "correlation");
    sync.record_correlation = kineto_id(args, "wait_on_cuda_event_record_corr_id");
    sync.stream_waits = kineto_text(args, "cuda_sync_kind") == "Stream Wait Event";
    out_.syncs.push_back(sync);
  }

  std::uint32_t name_index(const std::string& name) {
    const auto [at, added] =
        names_.try_emplace(name, static_cast<std::uint32_t>(out_.names.size()));
    if (added) out_.names.push_back(name);
    return at->second;
  }
  /// Traces repeat a few shapes in all layers and steps.
  std::uint32_t shapes_index(const KinetoJson& args) {
    const auto found = args.find("Input Dims");
    if (found == args.end() || !found->is_array()) return KinetoRecording::kNoShapes;
    const auto [at, added] =
        shapes_.try_emplace(write_json(*found), static_cast<std::uint32_t>(out_.shapes.size()));
    if (added) out_.shapes.push_back(kineto_shapes(*found));
    return at->second;
  }
  /// By the name's index: a few names have all kernels.
  bool communicates(std::uint32_t name) {
    for (std::size_t i = communicates_.size(); i <= name; ++i) {
      communicates_.push_back(is_communication_kernel(out_.names[i]));
    }
    return communicates_[name];
  }
  static std::int64_t device_of(const KinetoJson& args) { return kineto_id(args, "device"); }
  /// An event that does not say its card is on the stream of that number that others name, and the
  /// first card that is named has the stream that nobody said a card of.
  std::uint16_t stream_index(std::pair<std::int64_t, std::int64_t> place, std::string_view name) {
    auto at = streams_.find(place);
    if (at == streams_.end()) at = streams_.emplace(place, same_stream(place)).first;
    if (at->second >= TraceNode::kNoStream) {
      fail_event(name, "on one stream more", "at most 65535 streams");
    }
    return static_cast<std::uint16_t>(at->second);
  }
  std::size_t same_stream(std::pair<std::int64_t, std::int64_t> place) {
    const auto [card, number] = place;
    std::optional<std::size_t> untold, told;
    for (const auto& [other, index] : streams_) {
      if (other.second != number) continue;
      std::optional<std::size_t>& found = other.first == kNoKinetoId ? untold : told;
      if (!found) found = index;
    }
    if (card == kNoKinetoId && told) return *told;
    if (card != kNoKinetoId && untold && !told) return *untold;
    return stream_count_++;
  }
  std::uint32_t thread_of(const KinetoJson& json) {
    const std::int64_t number = kineto_id(json, "tid");
    return threads_.try_emplace(number, static_cast<std::uint32_t>(threads_.size())).first->second;
  }

  void read_head(const KinetoJson& root) {
    out_.device = kineto_device(root);
    if (!root.is_object()) return;
    const auto info = root.find("distributedInfo");
    if (info == root.end() || !info->is_object()) return;
    const auto number = [&](const char* key, int least) -> std::optional<int> {
      const auto value = kineto_number(*info, key);
      if (!value || !(*value >= least) || !(*value < kMostTraceRanks)) return std::nullopt;
      return static_cast<int>(*value);
    };
    out_.rank = number("rank", 0);
    out_.world = number("world_size", 1);
    if (const auto groups = info->find("pg_config"); groups != info->end()) read_groups(*groups);
  }

  /// The process groups of the job: a list, or its text. An empty list of ranks is all of them.
  void read_groups(const KinetoJson& given) {
    const KinetoJson parsed =
        given.is_string() ? KinetoJson::parse(given.get_ref<const std::string&>(), nullptr, false)
                          : KinetoJson();
    const KinetoJson& list = given.is_string() ? parsed : given;
    if (!list.is_array()) return;
    for (const KinetoJson& group : list) {
      if (!group.is_object()) continue;
      const auto text = [&](const char* key) {
        const auto found = group.find(key);
        if (found == group.end() || found->is_null()) return std::string();
        return found->is_string() ? found->get<std::string>() : write_json(*found);
      };
      const std::string name = text("pg_name"), ranks = text("ranks");
      const auto size = kineto_number(group, "pg_size");
      // Some write a world of two beside a group of four.
      if (out_.world && size && *size > *out_.world && *size < kMostTraceRanks) {
        out_.world = static_cast<int>(*size);
      }
      if (!name.empty() && ranks.find_first_of("0123456789") != std::string::npos &&
          ranks.find("...") == std::string::npos) {
        group_ranks_.insert_or_assign(name, ranks);
      }
    }
  }

  /// Ranks that a call does not say, or not all of, are those of its process group.
  void complete_ranks(NcclCallText& call) const {
    if (call.collective.empty()) return;
    const bool told = call.ranks.find_first_of("0123456789") != std::string::npos;
    if (told && call.ranks.find("...") == std::string::npos) return;
    if (const auto own = group_ranks_.find(call.group); own != group_ranks_.end()) {
      call.ranks = own->second;
    } else if (!told && call.group_size && out_.world && *call.group_size != *out_.world) {
      call.ranks = "not told";  // not all of them, as no ranks would be
    }
  }

  /// Picoseconds since the first event, and everything in their order.
  void set_times() {
    double first = std::numeric_limits<double>::infinity();
    for (const auto* spans : {&gpu_spans_, &operator_spans_, &runtime_spans_}) {
      for (const Span& span : *spans) first = std::min(first, span.start);
    }
    set_times(out_.gpu, gpu_spans_, first);
    set_times(out_.operators, operator_spans_, first);
    set_times(out_.runtime, runtime_spans_, first);
    set_marks(first);
    set_launches(first);
    out_.end = last_end();
    std::ranges::stable_sort(out_.gpu, {}, [](const KinetoRecording::GpuEvent& e) {
      return std::tuple(e.start, e.stream);
    });
    std::ranges::stable_sort(out_.operators, {}, &KinetoRecording::Operator::start);
    std::ranges::stable_sort(out_.runtime, {}, &KinetoRecording::RuntimeCall::start);
    for (std::size_t i = 0; i < out_.syncs.size(); ++i) {
      const SyncStreams& named = sync_streams_[i];
      const auto index = [&](std::int64_t number) {
        auto at = streams_.find({named.device, number});
        if (at == streams_.end()) {  // it does not say which card's
          at =
              std::ranges::find(streams_, number, [](const auto& row) { return row.first.second; });
        }
        return at == streams_.end() ? KinetoRecording::kNoId
                                    : static_cast<std::int64_t>(at->second);
      };
      out_.syncs[i].stream = index(named.stream);
      out_.syncs[i].wait_on = index(named.wait_on);
    }
  }
  [[nodiscard]] std::int64_t last_end() const {
    std::int64_t end = 0;
    for (const auto& event : out_.gpu) end = std::max(end, event.end);
    for (const auto& call : out_.runtime) end = std::max(end, call.end);
    for (const auto& own : out_.operators) {
      if (!own.is_range) end = std::max(end, own.end);
    }
    return end;
  }

  static std::int64_t picos_of(double micros) {
    constexpr double kPicosPerMicro = 1e6;
    return std::llround(std::clamp(micros, -kLongestKineto, kLongestKineto) * kPicosPerMicro);
  }
  void set_marks(double first) {
    for (std::size_t i = 0; i < out_.marks.size(); ++i) {
      out_.marks[i].start = picos_of(mark_spans_[i].start - first);
      out_.marks[i].end = out_.marks[i].start + picos_of(mark_spans_[i].took);
    }
    std::ranges::stable_sort(out_.marks, {}, &KinetoRecording::Mark::start);
  }
  void set_ranged_call(const KinetoRecording::GpuEvent& event, const Launch& launch) {
    if (!out_.calls[event.call].collective.empty()) return;
    auto call = called_.call_of(out_.names[event.name], launch.start, launch.thread,
                                out_.world.value_or(1));
    // A record says among whom, and is as good as the kernel's own words; a range does not.
    if (call && (!call->group.empty() || !call->ranks.empty())) {
      complete_ranks(*call);
      out_.calls[event.call] = *std::move(call);
    } else {
      out_.ranged_calls[event.call] = std::move(call);
    }
  }
  void set_launches(double first) {
    for (NcclCallText& call : out_.calls) complete_ranks(call);
    out_.ranged_calls.resize(out_.calls.size());
    for (KinetoRecording::GpuEvent& event : out_.gpu) {
      const auto at = launches_.find(event.correlation);
      event.launch = at == launches_.end() ? event.start : picos_of(at->second.start - first);
      if (event.communicates() && at != launches_.end()) set_ranged_call(event, at->second);
    }
  }

  template <class Event>
  void set_times(std::vector<Event>& events, const std::vector<Span>& spans, double first) const {
    constexpr double kPicosPerMicro = 1e6;
    for (std::size_t i = 0; i < events.size(); ++i) {
      const double after = spans[i].start - first;
      if (after > kLongestKineto) {
        fail_trace(
            out_.file,
            in_quotes(out_.names[events[i].name]) + " more than ten days after the first event",
            "events of one run");
      }
      events[i].start = std::llround(after * kPicosPerMicro);
      events[i].end = events[i].start + std::llround(spans[i].took * kPicosPerMicro);
    }
  }

  bool with_host_;
  std::size_t event_ = 0;  ///< that is read, in "traceEvents"
  bool in_list_ = false;   ///< which is the whole text
  KinetoRecording out_;
  std::vector<Span> gpu_spans_, operator_spans_, runtime_spans_, mark_spans_;
  std::unordered_map<std::int64_t, Launch> launches_;  ///< by correlation; as in the file
  CalledRanges called_;
  std::vector<SyncStreams> sync_streams_;
  std::unordered_map<std::string, std::string> group_ranks_;  ///< by the group's name
  std::unordered_map<std::string, std::uint32_t> names_, shapes_;
  std::vector<bool> communicates_;                                        ///< by name
  std::map<std::pair<std::int64_t, std::int64_t>, std::size_t> streams_;  ///< card, its stream
  std::size_t stream_count_ = 0;
  std::map<std::int64_t, std::uint32_t> threads_;
};

}  // namespace

KinetoRecording read_kineto_recording(const std::string& file, std::string_view text,
                                      bool with_host) {
  if (auto out = KinetoParser(file, with_host).read(text)) return *std::move(out);
  // Once more, with the numbers that JSON lacks, and strings as it has them.
  const std::string quoted = mend_strings(quote_non_finite(text));
  if (auto out = KinetoParser(file, with_host).read(quoted)) return *std::move(out);
  fail_trace(file, no_json_words(quoted), std::string(kKinetoForm));
}

KinetoRecording::Call kineto_call_named(std::string_view name) {
  using enum KinetoRecording::Call;
  if (name.ends_with("StreamSynchronize")) return stream_sync;
  if (name.ends_with("DeviceSynchronize") || name.ends_with("CtxSynchronize")) return device_sync;
  if (name.ends_with("EventSynchronize")) return event_sync;
  return other;
}

void forget_host(KinetoRecording& recording) {
  recording.operators.clear();
  recording.runtime.clear();
  recording.syncs.clear();
  const std::int64_t first = recording.gpu.front().start;
  recording.end = 0;
  for (KinetoRecording::GpuEvent& event : recording.gpu) {
    event.start -= first;
    event.end -= first;
    event.launch -= first;
    recording.end = std::max(recording.end, event.end);
  }
  for (KinetoRecording::Mark& mark : recording.marks) {
    mark.start -= first;
    mark.end -= first;
  }
}

}  // namespace lockstep
