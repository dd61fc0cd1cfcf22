#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/fabric/hash_band.hpp"
#include "sim/scenario/names.hpp"
#include "sim/search/ask.hpp"
#include "sim/step/unseen_traffic.hpp"
#include "tools/views/tune/tune_output.hpp"

namespace lockstep {
namespace {

double spent(const TunedLayout& layout, std::initializer_list<Bucket> buckets) {
  double sum = 0;
  for (const Bucket bucket : buckets) sum += layout.seconds[static_cast<std::size_t>(bucket)];
  return sum / layout.step_s;
}
double exposed(const TunedLayout& layout) {
  return spent(layout, {Bucket::tensor_exposed, Bucket::context_exposed, Bucket::expert_exposed,
                        Bucket::pipeline_exposed, Bucket::data_exposed, Bucket::host_exposed});
}

std::string gib_number(Bytes bytes) { return fmt::format("{:.1f}", double{bytes / gibibytes(1)}); }

/// Of each bucket, for a narrow column.
constexpr std::array<std::string_view, kBuckets> kShortNames{
    "useful",  "kernels",   "memory",    "recompute", "launch", "tensor",
    "context", "expert",    "imbalance", "messages",  "bubble", "data",
    "host",    "variation", "straggler", "optimiser"};

/// What a layout spends most on beyond the best, in per cent of the step of that: "bubble +8.2";
/// and whether it is close in memory.
std::string reason(const TunedLayout& layout, const TunedLayout& best) {
  std::size_t most = 0;
  double loss = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    const double more = layout.seconds[i] - best.seconds[i];
    if (more > loss) most = i, loss = more;
  }
  std::string close = layout.memory.close() ? "close" : "";
  if (layout.step_s <= best.step_s || loss <= 0) return close;
  return fmt::format("{} {:+.1f}{}", kShortNames[most], 100 * loss / best.step_s,
                     close.empty() ? "" : ", " + close);
}

std::string counts(const TuneResult& r, const std::string& stack) {
  std::vector<std::string> rules;
  std::size_t refused = 0;
  for (const TuneCount& count : r.refused) {
    refused += count.layouts;
    rules.push_back(
        fmt::format("{} {}", count.reason.substr(1), grouped(static_cast<double>(count.layouts))));
  }
  const auto number = [](std::size_t n) { return grouped(static_cast<double>(n)); };
  std::string out = number(r.considered) + " layouts";
  if (!r.beyond_stack.empty()) {
    std::size_t unable = 0;
    std::vector<std::string> reasons;
    for (const TuneCount& count : r.beyond_stack) {
      unable += count.layouts;
      reasons.push_back(
          fmt::format("{} {}", count.reason, grouped(static_cast<double>(count.layouts))));
    }
    out += fmt::format("; {} are nothing that {} can run ({})", number(unable), stack,
                       fmt::join(reasons, ", "));
  }
  if (refused > 0) {
    out += fmt::format("; {} break a rule ({})", number(refused), fmt::join(rules, ", "));
  }
  if (r.same_as_zero1 > 0) {
    out += fmt::format("; {} are no faster than with less sharding", number(r.same_as_zero1));
  }
  return out + fmt::format("; {} do not fit in memory; {} {}; {} replayed", number(r.over_memory),
                           number(r.pruned),
                           r.interrupted ? "were left when it was interrupted"
                                         : "cannot be among the best by their lower bound",
                           number(r.replayed));
}

std::string own_words(const TuneStudy& study) {
  const TuneResult& r = study.result;
  const std::string name = own_layout_name(study);
  if (!r.own) return name + " cannot be run: " + r.own_problem;
  const auto number = [](std::size_t n) { return grouped(static_cast<double>(n)); };
  std::string out = r.own_rank_first == r.own_rank_last
                        ? fmt::format("{} is number {}", name, number(r.own_rank_first))
                        : fmt::format("{} is number {} to {}", name, number(r.own_rank_first),
                                      number(r.own_rank_last));
  out += fmt::format(" of the {} that fit", number(r.pruned + r.replayed));
  if (!r.own_fits)
    out += fmt::format("; it needs {} GiB and does not fit", gib_number(r.own->peak.needed()));
  if (r.best.empty()) return out + ".";
  const double saved = 1 - r.best.front().step_s / r.own->step_s;
  if (saved > 0) return out + fmt::format("; the best takes {} less time.", percent_text(saved));
  return out + ".";
}

/// The ends of the interval of what the table leads with, in its unit where they have it too:
/// "78.1-91.4".
std::string interval_text(const TunedLayout& layout, const PredictionInterval& interval,
                          bool by_mfu) {
  if (by_mfu) {
    return fmt::format("{:.1f}-{:.1f}", 100 * layout.mfu / interval.high,
                       100 * layout.mfu / interval.low);
  }
  std::string low = duration_text(layout.step_s * interval.low);
  std::string high = duration_text(layout.step_s * interval.high);
  const std::string step = duration_text(layout.step_s);
  const std::string unit = high.substr(high.find(' '));
  if (low.ends_with(unit)) low.resize(low.size() - unit.size());
  if (step.ends_with(unit)) high.resize(high.size() - unit.size());
  return low + "-" + high;
}

/// One sequence to a micro batch is what most have, and goes without saying.
std::string layout_cell(const TrainingJob& job) {
  constexpr std::string_view kUsual = " micro 1";
  std::string out = layout_words(job);
  const std::size_t at = out.find(kUsual);
  if (at != std::string::npos && job.batch.micro_sequences == 1) out.erase(at, kUsual.size());
  return out;
}

/// Rows of layouts, as wide as a page: a table that is wider goes without what the step's parts
/// tell, and a layout that is still too long goes on in the next line.
class LayoutTable {
 public:
  explicit LayoutTable(bool by_mfu)
      : columns_{{""},
                 {"layout", TextTable::Align::left},
                 {by_mfu ? "MFU" : "step"},
                 {"90 %"},
                 {"bubble"},
                 {"comm"},
                 {"free"},
                 {"over the first", TextTable::Align::left}} {}

  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  [[nodiscard]] std::string text(const TextStyle& style) {
    if (excess() > 0) drop_parts();
    TextTable table(columns_);
    const int most = width_of(kLayout) - std::max(0, excess());
    for (std::vector<std::string>& row : rows_) {
      std::string rest = std::exchange(row[kLayout], {});
      row[kLayout] = cut_words(rest, most);
      table.add(std::move(row));
      while (!rest.empty()) {
        std::vector<std::string> more(columns_.size());
        more[kLayout] = "  " + cut_words(rest, most - 2);
        table.add(std::move(more));
      }
    }
    return table.text(style);
  }
  [[nodiscard]] bool has_parts() const { return columns_.size() == kColumns; }

 private:
  static constexpr std::size_t kLayout = 1, kBubble = 4, kFree = 6, kColumns = 8;

  [[nodiscard]] int width_of(std::size_t column) const {
    int width = text_width(columns_[column].title);
    for (const auto& row : rows_) width = std::max(width, text_width(row[column]));
    return width;
  }
  /// Columns beyond those of a page.
  [[nodiscard]] int excess() const {
    int width = 0;
    for (std::size_t c = 0; c < columns_.size(); ++c) width += 2 + width_of(c);
    return width - kTextColumns;
  }
  void drop_parts() {
    const auto drop = [](auto& cells) {
      cells.erase(cells.begin() + kBubble, cells.begin() + kFree);
    };
    drop(columns_);
    for (auto& row : rows_) drop(row);
  }
  /// Takes the first words of `rest`, as many as are no wider than `most`, and at least one.
  static std::string cut_words(std::string& rest, int most) {
    std::string out = std::exchange(rest, {});
    if (text_width(out) <= most) return out;
    std::size_t end = out.find(' ');
    for (std::size_t next = end; next != std::string::npos; next = out.find(' ', next + 1)) {
      if (text_width(out.substr(0, next)) <= most) end = next;
    }
    if (end == std::string::npos) return out;
    rest = out.substr(end + 1);
    out.resize(end);
    return out;
  }

  std::vector<TextTable::Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

void add_row(LayoutTable& table, const std::string& rank, const TunedLayout& layout,
             const PredictionInterval& interval, const TuneStudy& study) {
  const auto percent = [](double share) { return fmt::format("{:.1f}", 100 * share); };
  const TunedLayout& best = study.result.best.front();
  const bool tied = layout.ties && study.result.ties > 1;
  table.add({rank + (tied ? "=" : " "), layout_cell(layout.scenario.job),
             study.by_mfu ? percent(layout.mfu) : duration_text(layout.step_s),
             interval_text(layout, interval, study.by_mfu),
             percent(spent(layout, {Bucket::pipeline_bubble})), percent(exposed(layout)),
             gib_number(layout.usable - layout.peak.needed()), reason(layout, best)});
}

/// Which layouts are as good as one another, and how good the intervals are.
std::string notes(const TuneStudy& study) {
  const TuneResult& r = study.result;
  std::string out;
  if (r.ties > 1) {
    out +=
        fmt::format("=: within {:g} % of the fastest ({}), as {} layouts are{}. ", 100 * kTie,
                    duration_text(r.fastest_s), grouped(static_cast<double>(r.ties)),
                    r.best.front().ties ? fmt::format("; the {} of them comes first", r.chosen_as())
                                        : std::string());
  }
  if (const std::string close = close_sentence(study); !close.empty()) out += close + " ";
  if (!study.intervals.empty()) {
    out += fmt::format("90 %: the interval that holds nine of ten runs ({}).",
                       words_of(study.intervals.front()));
  }
  return out;
}

/// Steps that are not exact, each with what is known of it.
std::string method_lines(const TuneStudy& study) {
  std::string out;
  const auto add = [&](const std::string& rank, const TunedLayout& layout) {
    const std::string words = method_words(layout.method, layout.band);
    if (!words.empty()) out += "  " + wrap(rank + ": " + words, kTextColumns, 4, 2) + "\n";
  };
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    add(std::to_string(i + 1), study.result.best[i]);
  }
  if (study.result.own) add("own", *study.result.own);
  return out;
}

}  // namespace

std::string layout_words(const TrainingJob& job) {
  const Parallelism& p = job.parallelism;
  std::string out = fmt::format("TP {}", p.tensor);
  if (p.context > 1) out += fmt::format(" CP {}", p.context);
  if (p.pipeline > 1) {
    out += fmt::format(" PP {}", p.pipeline);
    if (p.virtual_stages > 1) out += fmt::format("x{}", p.virtual_stages);
    const bool usual =
        p.schedule == (p.virtual_stages > 1 ? Schedule::interleaved : Schedule::one_f_one_b);
    if (!usual) out += fmt::format(" {}", name_of(p.schedule));
  }
  if (p.expert > 1) out += fmt::format(" EP {}", p.expert);
  if (p.expert_tensor > 1) out += fmt::format("x{}", p.expert_tensor);
  out += fmt::format(" DP {} micro {}", p.data, job.batch.micro_sequences);
  if (p.sharding != Sharding::none) out += fmt::format(" {}", name_of(p.sharding));
  if (job.recompute != Recompute::none) out += fmt::format(" {}", name_of(job.recompute));
  return out;
}

std::string close_sentence(const TuneStudy& study) {
  const auto is_close = [](const TunedLayout& layout) { return layout.memory.close(); };
  if (std::ranges::none_of(study.result.best, is_close)) return {};
  return fmt::format(
      "close: may not fit, by what is assumed of its memory; one that surely fits comes first "
      "where it takes at most {:g} % longer than the fastest.",
      100 * kSafer);
}

namespace {

/// "close: 68.8 to 85.8 GiB are needed by what is assumed, of 77.6; fragmentation (6 %) decides."
std::string close_words(const TunedLayout& layout) {
  return fmt::format("close: {} to {} GiB are needed by what is assumed, of {}; {} decides.",
                     gib_number(layout.memory.least), gib_number(layout.memory.most),
                     gib_number(layout.usable), layout.memory.decides);
}

}  // namespace

std::vector<std::string> tune_notes(const TuneStudy& study) {
  std::vector<std::string> texts;
  std::vector<std::vector<std::size_t>> ranks;
  for (std::size_t i = 0; i < study.result.best.size(); ++i) {
    const TunedLayout& layout = study.result.best[i];
    const Scenario& scenario = layout.scenario;
    std::vector<std::string> found = unseen_traffic(scenario, plan_step(scenario));
    if (layout.memory.close()) found.push_back(close_words(layout));
    for (std::string& text : found) {
      const auto at = static_cast<std::size_t>(std::ranges::find(texts, text) - texts.begin());
      if (at == texts.size()) {
        texts.push_back(std::move(text));
        ranks.emplace_back();
      }
      ranks[at].push_back(i + 1);
    }
  }
  for (std::size_t t = 0; t < texts.size(); ++t) {
    texts[t] = fmt::format("Of number {}: {}", fmt::join(ranks[t], ", "), texts[t]);
  }
  const Scenario& base = study.base;
  std::string draw = draw_words(base.fabric, base.nodes, nic_ports(base.node));
  if (!draw.empty() && !study.result.best.empty()) texts.push_back("All layouts: " + draw);
  return texts;
}

std::string own_layout_name(const TuneStudy& study) {
  if (study.base.file != kAskedFile) return "The scenario's own layout";
  return study.result.own ? fmt::format("The plain layout that these options leave, {},",
                                        layout_words(study.result.own->scenario.job))
                          : "The plain layout that these options leave";
}

std::string tune_table(const TuneStudy& study, const TextStyle& style) {
  const Scenario& base = study.base;
  const TuneResult& r = study.result;
  std::string out =
      style.bold(fmt::format("{} on {}", base.job.model.name, counted(base.gpus(), "GPU"))) +
      fmt::format(" ({} x {}, {})\n", grouped(base.nodes), base.node.name, base.node.gpu.name);
  out += wrap(counts(r, base.stack.name) + ".", kTextColumns, 0) + "\n";
  if (const std::string over = study.limits.warning("layouts"); !over.empty()) out += over + ".\n";
  out += "\n";
  LayoutTable table(study.by_mfu);
  for (std::size_t i = 0; i < r.best.size(); ++i) {
    add_row(table, std::to_string(i + 1), r.best[i], study.intervals[i], study);
  }
  if (r.own && !r.best.empty()) add_row(table, "own", *r.own, *study.own_interval, study);
  out += table.text(style);
  const std::string legend =
      fmt::format("{}{}free: GiB; over the first: % of its step; micro batches of 1 unless said",
                  table.has_parts() ? "bubble, comm (exposed communication): % of the step; " : "",
                  study.by_mfu ? "MFU: %; " : "");
  out += "  " + wrap(legend, kTextColumns, 2, 2) + "\n";
  if (const std::string text = notes(study); !text.empty()) {
    out += "  " + wrap(text, kTextColumns, 2, 2) + "\n";
  }
  out += method_lines(study);
  const std::vector<std::string> notes_below = tune_notes(study);
  const bool has_own = r.own || !r.own_problem.empty();
  if (has_own || !notes_below.empty() || r.interrupted) out += "\n";
  if (has_own) out += wrap(own_words(study), kTextColumns, 0) + "\n";
  for (const std::string& note : notes_below) out += wrap(note, kTextColumns, 0) + "\n";
  if (r.interrupted) out += "Interrupted: the best so far.\n";
  return out;
}

}  // namespace lockstep
