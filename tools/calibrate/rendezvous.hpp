/// How processes on several machines learn the id of their NCCL communicator: through files in a
/// folder that all of them see. They also learn here that one of them cannot take part, before any
/// waits in NCCL for it.
///
/// Each rank but the first checks in: it writes FILE.RANK with a nonce of its own. When all have,
/// rank 0 writes FILE.0 with the id and all nonces, and again whenever a nonce changes. A rank
/// takes an id only from a file that has its nonce, and then removes its check-in; rank 0 goes on
/// when none is left. So what an earlier run left behind is never taken for this one's.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/base/units.hpp"

namespace lockstep {

class Rendezvous {
 public:
  /// How time passes: a clock in seconds, and what waits for a moment.
  struct Clock {
    std::function<double()> seconds;
    std::function<void(Seconds)> wait;
  };
  /// `file`: what the names of the files begin with. `patience`: how long to wait for the others.
  Rendezvous(std::string file, int rank, int ranks, Seconds patience, Clock clock);

  /// Every rank calls it once, rank 0 with the id; all get the id. `obstacle`: why this rank cannot
  /// take part (a line), empty where it can. Throws CardUnavailable on every rank where one has an
  /// obstacle, and on a rank that has lost its patience; InputError where a file cannot be written.
  /// Leaves no file behind, but for a rank that was killed.
  std::string meet(const std::string& id, const std::string& obstacle);

 private:
  std::string lead(const std::string& id, const std::string& obstacle);
  std::string follow(const std::string& obstacle);
  bool read_check_ins(std::string& failure);
  [[nodiscard]] bool all_came() const;
  [[nodiscard]] bool all_went() const;
  void publish(const std::string& id, const std::string& failure) const;
  void clear() const;
  [[nodiscard]] std::string name_of_rank(int rank) const;
  [[nodiscard]] std::string missing() const;

  std::string file_;
  int rank_, ranks_;
  Seconds patience_;
  Clock clock_;
  std::vector<std::string> nonces_;  ///< rank 0: of the others, as last read; empty: never came
  std::vector<bool> waiting_;        ///< rank 0: whose check-in is there
};

}  // namespace lockstep
