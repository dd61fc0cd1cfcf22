#include "tools/views/queue/queue_gantt.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fmt/format.h>
#include <iterator>
#include <map>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "models/base/number_text.hpp"
#include "tools/views/queue/node_names.hpp"
#include "tools/views/report/page.hpp"
#include "tools/views/report/page_numbers.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostSpans = 6000;
constexpr int kMostNodes = 128;
constexpr int kGanttWidth = 960, kGanttLeft = 64, kGanttGap = 4, kGanttTop = 4,
              kGanttFoot = 22;      // px
constexpr int kGanttTicks = 6;      // at most, behind that at 0
constexpr double kLastTick = 0.97;  // of the width: words of ticks behind it end there

/// Between ticks from 0 to `end`: 1, 2, 3 or 5 times a power of ten, of which at most kGanttTicks
/// are in it.
double tick_step(double end) {
  const double least = std::max(end, 1e-9) / kGanttTicks;
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double times : {1, 2, 3, 5}) {
    if (times * power >= least * (1 - 1e-9)) return times * power;
  }
  return 10 * power;
}

/// Lines of a node that are free from some time on.
class NodeLines {
 public:
  explicit NodeLines(int gpus) : free_from_(static_cast<std::size_t>(gpus), 0) {}

  /// The lines that a span takes: the first free ones, because GPUs of a node are not told apart.
  std::vector<int> take(const JobSpan& span, int gpus) {
    std::vector<int> out;
    for (std::size_t line = 0; line < free_from_.size() && static_cast<int>(out.size()) < gpus;
         ++line) {
      if (free_from_[line] > span.begin) continue;
      free_from_[line] = span.end;
      out.push_back(static_cast<int>(line));
    }
    return out;
  }

 private:
  std::vector<RunTime> free_from_;
};

class Gantt {
 public:
  explicit Gantt(const QueueAnswer& a)
      : answer_(&a),
        nodes_(pictured_nodes(a.spec, a.result)),
        gpus_(a.result.burst ? std::max(a.spec.cluster.node.gpus, a.spec.burst->rented.node.gpus)
                             : a.spec.cluster.node.gpus),
        line_px_(gpus_ > 16  ? 1
                 : gpus_ > 8 ? 2
                             : 3) {
    end_s_ = std::max(to_seconds(a.result.end).base_units(), 1e-9);
  }

  [[nodiscard]] int height() const { return kGanttTop + nodes_ * row_px() + kGanttFoot; }

  [[nodiscard]] std::string svg() const {
    std::string out =
        fmt::format(R"(<svg viewBox="0 0 {} {}" role="img" xmlns="http://www.w3.org/2000/svg" )"
                    R"(font-family="inherit" font-size="11" fill="currentColor">)",
                    kGanttWidth, height());
    for (int node = 0; node < nodes_; ++node) {
      fmt::format_to(std::back_inserter(out),
                     R"(<text x="{}" y="{}" text-anchor="end" opacity="0.75">{}</text>)",
                     kGanttLeft - 8, top_of(node) + row_px() / 2 + 2,
                     node_name(answer_->spec, node));
      fmt::format_to(
          std::back_inserter(out),
          R"(<rect x="{}" y="{}" width="{}" height="{}" fill="currentColor" opacity="0.05"/>)",
          kGanttLeft, top_of(node), kGanttWidth - kGanttLeft, gpus_ * line_px_);
    }
    add_spans(out);
    add_ticks(out);
    return out + "</svg>";
  }

 private:
  [[nodiscard]] int row_px() const { return gpus_ * line_px_ + kGanttGap; }
  [[nodiscard]] int top_of(int node) const { return kGanttTop + node * row_px(); }
  [[nodiscard]] double x_of(RunTime time) const {
    return kGanttLeft + (kGanttWidth - kGanttLeft) * to_seconds(time).base_units() / end_s_;
  }

  /// Where spans are drawn: the lines of a node that each takes, from the first on.
  struct Place {
    const JobSpan* span;
    int node;
    std::vector<int> lines;
  };
  [[nodiscard]] std::vector<Place> places() const {
    std::vector<const JobSpan*> spans;
    for (const JobSpan& span : answer_->result.spans) spans.push_back(&span);
    std::ranges::stable_sort(spans, {}, [](const JobSpan* span) { return span->begin; });
    std::vector<NodeLines> nodes(static_cast<std::size_t>(nodes_), NodeLines(gpus_));
    std::vector<Place> out;
    for (const JobSpan* const span : spans) {
      for (const auto& [node, gpus] : span->held) {
        out.push_back({span, node, nodes[static_cast<std::size_t>(node)].take(*span, gpus)});
      }
    }
    return out;
  }

  void add_spans(std::string& out) const {
    const std::vector<Place> all = places();
    const std::vector<std::size_t> colours = colours_of(all);
    for (const Place& place : all) {
      add_rectangles(out, *place.span, place.node, place.lines, colours[place.span->job]);
    }
  }

  /// A colour for each job. Where there are more jobs than colours, each has that of which there is
  /// least beside it; of several the one that fewest jobs have.
  [[nodiscard]] std::vector<std::size_t> colours_of(const std::vector<Place>& all) const {
    const std::size_t jobs = answer_->spec.jobs.size();
    std::vector<std::size_t> colours(jobs);
    std::iota(colours.begin(), colours.end(), std::size_t{0});
    if (jobs <= kPageColours) return colours;
    const std::vector<Borders> borders = borders_of(all);
    std::array<std::size_t, kPageColours> used{};
    std::vector<std::uint8_t> has(jobs);
    for (const Place& place : all) {
      const std::size_t job = place.span->job;
      if (has[job] != 0) continue;
      has[job] = 1;
      std::array<double, kPageColours> beside{};
      for (const auto& [other, px] : borders[job]) {
        if (has[other] != 0) beside[colours[other]] += px;
      }
      colours[job] = 0;
      for (std::size_t colour = 1; colour < kPageColours; ++colour) {
        if (std::pair(beside[colour], used[colour]) <
            std::pair(beside[colours[job]], used[colours[job]])) {
          colours[job] = colour;
        }
      }
      ++used[colours[job]];
    }
    return colours;
  }

  /// Of a job: how many pixels of it lie beside each other one.
  using Borders = std::map<std::size_t, double>;
  [[nodiscard]] std::vector<Borders> borders_of(const std::vector<Place>& all) const {
    // All lines of all nodes below one another; a line's spans follow one another in time.
    std::vector<std::vector<const JobSpan*>> lines(static_cast<std::size_t>(nodes_) *
                                                   static_cast<std::size_t>(gpus_));
    for (const Place& place : all) {
      for (const int line : place.lines) {
        lines[static_cast<std::size_t>(place.node * gpus_ + line)].push_back(place.span);
      }
    }
    std::vector<Borders> out(answer_->spec.jobs.size());
    const auto meet = [&out](const JobSpan* a, const JobSpan* b, double px) {
      if (a->job == b->job || px <= 0) return;
      out[a->job][b->job] += px;
      out[b->job][a->job] += px;
    };
    for (std::size_t l = 0; l < lines.size(); ++l) {
      for (std::size_t i = 1; i < lines[l].size(); ++i) {
        meet(lines[l][i - 1], lines[l][i], line_px_);
      }
      if (l + 1 == lines.size()) continue;
      const std::vector<const JobSpan*>&upper = lines[l], &lower = lines[l + 1];
      for (std::size_t u = 0, v = 0; u < upper.size() && v < lower.size();) {
        const RunTime begin = std::max(upper[u]->begin, lower[v]->begin);
        const RunTime end = std::min(upper[u]->end, lower[v]->end);
        if (end > begin) meet(upper[u], lower[v], x_of(end) - x_of(begin));
        ++(upper[u]->end < lower[v]->end ? u : v);
      }
    }
    return out;
  }

  /// Adds a rectangle for each group of neighbouring lines.
  void add_rectangles(std::string& out, const JobSpan& span, int node,
                      const std::vector<int>& lines, std::size_t colour) const {
    const QueueSpec& spec = answer_->spec;
    const double x = x_of(span.begin);
    const double width = std::max(0.5, x_of(span.end) - x);
    for (std::size_t first = 0; first < lines.size();) {
      std::size_t next = first + 1;
      while (next < lines.size() && lines[next] == lines[next - 1] + 1) ++next;
      const std::string words = fmt::format(
          "{}: {}, {} from {}", spec.job_name(span.job), counted(spec.jobs[span.job].gpus, "GPU"),
          page_duration(to_seconds(span.end - span.begin).base_units()),
          page_duration(to_seconds(span.begin).base_units()));
      fmt::format_to(
          std::back_inserter(out),
          R"x(<rect x="{:.1f}" y="{}" width="{:.1f}" height="{}" fill="var(--colour-{})">)x"
          R"(<title>{}</title></rect>)",
          x, top_of(node) + lines[first] * line_px_, width,
          static_cast<int>(next - first) * line_px_, colour, escaped(words).str());
      first = next;
    }
  }

  void add_ticks(std::string& out) const {
    const AxisUnit unit = long_time_unit(end_s_);
    const double end = end_s_ / unit.size;
    const double step = tick_step(end);
    double at = 0;
    while (at <= end * (1 + 1e-9)) {
      const double share = end > 0 ? at / end : 0;
      const char* const anchor = at == 0 ? "start" : share > kLastTick ? "end" : "middle";
      fmt::format_to(std::back_inserter(out),
                     R"(<text x="{:.1f}" y="{}" text-anchor="{}" opacity="0.75">{} {}</text>)",
                     kGanttLeft + (kGanttWidth - kGanttLeft) * share, height() - 6, anchor,
                     plain_number(at), at == 1 && unit.name == "days" ? "day" : unit.name);
      at += step;
    }
  }

  const QueueAnswer* answer_;
  int nodes_;
  int gpus_;  ///< of a node, the most
  int line_px_;
  double end_s_ = 0;
};

}  // namespace

void add_queue_gantt(Page& page, const QueueAnswer& a) {
  const std::size_t spans = a.result.spans.size();
  if (spans == 0) return;
  page.section("Which job was where");
  const int nodes = pictured_nodes(a.spec, a.result);
  if (spans > kMostSpans || nodes > kMostNodes) {
    page.paragraph(prose(fmt::format(
        "{} stretches of jobs on {} nodes are too many to be drawn apart; `--format csv` "
        "lists each job with its nodes.",
        grouped(static_cast<double>(spans)), grouped(nodes))));
    return;
  }
  // As many jobs as there are colours each have their own.
  if (a.spec.jobs.size() <= kPageColours) {
    Html names;
    for (std::size_t job = 0; job < a.spec.jobs.size(); ++job) {
      names += escaped(job > 0 ? ", " : "") + coloured_name(a.spec.job_name(job), job);
    }
    page.paragraph(names);
  }
  constexpr int kLeastWidth = 900;  // px: names of nodes are read from there on
  const Gantt gantt(a);
  page.picture(
      {.title = "Jobs by node",
       .about = "A row is a node, a line in it a GPU; colours tell neighbours apart. Which "
                "GPUs of a node a job has is not simulated.",
       .summary =
           fmt::format("{} stretches of jobs on {} over time.", spans, counted(nodes, "node")),
       .height_px = gantt.height()},
      Html::markup(gantt.svg()), kLeastWidth);
}

}  // namespace lockstep
