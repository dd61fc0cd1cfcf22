/// Where requests come from: a trace, or draws.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/random.hpp"
#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/serving_spec.hpp"

namespace lockstep {

/// Beginnings that prompts share, before what each asks for itself.
struct SharedPrefix {
  int count = 1;    ///< of them
  int tokens = 0;   ///< each
  double zipf = 0;  ///< how much oftener some come: the k-th as 1 / k^zipf
};
/// Requests that follow one another: each prompt begins with all that was said before.
struct Conversation {
  int turns = 1;
  Seconds think;  ///< of the user between them, on average (exponential)
};

struct WrittenLoad {
  std::string trace;      ///< a file
  double speed = 1;       ///< times are divided by it
  double rate = 0;        ///< requests a second
  double burstiness = 1;  ///< coefficient of variation of the times between them
  int clients = 0;
  Seconds think;
  int requests = 0;
  ServingLengths input, output;
  std::optional<SharedPrefix> prefix{};
  std::optional<Conversation> conversation{};
  std::vector<ServingPopulation> populations{};
  double start_hour = 0;  ///< of the day, when the first requests come
};

/// Numbers below `count`, the k-th as often as 1 / (k + 1) to the power `exponent`.
class ZipfDraw {
 public:
  ZipfDraw(int count, double exponent);
  std::size_t next(RandomStream& random) const;

 private:
  std::vector<double> sums_;  ///< of weights
};

/// Times between arrivals of mean 1: exponential, or a gamma law by its coefficient of variation
/// (Marsaglia and Tsang 2000, ACM Trans. Math. Softw. 26(3), 363-372).
double arrival_gap(double variation, RandomStream& random);
/// Declares the members of a "load".
void declare_serving_load(const DeclaredMembers& member, WrittenLoad& out);
/// Makes the requests. Throws InputError.
void make_requests(const JsonCursor& at, const WrittenLoad& load, ServingSpec& out);
/// Draws so many requests in place of those of `spec`, as if its file said that number. Requires
/// `spec.drawn`.
void redraw_requests(ServingSpec& spec, std::size_t count);
/// Whether they are drawn and come at a rate, whatever happens.
bool comes_at_a_rate(const ServingSpec& spec);

}  // namespace lockstep
