#include "tools/console/progress.hpp"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <ostream>
#include <vector>

namespace lockstep {
namespace {

constexpr std::chrono::milliseconds kPatience{500};  ///< nothing is shown for shorter work
constexpr std::chrono::milliseconds kRefresh{100};
constexpr std::chrono::seconds kFirstBeat{10}, kBeat{1};
constexpr std::chrono::minutes kLongestBeat{10};  ///< between two lines of a file

/// The last line of the terminal, which all lines of progress share.
struct TerminalLine {
  std::mutex drawing;
  int counted = 0;                      ///< lines of a Progress that are on it
  std::vector<const Progress*> untold;  ///< that do not show themselves
  std::string within;                   ///< of a ProgressWithin: "point 3 of 8: "
};
TerminalLine& terminal_line() {
  static TerminalLine line;
  return line;
}

/// "lockstep run: running for 01:30".
std::string running_text(const std::string& what, std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  const auto seconds = static_cast<long>(elapsed.count());
  return fmt::format("{}: running for {:02}:{:02}", what, seconds / 60, seconds % 60);
}

}  // namespace

Progress::Progress(std::ostream& out, std::string what, std::size_t total, bool shown)
    : out_(out),
      what_(std::move(what)),
      total_(total),
      shown_(shown),
      start_(Clock::now()),
      drawn_(start_) {
  const std::scoped_lock line(terminal_line().drawing);
  what_.insert(0, terminal_line().within);
  if (!shown_) terminal_line().untold.push_back(this);
}

Progress::~Progress() {
  if (shown_ && !visible_) return;
  const std::scoped_lock line(terminal_line().drawing);
  if (!shown_) {
    std::erase(terminal_line().untold, this);
    return;
  }
  --terminal_line().counted;
  out_ << "\r\033[2K" << std::flush;
}

void Progress::one_done() { show(static_cast<double>(++done_)); }

void Progress::reached(double done) {
  done_ = static_cast<std::size_t>(done);
  if (done > 0) show(done);
}

void Progress::update(std::size_t done, std::size_t total) {
  done_ = done;
  total_ = total;
  if (done > 0) show(static_cast<double>(done));
}

void Progress::say(std::string_view line) {
  const std::scoped_lock alone(terminal_line().drawing);
  if (shown_) out_ << "\r\033[2K";
  out_ << line << "\n" << std::flush;
}

std::string Progress::text() const {
  const auto done = static_cast<double>(done_.load());
  if (!(done > 0)) return {};
  const double elapsed = std::chrono::duration<double>(Clock::now() - start_).count();
  return progress_text(what_, done, total_, elapsed);
}

void Progress::show(double done) {
  if (!shown_) return;
  const std::unique_lock lock(drawing_, std::try_to_lock);
  const Clock::time_point now = Clock::now();
  if (lock && now - start_ >= kPatience && now - drawn_ >= kRefresh) draw(done, now);
}

void Progress::draw(double done, Clock::time_point now) {
  const double elapsed = std::chrono::duration<double>(now - start_).count();
  const std::scoped_lock line(terminal_line().drawing);
  if (!visible_) ++terminal_line().counted;
  out_ << "\r\033[2K" << progress_text(what_, done, total_, elapsed) << std::flush;
  drawn_ = now;
  visible_ = true;
}

ProgressWithin::ProgressWithin(std::string_view whole) {
  const std::scoped_lock line(terminal_line().drawing);
  before_ = terminal_line().within;
  terminal_line().within = fmt::format("{}{}: ", before_, whole);
}

ProgressWithin::~ProgressWithin() {
  const std::scoped_lock line(terminal_line().drawing);
  terminal_line().within = before_;
}

void ProgressInTurn::update(std::size_t done, std::size_t total) {
  if (done == 0 || !line_) line_.emplace(out_, what_, total, shown_);
  line_->update(done, total);
}

Heartbeat::Heartbeat(std::ostream& out, std::string what, Beats beats,
                     std::chrono::milliseconds first)
    : out_(out), what_(std::move(what)) {
  if (beats == Beats::none) return;
  thread_ = std::jthread([this, beats, first](const std::stop_token& stop) {
    beats == Beats::redrawn ? redraw(stop) : print_lines(stop, first);
  });
}

Heartbeat::~Heartbeat() = default;

void Heartbeat::redraw(const std::stop_token& stop) {
  const auto start = std::chrono::steady_clock::now();
  bool visible = false;
  std::chrono::seconds pause = kFirstBeat;
  std::unique_lock lock(waiting_);
  while (!ended_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    pause = kBeat;
    const std::scoped_lock line(terminal_line().drawing);
    if (terminal_line().counted > 0) {
      visible = false;  // drawn over
      continue;
    }
    out_ << "\r\033[2K" << running_text(what_, start) << std::flush;
    visible = true;
  }
  if (visible) out_ << "\r\033[2K" << std::flush;
}

void Heartbeat::print_lines(const std::stop_token& stop, std::chrono::milliseconds pause) {
  const auto start = std::chrono::steady_clock::now();
  std::unique_lock lock(waiting_);
  while (!ended_.wait_for(lock, stop, pause, [&] { return stop.stop_requested(); })) {
    pause = std::min<std::chrono::milliseconds>(2 * pause, kLongestBeat);
    const std::scoped_lock line(terminal_line().drawing);
    const std::vector<const Progress*>& untold = terminal_line().untold;
    const std::string far = untold.empty() ? std::string() : untold.back()->text();
    out_ << running_text(what_, start) << (far.empty() ? "" : "; ") << far << "\n" << std::flush;
  }
}

std::string progress_text(const std::string& what, double done, std::size_t total,
                          double elapsed_s) {
  const double share = done / static_cast<double>(total);
  const auto left = static_cast<long>(std::ceil(elapsed_s / share - elapsed_s));
  return fmt::format("{} {} of {}, {:.0f} %, {:02}:{:02} left", what,
                     static_cast<std::size_t>(done), total, 100 * share, left / 60, left % 60);
}

}  // namespace lockstep
