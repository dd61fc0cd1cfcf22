#include "sim/step/critical_path.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>

namespace lockstep {
namespace {

class Walk {
 public:
  Walk(const StepPlan& plan, const ReplayResult& result) : plan_(plan), result_(result) {
    std::size_t first = 0;
    for (std::size_t a = 0; a < result.actors.size(); ++a) {
      first_.push_back(first);
      first += stage(a).items.size();
    }
    passes_.resize(first);
  }

  CriticalPath run() {
    const std::size_t last = last_actor();
    const StepTime passes_end = record(last, stage(last).items.size() - 1).end;
    const StepTime tail = result_.end - result_.optimiser_start - plan_.stagger;
    const StepTime update =
        std::min(tail, plan_.synchronisation + plan_.overhead + stage(last).optimiser);
    add(staggered, plan_.stagger);
    add(gather, tail - update);
    add(optimiser, update);
    add(reduce, result_.optimiser_start - passes_end);
    walk(last, stage(last).items.size() - 1);
    return {.parts = parts(), .passes = std::move(passes_), .last_actor = last};
  }

 private:
  /// Passes come first, in the order of Pass.
  enum Part : std::size_t {
    forward,
    backward,
    backward_input,
    backward_weight,
    messages,
    gather,
    reduce,
    optimiser,
    staggered,
    kParts
  };
  static constexpr std::array<std::string_view, kParts> kNames{"forward passes",
                                                               "backward passes",
                                                               "input-gradient passes",
                                                               "weight-gradient passes",
                                                               "pipeline messages",
                                                               "parameter gathers",
                                                               "gradient reduction",
                                                               "optimiser and synchronisation",
                                                               "staggered begin of replicas"};

  [[nodiscard]] const StagePlan& stage(std::size_t actor) const {
    return result_.plan_of(plan_, actor);
  }
  [[nodiscard]] const ItemRecord& record(std::size_t actor, std::size_t item) const {
    return result_.items[first_[actor] + item];
  }
  void add(Part part, StepTime time) { times_[part] += time; }

  /// The actor that was the last to be ready for the optimiser.
  [[nodiscard]] std::size_t last_actor() const {
    std::vector<StepTime> reduced(result_.actors.size());
    for (const CollectiveRecord& c : result_.collectives) {
      if (c.end > result_.optimiser_start) continue;
      for (const std::uint32_t a : result_.data_groups[c.group]) {
        reduced[a] = std::max(reduced[a], c.end);
      }
    }
    std::vector<StepTime> ready(result_.actors.size());
    for (std::size_t a = 0; a < ready.size(); ++a) {
      const StepTime passes = record(a, stage(a).items.size() - 1).end;
      ready[a] = std::max(passes, reduced[a]);
    }
    return static_cast<std::size_t>(std::ranges::max_element(ready) - ready.begin());
  }

  struct Sender {
    std::size_t actor, item;
    StepTime sent;
  };
  /// The pass that sent the message that this one needs.
  [[nodiscard]] Sender sender(std::size_t actor, const WorkItem& work) const {
    const std::size_t rank = actor % plan_.stages.size();
    const ChunkPlace at{static_cast<int>(rank), work.chunk};
    const bool ahead = is_forward(work.pass);
    const ChunkPlace from = (ahead ? plan_.shape.before(at) : plan_.shape.after(at)).value();
    const std::size_t sending = actor - rank + static_cast<std::size_t>(from.rank);
    const auto& items = stage(sending).items;
    const auto it = std::ranges::find_if(items, [&](const ProgramItem& i) {
      return i.work.pass != Pass::backward_weight && is_forward(i.work.pass) == ahead &&
             i.work.chunk == from.chunk && i.work.micro_batch == work.micro_batch;
    });
    const auto item = static_cast<std::size_t>(it - items.begin());
    // Of a pair both messages leave at the end.
    const std::size_t last = item + (it->work.pairs ? 1 : 0);
    return {sending, last, record(sending, last).end};
  }
  /// The later one of the messages that an item, or the pair that begins with it, needs.
  [[nodiscard]] std::optional<Sender> last_sender(std::size_t actor, std::size_t item) const {
    std::optional<Sender> last;
    const auto& items = stage(actor).items;
    for (std::size_t i = item; i <= item + (items[item].work.pairs ? 1 : 0); ++i) {
      if (!items[i].needs_message) continue;
      const Sender one = sender(actor, items[i].work);
      if (!last || one.sent > last->sent) last = one;
    }
    return last;
  }

  /// Whether a pass that began later than the previous one ended can have waited for a message: its
  /// own, or that of the previous one to be taken. Else it waited for weights.
  [[nodiscard]] bool held_by_message(std::size_t actor, std::size_t item) const {
    if (last_sender(actor, item)) return true;
    return plan_.blocking_sends && stage(actor).items[item - 1].sends_message;
  }

  void walk(std::size_t actor, std::size_t item) {
    while (true) {
      const ItemRecord& r = record(actor, item);
      const ProgramItem& program = stage(actor).items[item];
      passes_[first_[actor] + item] = true;
      add(static_cast<Part>(program.work.pass), r.end - r.start);
      const StepTime previous = item > 0 ? record(actor, item - 1).end : StepTime{};
      if (r.start > previous) {
        const std::optional<Sender> from = last_sender(actor, item);
        if (from && from->sent >= previous) {
          add(messages, r.start - from->sent);
          actor = from->actor;
          item = from->item;
          continue;
        }
      }
      if (item == 0) {
        add(gather, r.start);
        return;
      }
      add(held_by_message(actor, item) ? messages : gather, r.start - previous);
      --item;
    }
  }

  [[nodiscard]] std::vector<CriticalPathPart> parts() const {
    std::vector<CriticalPathPart> parts;
    for (std::size_t i = 0; i < kParts; ++i) {
      const double seconds = to_seconds(times_[i]).base_units();
      if (seconds <= 0) continue;
      parts.push_back(
          {std::string{kNames[i]}, seconds, seconds / to_seconds(result_.end).base_units()});
    }
    std::ranges::stable_sort(parts,
                             [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
    return parts;
  }

  const StepPlan& plan_;
  const ReplayResult& result_;
  std::vector<std::size_t> first_;
  std::vector<bool> passes_;
  std::array<StepTime, kParts> times_{};
};

}  // namespace

CriticalPath critical_path(const StepPlan& plan, const ReplayResult& result) {
  return Walk{plan, result}.run();
}

}  // namespace lockstep
