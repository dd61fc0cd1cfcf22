#include "tests/fake-driver/fake_card.hpp"

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <sstream>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "tests/fake-driver/times.hpp"

namespace lockstep::fake {
namespace {

/// Another thread reads it: the guard against calls that never come back.
std::atomic<double> clock_seconds = 1000;

void sleep_really(long nanoseconds) {
  const timespec time{0, nanoseconds};
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &time, nullptr);
}

std::string text_of(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

struct Fault {
  std::string call;
  int nth = 0;
  bool ever_after = false;
  int status = 0;  ///< 0: it hangs
};
std::vector<Fault> read_faults() {
  std::vector<Fault> out;
  std::istringstream list(text_of("LOCKSTEP_FAKE_FAULTS"));
  for (std::string entry; std::getline(list, entry, ',');) {
    std::istringstream words(entry);
    std::string nth, status;
    Fault fault;
    words >> fault.call >> nth >> status;
    fault.nth = std::stoi(nth);
    fault.ever_after = nth.back() == '+';
    fault.status = status == "hang" ? 0 : std::stoi(status);
    out.push_back(fault);
  }
  return out;
}

/// The program's guard has to end it.
[[noreturn]] void hang() {
  for (;;) {
    clock_seconds.store(clock_seconds.load() + 1);
    sleep_really(1'000'000);
  }
}

/// Two numbers of a variable; the second one may be missing.
struct TwoNumbers {
  double first = 0;
  std::optional<double> second;
};
TwoNumbers two_numbers(const char* name) {
  TwoNumbers out;
  std::istringstream text(text_of(name));
  text >> out.first;
  if (double second = 0; text >> second) out.second = second;
  return out;
}

void signal_if_due() {
  static const TwoNumbers asked = two_numbers("LOCKSTEP_FAKE_SIGNAL");
  static const double began = now();
  static bool sent = asked.first == 0;
  if (sent || now() < began + asked.second.value_or(0)) return;
  sent = true;
  std::raise(static_cast<int>(asked.first));
}

/// Between 0 and 1, the same in every run.
double random_share() {
  static std::uint64_t counter = 0;
  std::uint64_t x = ++counter * 0x9E3779B97F4A7C15ULL;
  x ^= x >> 29;
  x *= 0xBF58476D1CE4E5B9ULL;
  return static_cast<double>(x >> 11) / static_cast<double>(1ULL << 53);
}

struct Allocations {
  std::map<void*, std::pair<std::size_t, int>> blocks;  ///< bytes, card
  std::map<int, std::size_t> used;
  int card = 0;
};
Allocations& allocations() {
  static Allocations all;
  return all;
}

}  // namespace

int setting(const char* name, int otherwise) {
  const std::string text = text_of(name);
  return text.empty() ? otherwise : std::stoi(text);
}
bool is_blackwell() { return setting("LOCKSTEP_FAKE_BLACKWELL", 0) == 1; }
int cards() { return setting("LOCKSTEP_FAKE_CARDS", 1); }

int fault(const char* call) {
  static const std::vector<Fault> faults = read_faults();
  static std::map<std::string, int> calls;
  pass(kCallSeconds);
  if (faults.empty()) return 0;
  const int nth = ++calls[call];
  for (const Fault& f : faults) {
    if (f.call != call || !(f.nth == nth || (f.ever_after && nth > f.nth))) continue;
    if (f.status == 0) hang();
    return f.status;
  }
  return 0;
}

bool is_wrong(const std::string& kernel) {
  static const std::string wanted = text_of("LOCKSTEP_FAKE_WRONG");
  return !wanted.empty() && kernel.find(wanted) != std::string::npos;
}

double now() { return clock_seconds.load(); }
void pass(double seconds) {
  clock_seconds.store(now() + seconds);
  signal_if_due();
}
void wait_until(double instant) { pass(std::max(0.0, instant - now())); }

double done_at(const Stream& stream) { return std::max(now(), stream.free_at); }

void work(Stream& stream, double seconds) {
  static const TwoNumbers restless = two_numbers("LOCKSTEP_FAKE_RESTLESS");
  static const double began = now();
  if (stream.captures) {
    stream.captured += seconds;
    return;
  }
  if (!restless.second || now() < began + *restless.second) {
    seconds *= 1 + restless.first * random_share();
  }
  stream.free_at = done_at(stream) + seconds;
}

void* allocate(std::size_t bytes) {
  Allocations& all = allocations();
  if (used_memory() + bytes + kReserved > kCardMemory) return nullptr;
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  all.blocks[memory] = {bytes, all.card};
  all.used[all.card] += bytes;
  return memory;
}
void release(void* memory) {
  Allocations& all = allocations();
  const auto block = all.blocks.find(memory);
  if (block == all.blocks.end()) return;
  const auto [bytes, card] = block->second;
  munmap(memory, bytes);
  all.used[card] -= bytes;
  all.blocks.erase(block);
}
std::size_t used_memory() { return allocations().used[allocations().card]; }

void set_bytes(void* memory, int value, std::size_t bytes) {
  constexpr std::size_t kEnds = std::size_t{64} << 10;
  auto* const begin = static_cast<std::byte*>(memory);
  if (bytes <= 2 * kEnds) {
    std::memset(begin, value, bytes);
    return;
  }
  std::memset(begin, value, kEnds);
  std::memset(begin + bytes - kEnds, value, kEnds);
  if (value != 0) return;
  // Whole pages become zero by being given back.
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto first = (reinterpret_cast<std::uintptr_t>(begin) + page - 1) / page * page;
  const auto last = reinterpret_cast<std::uintptr_t>(begin + bytes) / page * page;
  madvise(reinterpret_cast<void*>(first), last - first, MADV_DONTNEED);
}

namespace {
bool has_pattern = false;
}
void note_pattern() { has_pattern = true; }
bool take_pattern() { return std::exchange(has_pattern, false); }

void choose_card(int card) { allocations().card = card; }
int chosen_card() { return allocations().card; }

}  // namespace lockstep::fake

// The program's clock and its sleeps: the names are the C library's, whose place these take.
extern "C" {

int clock_gettime(clockid_t clock, struct timespec* out) noexcept {
  if (clock != CLOCK_MONOTONIC) return static_cast<int>(syscall(SYS_clock_gettime, clock, out));
  const double seconds = lockstep::fake::now();
  out->tv_sec = static_cast<time_t>(seconds);
  out->tv_nsec = static_cast<long>((seconds - static_cast<double>(out->tv_sec)) * 1e9);
  return 0;
}

/// Threads that watch look once in a millisecond; what the main thread sleeps passes at once.
int nanosleep(const struct timespec* wanted, struct timespec*) {
  if (syscall(SYS_gettid) == getpid()) {
    lockstep::fake::pass(static_cast<double>(wanted->tv_sec) +
                         static_cast<double>(wanted->tv_nsec) * 1e-9);
  } else {
    lockstep::fake::sleep_really(1'000'000);
  }
  return 0;
}
}
