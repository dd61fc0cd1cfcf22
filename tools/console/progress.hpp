/// How far a long command is: a line that is redrawn in place on a terminal, and a line now and
/// then where the output goes to a file.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

namespace lockstep {

/// Counts finished pieces of work from any thread; shows nothing in the first half second, and
/// nothing by itself when not `shown`: a Heartbeat tells it then.
class Progress {
 public:
  Progress(std::ostream& out, std::string what, std::size_t total, bool shown);
  /// Clears the line.
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void one_done();
  /// So many are done, those under way counted by their shares. From one thread at a time.
  void reached(double done);
  /// So many are done, of as many as it now seems. From one thread.
  void update(std::size_t done, std::size_t total);
  /// A line that stays, above that of the progress; shown even where the progress is not.
  void say(std::string_view line);
  /// What the line says; empty before the first piece is done.
  [[nodiscard]] std::string text() const;

 private:
  using Clock = std::chrono::steady_clock;
  void show(double done);
  void draw(double done, Clock::time_point now);

  std::ostream& out_;
  std::string what_;
  std::atomic<std::size_t> total_;
  bool shown_;
  std::atomic<std::size_t> done_{0};
  std::mutex drawing_;
  Clock::time_point start_;
  Clock::time_point drawn_;
  bool visible_ = false;
};

/// While it lives, a Progress that is made says before its count what it is within:
/// "point 3 of 8: layouts 120 of 814".
class ProgressWithin {
 public:
  explicit ProgressWithin(std::string_view whole);
  ~ProgressWithin();
  ProgressWithin(const ProgressWithin&) = delete;
  ProgressWithin& operator=(const ProgressWithin&) = delete;

 private:
  std::string before_;
};

/// A line of progress for simulations that follow each other, each with a count of its own.
class ProgressInTurn {
 public:
  ProgressInTurn(std::ostream& out, std::string what, bool shown)
      : out_(out), what_(std::move(what)), shown_(shown) {}

  /// So many are done, of as many as it now seems; 0 begins the next simulation. From one thread.
  void update(std::size_t done, std::size_t total);

 private:
  std::ostream& out_;
  std::string what_;
  bool shown_;
  std::optional<Progress> line_;
};

/// How a Heartbeat shows.
enum class Beats : std::uint8_t {
  none,
  redrawn,  ///< every second, from the tenth on, while no Progress has a line to show
  lines,    ///< each a line of its own, with what a Progress counts: after 30 s, then more seldom
};

/// Says for how long a command has been running.
class Heartbeat {
 public:
  /// `first`: until the first of the lines; each of the others takes twice as long, up to 10 min.
  Heartbeat(std::ostream& out, std::string what, Beats beats,
            std::chrono::milliseconds first = std::chrono::seconds{30});
  /// Clears the line that is redrawn.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  void redraw(const std::stop_token& stop);
  void print_lines(const std::stop_token& stop, std::chrono::milliseconds pause);

  std::ostream& out_;
  std::string what_;
  std::mutex waiting_;
  std::condition_variable_any ended_;
  std::jthread thread_;  ///< last: it uses the others
};

/// "rows 120 of 814, 15 %, 00:04 left": what the line says. Requires `done` above 0.
std::string progress_text(const std::string& what, double done, std::size_t total,
                          double elapsed_s);

}  // namespace lockstep
