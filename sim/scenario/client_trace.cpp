#include "sim/scenario/client_trace.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <span>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/number_text.hpp"
#include "models/base/text_file.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/serving_load.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr double kOnlyWindow = 600;  // seconds of one that has no next: as ServeGen cuts time
constexpr double kLatestWindow = 4e9, kMostRate = 1e9, kMostVariation = 1e4;
constexpr std::uint32_t kClientArrivals = 215, kClientLengths = 216;
constexpr std::array<std::string_view, 4> kClientColumns{"client", "window_s", "requests_per_s",
                                                         "interarrival_cv"};
constexpr std::array<std::string_view, 6> kLengthColumns{"input_p50",  "input_p90",  "input_p99",
                                                         "output_p50", "output_p90", "output_p99"};

/// Logarithms of a client's lengths: half, nine of ten and 99 of 100 are below.
using LengthQuantiles = std::array<double, 3>;

struct ClientWindow {
  std::uint32_t client = 0;  ///< in the order in which the file names them
  double start = 0, rate = 0, variation = 1;
  std::optional<std::array<LengthQuantiles, 2>> lengths{};
};

struct ClientWindows {
  std::vector<ClientWindow> rows;  ///< by start, then by client
  std::uint32_t clients = 0;
  double length = kOnlyWindow;
};

class ClientRows {
 public:
  explicit ClientRows(std::string file) : file_(std::move(file)) {}

  void take_heading(std::span<const std::string> cells) {
    const auto place = [&](std::string_view name) {
      const auto at = std::ranges::find(cells, name);
      if (at != cells.end()) return static_cast<std::size_t>(at - cells.begin());
      throw InputError({.file = file_,
                        .pointer = {},
                        .found = fmt::format("no column {}", in_quotes(std::string(name))),
                        .allowed = "it, as ServeGen's clients have it",
                        .nearest = {}});
    };
    for (std::size_t c = 0; c < kClientColumns.size(); ++c) columns_[c] = place(kClientColumns[c]);
    for (std::size_t c = 0; c < kLengthColumns.size(); ++c) lengths_[c] = place(kLengthColumns[c]);
  }

  void add(std::size_t row, std::span<const std::string> cells) {
    const auto [at, is_new] =
        clients_.try_emplace(cells[columns_[0]], static_cast<std::uint32_t>(clients_.size()));
    ClientWindow out{.client = at->second};
    out.start = number(row, kClientColumns[1], cells[columns_[1]], 0, kLatestWindow);
    out.rate = number(row, kClientColumns[2], cells[columns_[2]], 0, kMostRate);
    out.variation = number(row, kClientColumns[3], cells[columns_[3]], 0, kMostVariation);
    if (!cells[lengths_[0]].empty()) {
      out.lengths.emplace();
      for (std::size_t c = 0; c < kLengthColumns.size(); ++c) {
        const double tokens =
            number(row, kLengthColumns[c], cells[lengths_[c]], 1, double{kMaxTokens});
        (*out.lengths)[c / 3][c % 3] = portable_log(tokens);
      }
      for (const LengthQuantiles& q : *out.lengths) {
        if (!std::ranges::is_sorted(q)) fail(row, "quantiles that fall", "p50 <= p90 <= p99");
      }
    }
    windows_.rows.push_back(out);
  }

  ClientWindows take() {
    windows_.clients = static_cast<std::uint32_t>(clients_.size());
    std::ranges::stable_sort(windows_.rows, [](const ClientWindow& a, const ClientWindow& b) {
      return a.start != b.start ? a.start < b.start : a.client < b.client;
    });
    double least = 0;
    for (std::size_t i = 1; i < windows_.rows.size(); ++i) {
      const double step = windows_.rows[i].start - windows_.rows[i - 1].start;
      if (step > 0 && (least == 0 || step < least)) least = step;
    }
    if (least > 0) windows_.length = least;
    fill_lengths();
    return std::move(windows_);
  }

 private:
  [[noreturn]] void fail(std::size_t row, const std::string& found,
                         const std::string& allowed) const {
    throw InputError({.file = csv_place(file_, row),
                      .pointer = {},
                      .found = found,
                      .allowed = allowed,
                      .nearest = {}});
  }

  double number(std::size_t row, std::string_view column, const std::string& cell, double least,
                double most) const {
    double out = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), out);
    const bool whole = error == std::errc() && end == cell.data() + cell.size();
    if (whole && out >= least && out <= most) return out;
    fail(row, fmt::format("{} {}", column, in_quotes(cell)),
         fmt::format("a number from {:g} to {:g}", least, most));
  }

  void fill_lengths() {
    std::vector<std::optional<std::array<LengthQuantiles, 2>>> known(windows_.clients);
    for (const ClientWindow& w : windows_.rows) {
      if (!known[w.client]) known[w.client] = w.lengths;
    }
    for (ClientWindow& w : windows_.rows) {
      if (w.lengths) known[w.client] = w.lengths;
      w.lengths = known[w.client];
    }
    std::erase_if(windows_.rows, [](const ClientWindow& w) { return !w.lengths || w.rate <= 0; });
  }

  std::string file_;
  std::array<std::size_t, 4> columns_{};
  std::array<std::size_t, 6> lengths_{};
  std::map<std::string, std::uint32_t> clients_;
  ClientWindows windows_;
};

std::int32_t length_drawn(const LengthQuantiles& of, RandomStream& random) {
  constexpr double kNine = 1.2815515655446004, kLast = 2.3263478740408408;  // normal scores
  const double z = random.normal();
  const double slope = z <= kNine ? (of[1] - of[0]) / kNine : (of[2] - of[1]) / (kLast - kNine);
  const double log_length = z <= kNine ? of[0] + slope * z : of[1] + slope * (z - kNine);
  const double tokens = portable_exp(std::clamp(log_length, 0.0, portable_log(kMaxTokens)));
  return static_cast<std::int32_t>(std::clamp(std::round(tokens), 1.0, double{kMaxTokens}));
}

/// A client from window to window.
class DrawnClient {
 public:
  DrawnClient(std::uint64_t seed, std::uint32_t client)
      : arrivals_({.seed = seed, .component = client, .purpose = kClientArrivals}),
        lengths_({.seed = seed, .component = client, .purpose = kClientLengths}) {}

  void draw(const ClientWindow& w, double length, std::vector<ServedRequest>& out) {
    if (left_ < 0) left_ = arrivals_.uniform() * arrival_gap(w.variation, arrivals_);
    const double whole = w.rate * length;
    double at = left_;
    while (at < whole) {
      ServedRequest& r = out.emplace_back();
      r.arrival = to_run_time(Seconds{w.start + at / w.rate});
      r.input = length_drawn((*w.lengths)[0], lengths_);
      r.output = length_drawn((*w.lengths)[1], lengths_);
      at += arrival_gap(w.variation, arrivals_);
    }
    left_ = at - whole;
  }

 private:
  RandomStream arrivals_, lengths_;
  double left_ = -1;  ///< until its next request, in mean times between two
};

}  // namespace

bool has_client_rates(std::string_view text) {
  const std::string_view heading = text.substr(0, text.find('\n'));
  return heading.find("client") != std::string_view::npos &&
         heading.find("window_s") != std::string_view::npos &&
         heading.find("requests_per_s") != std::string_view::npos;
}

std::vector<ServedRequest> draw_client_requests(const std::string& file, std::string_view text,
                                                const ClientDraws& draws) {
  ClientRows rows(file);
  read_csv(
      file, text, [&](std::span<const std::string> cells) { rows.take_heading(cells); },
      [&](std::size_t row, std::span<const std::string> cells) { rows.add(row, cells); });
  const ClientWindows windows = rows.take();
  double expected = 0;
  for (const ClientWindow& w : windows.rows) expected += w.rate * windows.length;
  const auto most = static_cast<std::size_t>(draws.most);
  const auto refuse = [&](const std::string& found, const std::string& allowed) {
    throw InputError(
        {.file = file, .pointer = {}, .found = found, .allowed = allowed, .nearest = {}});
  };
  if (!draws.cut && expected > draws.most) {
    refuse(fmt::format("clients that send about {} requests", grouped(std::round(expected))),
           fmt::format("at most {}, or \"requests\", which says how many of the first",
                       grouped(draws.most)));
  }
  std::vector<DrawnClient> clients;
  for (std::uint32_t c = 0; c < windows.clients; ++c) clients.emplace_back(draws.seed, c);
  std::vector<ServedRequest> out;
  for (std::size_t i = 0; i < windows.rows.size() && out.size() < most;) {
    const std::size_t before = out.size();
    const double start = windows.rows[i].start;
    for (; i < windows.rows.size() && windows.rows[i].start == start; ++i) {
      const ClientWindow& w = windows.rows[i];
      clients[w.client].draw(w, windows.length, out);
    }
    std::stable_sort(
        out.begin() + static_cast<std::ptrdiff_t>(before), out.end(),
        [](const ServedRequest& a, const ServedRequest& b) { return a.arrival < b.arrival; });
  }
  if (out.size() > most) out.resize(most);
  if (out.empty()) refuse("clients that send nothing", "a rate and lengths in some window");
  const RunTime first = out.front().arrival;
  for (ServedRequest& r : out) r.arrival -= first;
  return out;
}

}  // namespace lockstep
