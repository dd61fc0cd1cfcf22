#include "tools/calibrate/rendezvous.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <fmt/format.h>
#include <fstream>
#include <optional>
#include <sys/random.h>
#include <unistd.h>

#include "models/base/output_file.hpp"
#include "tools/calibrate/card.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kCheckInTitle = "lockstep-calibrate check-in";
constexpr std::string_view kIdTitle = "lockstep-calibrate nccl id";
constexpr Seconds kPoll{0.05};
/// How long rank 0 leaves the news of a failure lying for the others to find.
constexpr Seconds kGrace{2};
constexpr std::size_t kMostNamed = 8;

/// The lines of a file; nothing where it cannot be read.
std::optional<std::vector<std::string>> lines_of_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) return std::nullopt;
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void write_lines(const std::string& path, const std::vector<std::string>& lines) {
  OutputFile file(path);
  for (const std::string& line : lines) file.write(line + "\n");
  file.commit();
}

/// Distinct for every process that ever was, as far as 64 random bits and a process id go.
std::string new_nonce() {
  std::uint64_t bits = 0;
  // Where the system has none, process ids have to do.
  (void)!::getrandom(&bits, sizeof(bits), 0);
  return fmt::format("{:016x}-{}", bits, ::getpid());
}

std::string hex_of(const std::string& bytes) {
  std::string out;
  for (const char c : bytes) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return out;
}
std::string bytes_of(const std::string& hex) {
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(16 * digit(hex[i]) + digit(hex[i + 1]));
  }
  return out;
}

}  // namespace

Rendezvous::Rendezvous(std::string file, int rank, int ranks, Seconds patience, Clock clock)
    : file_(std::move(file)),
      rank_(rank),
      ranks_(ranks),
      patience_(patience),
      clock_(std::move(clock)),
      nonces_(static_cast<std::size_t>(ranks)),
      waiting_(static_cast<std::size_t>(ranks)) {}

std::string Rendezvous::meet(const std::string& id, const std::string& obstacle) {
  return rank_ == 0 ? lead(id, obstacle) : follow(obstacle);
}

std::string Rendezvous::lead(const std::string& id, const std::string& obstacle) {
  std::string failure = obstacle.empty() ? "" : "rank 0: " + obstacle;
  clear();  // a rank whose check-in goes with what an earlier run left writes it again
  const double start = clock_.seconds();
  while (clock_.seconds() - start < patience_.base_units()) {
    const bool news = read_check_ins(failure);
    if (news && (all_came() || !failure.empty())) publish(id, failure);
    if (all_came() && all_went()) break;
    clock_.wait(kPoll);
  }
  if (!(all_came() && all_went())) {
    if (failure.empty()) failure = missing();
    publish(id, failure);
    clock_.wait(kGrace);
  }
  clear();
  if (!failure.empty()) throw CardUnavailable(failure);
  return id;
}

std::string Rendezvous::follow(const std::string& obstacle) {
  const std::string own = name_of_rank(rank_), nonce = new_nonce();
  const auto check_in = [&] { write_lines(own, {std::string(kCheckInTitle), nonce, obstacle}); };
  const double start = clock_.seconds();
  check_in();
  while (clock_.seconds() - start < patience_.base_units()) {
    if (::access(own.c_str(), F_OK) != 0) check_in();
    // Title, id, failure, then the nonces.
    const auto lines = lines_of_file(name_of_rank(0));
    if (lines && lines->size() > 3 && lines->front() == kIdTitle &&
        std::find(lines->begin() + 3, lines->end(), nonce) != lines->end()) {
      std::remove(own.c_str());
      if (!(*lines)[2].empty()) throw CardUnavailable((*lines)[2]);
      return bytes_of((*lines)[1]);
    }
    clock_.wait(kPoll);
  }
  std::remove(own.c_str());
  throw CardUnavailable(
      fmt::format("rank {} heard nothing of rank 0 in {} within {:.0f} s; does every rank see this "
                  "folder? Name another by --nccl-id-file",
                  rank_, name_of_rank(0), patience_.base_units()));
}

/// True where a rank has come, or another one in its place.
bool Rendezvous::read_check_ins(std::string& failure) {
  bool news = false;
  for (std::size_t i = 1; i < nonces_.size(); ++i) {
    const auto lines = lines_of_file(name_of_rank(static_cast<int>(i)));
    waiting_[i] = lines.has_value();
    if (!lines || lines->size() != 3 || lines->front() != kCheckInTitle) continue;
    if ((*lines)[1] == nonces_[i]) continue;
    nonces_[i] = (*lines)[1];
    news = true;
    if (failure.empty() && !(*lines)[2].empty()) {
      failure = fmt::format("rank {}: {}", i, (*lines)[2]);
    }
  }
  return news;
}

bool Rendezvous::all_came() const {
  return std::all_of(nonces_.begin() + 1, nonces_.end(),
                     [](const std::string& nonce) { return !nonce.empty(); });
}
bool Rendezvous::all_went() const { return std::ranges::find(waiting_, true) == waiting_.end(); }

void Rendezvous::publish(const std::string& id, const std::string& failure) const {
  std::vector<std::string> lines{std::string(kIdTitle), hex_of(id), failure};
  for (const std::string& nonce : nonces_) {
    if (!nonce.empty()) lines.push_back(nonce);
  }
  write_lines(name_of_rank(0), lines);
}

void Rendezvous::clear() const {
  for (int rank = 0; rank < ranks_; ++rank) std::remove(name_of_rank(rank).c_str());
}

std::string Rendezvous::name_of_rank(int rank) const { return fmt::format("{}.{}", file_, rank); }

std::string Rendezvous::missing() const {
  std::string late;
  std::size_t count = 0;
  for (std::size_t i = 1; i < nonces_.size(); ++i) {
    if (!nonces_[i].empty() && !waiting_[i]) continue;
    if (++count <= kMostNamed) late += fmt::format("{}{}", count == 1 ? "" : ", ", i);
  }
  if (count > kMostNamed) late += fmt::format(" and {} others", count - kMostNamed);
  return fmt::format(
      "of {} ranks, rank {} did not come within {:.0f} s; was each started, and does each see "
      "the folder of {}? Name another by --nccl-id-file",
      ranks_, late, patience_.base_units(), name_of_rank(0));
}

}  // namespace lockstep
