#include "tools/views/run/schedule_svg.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

#include "models/base/number_text.hpp"
#include "sim/scenario/names.hpp"
#include "tools/console/written.hpp"
#include "tools/views/run/run_pools.hpp"

namespace lockstep {
namespace {

// Pixels.
constexpr double kStageNames = 70, kTimeline = 1500, kStageRow = 22, kRowGap = 4, kHead = 64,
                 kFoot = 34;
// Numbers on passes.
constexpr double kDigit = 0.62;  ///< width, of the font's size
constexpr double kLargest = 10, kSmallest = 6;

/// How a kind of slice is painted, in even and in odd chunks.
struct Paint {
  std::string_view kind;  ///< as slice_kinds() says it
  std::string_view even, odd;
};
constexpr std::array kPaints{
    Paint{"forward", "#2f6db5", "#a9c8ea"},         Paint{"backward", "#c2541b", "#f0b792"},
    Paint{"input gradients", "#0d8075", "#97d6cd"}, Paint{"weight gradients", "#7a4ea3", "#cdb6e2"},
    Paint{"optimiser", "#8a8f98", "#8a8f98"},
};

const Paint* paint_of(const TimelineSlice& slice) {
  const std::string_view name = slice_kinds()[slice.kind].name;
  const auto* it = std::ranges::find_if(kPaints, [&](const Paint& p) { return p.kind == name; });
  return it == kPaints.end() ? nullptr : it;
}

/// 1, 2 or 5 times a power of ten, so that there are about ten of them.
double tick_seconds(double step_s) {
  const double rough = step_s / 10;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

/// Dark where the reader's system is, on a screen; readers of SVG without CSS show it light.
constexpr std::string_view kDarkSchedule =
    "<style>@media screen and (prefers-color-scheme: dark) {"
    ".lockstep-schedule { fill: #e8ebf0 } .lockstep-schedule .ground { fill: #191d25 }"
    ".lockstep-schedule [fill=\"#555\"] { fill: #a3acba }"
    ".lockstep-schedule [stroke=\"#ddd\"] { stroke: #2b313c }"
    ".lockstep-schedule [stroke=\"#fff\"] { stroke: #191d25 }}</style>\n";

class Drawing {
 public:
  explicit Drawing(const StepReport& report)
      : report_(report), rows_(report.stages.size()), scale_(kTimeline / report.step_s) {}

  std::string text(const std::string& title) {
    const double width = kStageNames + kTimeline + 20;
    const double height = kHead + bottom() + kFoot;
    print(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" width=\"{0:g}\" "
        "height=\"{1:g}\" class=\"lockstep-schedule\" font-family=\"sans-serif\" "
        "font-size=\"12\" fill=\"#222\">\n<title>{2}</title>\n{4}"
        "<rect class=\"ground\" width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<text x=\"{3:g}\" y=\"20\" font-size=\"14\" font-weight=\"bold\">{2}</text>\n",
        width, height, SvgText(title).str(), kStageNames, kDarkSchedule);
    legend();
    axis();
    ranks();
    passes();
    out_ += "</svg>\n";
    return std::move(out_);
  }

 private:
  template <class... Args>
  void print(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  [[nodiscard]] double bottom() const { return static_cast<double>(rows_) * (kStageRow + kRowGap); }
  [[nodiscard]] double x(StepTime t) const {
    return kStageNames + to_seconds(t).base_units() * scale_;
  }
  [[nodiscard]] static double y(std::size_t row) {
    return kHead + static_cast<double>(row) * (kStageRow + kRowGap);
  }
  [[nodiscard]] bool drawn(const TimelineSlice& slice) const {
    return slice.actor < rows_ && slice.stream == 0 && slice.end > slice.start &&
           paint_of(slice) != nullptr;
  }

  void legend() {
    double at = kStageNames;
    for (const Paint& paint : kPaints) {
      const bool used = std::ranges::any_of(report_.timeline, [&](const TimelineSlice& slice) {
        return drawn(slice) && paint_of(slice) == &paint;
      });
      if (!used) continue;
      print(R"(<rect x="{:g}" y="32" width="14" height="14" fill="{}"/>)", at, paint.even);
      print("<text x=\"{:g}\" y=\"44\">{}</text>\n", at + 20, paint.kind);
      at += 44 + 7 * static_cast<double>(paint.kind.size());
    }
    const bool several = std::ranges::any_of(
        report_.timeline, [](const TimelineSlice& slice) { return slice.chunk > 0; });
    if (several) print("<text x=\"{:g}\" y=\"44\">paler: odd chunks</text>\n", at);
  }

  void axis() {
    const double tick = tick_seconds(report_.step_s);
    const bool in_ms = report_.step_s < 1;
    for (int i = 0; i * tick <= report_.step_s * (1 + 1e-9); ++i) {
      const double at = kStageNames + i * tick * scale_;
      print(R"(<path d="M{0:.2f} {1:g}V{2:g}" stroke="#ddd"/>)", at, kHead - 4, kHead + bottom());
      print("<text x=\"{:.2f}\" y=\"{:g}\" text-anchor=\"middle\" fill=\"#555\">{:g} {}</text>\n",
            at, kHead + bottom() + 18, in_ms ? i * tick * 1e3 : i * tick, in_ms ? "ms" : "s");
    }
  }

  void ranks() {
    for (std::size_t row = 0; row < rows_; ++row) {
      print("<text x=\"{:g}\" y=\"{:g}\" text-anchor=\"end\">stage {}</text>\n", kStageNames - 8,
            y(row) + kStageRow / 2 + 4, report_.actors[row].stage);
    }
  }

  /// One path for all passes of a colour: a third of the text of rectangles.
  void passes() {
    std::map<std::string_view, std::string> paths;
    for (const TimelineSlice& slice : report_.timeline) {
      if (!drawn(slice)) continue;
      const Paint& paint = *paint_of(slice);
      const std::string_view colour = slice.chunk % 2 == 1 ? paint.odd : paint.even;
      const double from = x(slice.start), width = x(slice.end) - from;
      fmt::format_to(std::back_inserter(paths[colour]), "M{0:.2f} {1:g}h{2:.2f}v{3:g}h-{2:.2f}z",
                     from, y(slice.actor), width, kStageRow);
    }
    for (const auto& [colour, path] : paths) {
      print("<path fill=\"{}\" stroke=\"#fff\" stroke-width=\"0.6\" d=\"{}\"/>\n", colour, path);
    }
    numbers();
  }

  /// Passes that are numbered alike, all of them or none: of one kind and chunk on one rank.
  using Alike = std::tuple<std::size_t, std::size_t, int>;
  static Alike alike(const TimelineSlice& slice) {
    return {slice.actor, static_cast<std::size_t>(slice.kind), slice.chunk};
  }
  [[nodiscard]] bool numbered(const TimelineSlice& slice) const {
    return drawn(slice) && slice.micro_batch >= 0;
  }

  /// The size in which the longest number fits the narrowest pass.
  [[nodiscard]] std::map<Alike, double> number_sizes() const {
    struct Room {
      double narrowest = kTimeline;
      std::size_t digits = 1;
    };
    std::map<Alike, Room> rooms;
    for (const TimelineSlice& slice : report_.timeline) {
      if (!numbered(slice)) continue;
      Room& room = rooms[alike(slice)];
      room.narrowest = std::min(room.narrowest, x(slice.end) - x(slice.start));
      room.digits = std::max(room.digits, std::to_string(slice.micro_batch).size());
    }
    std::map<Alike, double> sizes;
    for (const auto& [which, room] : rooms) {
      const double fits = (room.narrowest - 2) / (kDigit * static_cast<double>(room.digits));
      sizes[which] = std::min(kLargest, fits);
    }
    return sizes;
  }

  void numbers() {
    const std::map<Alike, double> sizes = number_sizes();
    print("<g font-size=\"{:g}\" text-anchor=\"middle\">\n", kLargest);
    for (const TimelineSlice& slice : report_.timeline) {
      if (!numbered(slice)) continue;
      const double size = sizes.at(alike(slice));
      if (size < kSmallest) continue;
      print("<text x=\"{:.2f}\" y=\"{:g}\" fill=\"{}\"{}>{}</text>\n",
            (x(slice.start) + x(slice.end)) / 2, y(slice.actor) + kStageRow / 2 + 0.35 * size,
            slice.chunk % 2 == 1 ? "#222" : "#fff",
            size < kLargest ? fmt::format(" font-size=\"{:.1f}\"", size) : "", slice.micro_batch);
    }
    out_ += "</g>\n";
  }

  const StepReport& report_;
  std::size_t rows_;
  double scale_;  ///< pixels a second
  std::string out_;
};

}  // namespace

std::string schedule_svg(const StepReport& report, const std::string& title) {
  return Drawing{report}.text(title);
}

std::string schedule_title(const RunResult& result) {
  const Scenario& scenario = result.scenario;
  const Parallelism& layout = scenario.job.parallelism;
  return fmt::format("{} on {}: {}, {}, {}, step of {}", scenario.job.model.name,
                     counted(scenario.gpus(), "GPU"), name_of(layout.schedule),
                     counted(layout.pipeline, "stage"), micro_batches_text(scenario),
                     duration_text(result.report.step_s));
}

}  // namespace lockstep
