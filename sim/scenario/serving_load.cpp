#include "sim/scenario/serving_load.hpp"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <fmt/format.h>
#include <numbers>
#include <numeric>

#include "models/base/number_text.hpp"
#include "sim/core/random.hpp"
#include "sim/scenario/recorded_path.hpp"
#include "sim/scenario/serving_trace.hpp"
#include "sim/scenario/spec_readers.hpp"

namespace lockstep {
namespace {

constexpr int kMostRequests = 40'000'000;  // of 110 bytes each with their times: 4.4 GB
constexpr int kMostClients = 10'000'000;
constexpr int kDefaultRequests = 10'000;
constexpr int kRequestsOfClient = 10;
constexpr double kSecondsOfHour = 3600;
enum class LoadDraw : std::uint32_t { arrivals = 210, input, output, prefix, think, populations };

RandomStream stream_of(std::uint64_t seed, LoadDraw purpose) {
  return RandomStream({.seed = seed, .purpose = static_cast<std::uint32_t>(purpose)});
}

int drawn_length(const ServingLengths& of, RandomStream& random) {
  double length = of.mean;
  if (of.high > 0) {
    length = of.low + std::floor(random.uniform() * (of.high - of.low + 1));
  } else if (of.sigma > 0) {
    length = of.mean * portable_exp(of.sigma * random.normal() - of.sigma * of.sigma / 2);
  }
  const double most = of.most > 0 ? of.most : kMaxTokens;
  return static_cast<int>(std::clamp(std::round(length), 1.0, most));
}

/// Which of the shared beginnings, by their weights.
class PrefixDraw {
 public:
  PrefixDraw(const SharedPrefix& of, std::uint64_t seed, PrefixTree& tree)
      : random_(stream_of(seed, LoadDraw::prefix)), law_(of.count, of.zipf) {
    for (int k = 0; k < of.count; ++k) nodes_.push_back(tree.own(-1, of.tokens));
  }
  std::int32_t next() { return nodes_[law_.next(random_)]; }

 private:
  RandomStream random_;
  ZipfDraw law_;
  std::vector<std::int32_t> nodes_;
};

/// First turns come first, each `stride` before its next one.
void chain_turns(const Conversation& of, std::size_t stride, std::uint64_t seed, PrefixTree& tree,
                 std::vector<ServedRequest>& requests) {
  RandomStream think = stream_of(seed, LoadDraw::think);
  for (std::size_t i = 0; i + stride < requests.size(); ++i) {
    ServedRequest& r = requests[i];
    ServedRequest& after = requests[i + stride];
    const std::int64_t said = static_cast<std::int64_t>(r.input) + r.output;
    r.whole =
        tree.own(r.prefix, static_cast<std::int32_t>(std::min<std::int64_t>(said, kMaxTokens)));
    r.next = static_cast<std::int32_t>(i + stride);
    after.input = static_cast<std::int32_t>(std::min<std::int64_t>(said + after.input, kMaxTokens));
    after.prefix = r.whole;
    after.think = to_run_time(Seconds{think.exponential() * of.think.base_units()});
    after.arrival = 0;
  }
}

/// When users ask: at the load's gaps, in a time that runs as fast as their hours say. A rate that
/// changes by the hour is a constant one in the integral of it (Çinlar 1975, Introduction to
/// Stochastic Processes, section 4.7).
class PopulationArrivals {
 public:
  PopulationArrivals(const ServingPopulation& of, double rate, double start_hour, double burstiness,
                     StreamName stream)
      : random_(stream),
        rate_(rate * kSecondsOfHour),
        burstiness_(burstiness),
        start_(start_hour),
        at_(start_hour) {
    hours_.fill(1);
    const double sum = std::reduce(of.hours.begin(), of.hours.end());
    for (std::size_t h = 0; h < of.hours.size(); ++h) hours_[h] = kHoursOfDay * of.hours[h] / sum;
    step();
  }

  /// Of the next one, in seconds after the start.
  [[nodiscard]] double next() const { return kSecondsOfHour * (at_ - start_); }
  void step() {
    double gap = arrival_gap(burstiness_, random_) / rate_;  // in hours of the mean rate
    while (true) {
      const double hour = std::floor(at_);
      const double pace = hours_[static_cast<std::size_t>(hour) % kHoursOfDay];
      const double left = (hour + 1 - at_) * pace;
      if (gap < left) {
        at_ += gap / pace;
        return;
      }
      gap -= left;
      at_ = hour + 1;
    }
  }

 private:
  RandomStream random_;
  double rate_, burstiness_, start_, at_;
  std::array<double, kHoursOfDay> hours_{};
};

/// Arrivals of all populations, the earliest first, of equal ones that of the first population.
class PopulationsDraw {
 public:
  PopulationsDraw(const WrittenLoad& load, double rate, std::uint64_t seed) {
    double all = 0;
    for (const ServingPopulation& of : load.populations) all += of.share;
    for (const ServingPopulation& of : load.populations) {
      each_.emplace_back(of, rate * of.share / all, load.start_hour, load.burstiness,
                         StreamName{.seed = seed,
                                    .component = static_cast<std::uint32_t>(each_.size()),
                                    .purpose = static_cast<std::uint32_t>(LoadDraw::populations)});
    }
  }

  void next(ServedRequest& out) {
    const auto first = std::ranges::min_element(each_, {}, &PopulationArrivals::next);
    out.arrival = to_run_time(Seconds{first->next()});
    out.population = static_cast<std::int32_t>(first - each_.begin());
    first->step();
  }

 private:
  std::vector<PopulationArrivals> each_;
};

void draw_requests(const WrittenLoad& load, int count, ServingSpec& out) {
  RandomStream arrivals = stream_of(out.seed, LoadDraw::arrivals);
  RandomStream input = stream_of(out.seed, LoadDraw::input);
  RandomStream output = stream_of(out.seed, LoadDraw::output);
  PrefixTree tree;
  std::optional<PrefixDraw> prefix;
  if (load.prefix) prefix.emplace(*load.prefix, out.seed, tree);
  const int turns = load.conversation ? load.conversation->turns : 1;
  const auto first = static_cast<std::size_t>(std::max(1, count / turns));
  out.requests.resize(first * static_cast<std::size_t>(turns));
  std::optional<PopulationsDraw> populations;
  if (!load.populations.empty()) populations.emplace(load, load.rate / turns, out.seed);
  double at = 0;
  for (std::size_t i = 0; i < out.requests.size(); ++i) {
    ServedRequest& r = out.requests[i];
    if (populations && i < first) populations->next(r);
    if (i >= first) r.population = out.requests[i - first].population;
    const ServingPopulation* const of =
        populations ? &load.populations[static_cast<std::size_t>(r.population)] : nullptr;
    r.input = drawn_length(of != nullptr && of->input ? *of->input : load.input, input);
    r.output = drawn_length(of != nullptr && of->output ? *of->output : load.output, output);
    if (i >= first) continue;
    if (prefix) {
      r.prefix = prefix->next();
      r.input += load.prefix->tokens;
    }
    if (load.rate <= 0 || populations) continue;
    at += arrival_gap(load.burstiness, arrivals) / (load.rate / turns);
    r.arrival = to_run_time(Seconds{at});
  }
  if (load.conversation) {
    chain_turns(*load.conversation, first, out.seed, tree, out.requests);
    out.coming = first;
  }
  out.prefixes = tree.take();
}

void read_traced(const JsonCursor& at, const WrittenLoad& load, ServingSpec& out) {
  const JsonCursor trace = at.at("trace");
  for (const std::string_view key : {"rate", "burstiness", "input", "output", "prefix",
                                     "conversation", "populations", "start_hour"}) {
    if (const auto given = at.find(key)) given->fail("no such key beside \"trace\", which has it");
  }
  const std::optional<std::string> path = recorded_path(out.file, load.trace);
  if (!path) {
    trace.fail(
        "a file in the scenario's folder, or in the one that the environment variable "
        "LOCKSTEP_DATA names");
  }
  ClientDraws clients{.seed = out.seed, .most = kMostRequests};
  if (load.requests > 0) clients = {.seed = out.seed, .most = load.requests, .cut = true};
  out.requests = read_request_trace(*path, &out.prefixes, &clients);
  if (load.requests > 0 && static_cast<std::size_t>(load.requests) < out.requests.size()) {
    out.requests.resize(static_cast<std::size_t>(load.requests));
  }
  for (ServedRequest& r : out.requests) {
    r.arrival = to_run_time(to_seconds(r.arrival) / load.speed);
  }
  out.load = fmt::format("{} of the trace {}",
                         counted(static_cast<double>(out.requests.size()), "request"), load.trace);
  if (clients.drawn) out.load += ", drawn from its clients' rates";
  if (load.speed != 1) out.load += fmt::format(", {} times as fast", plain_number(load.speed));
}

/// E[min(X, most)] of the log-normal law: m Phi(z - s / 2) + most Phi(-z - s / 2), where
/// z = ln(most / m) / s.
double mean_when_cut(const ServingLengths& of) {
  const auto below = [](double z) { return std::erfc(-z / std::numbers::sqrt2) / 2; };
  const double z = std::log(of.most / of.mean) / of.sigma;
  return of.mean * below(z - of.sigma / 2) + of.most * below(-z - of.sigma / 2);
}

/// "1,155 tokens on average (log-normal, sigma 0.9)"
std::string lengths_text(const ServingLengths& of, std::string_view tokens) {
  if (of.high > 0) return fmt::format("{} to {}{}", grouped(of.low), grouped(of.high), tokens);
  if (of.sigma == 0) return grouped(of.mean) + std::string(tokens);
  const double mean = of.most > 0 ? std::round(mean_when_cut(of)) : of.mean;
  std::string out =
      fmt::format("{}{} on average (log-normal, sigma {:g}", grouped(mean), tokens, of.sigma);
  if (of.most > 0) {
    out += fmt::format(", cut at {}; without that {}", grouped(of.most), grouped(of.mean));
  }
  return out + ")";
}

void declare_prefix(const DeclaredMembers& member, SharedPrefix& out) {
  member.required("tokens", out.tokens, 1, kMaxTokens / 2,
                  "Of each, before a prompt's own; whole blocks of the cache are shared");
  member.optional("count", out.count, 1, 1'000'000, "How many there are; default: 1");
  member.optional("zipf", out.zipf, Interval{0, 4},
                  "The k-th comes as often as 1 / k to this power; default: 0, all alike");
}

void declare_conversation(const DeclaredMembers& member, Conversation& out) {
  member.required("turns", out.turns, 1, 10'000,
                  "Requests of each: every prompt begins with all that was said before");
  member.optional("think", out.think, Interval{0, 1e6},
                  "Of the user between an answer and the next request, on average (exponential); "
                  "default: 0");
}

std::string shared_text(const WrittenLoad& load) {
  std::string out;
  if (load.prefix) {
    out += fmt::format("; behind {} of {} tokens that they share",
                       counted(load.prefix->count, "beginning"), grouped(load.prefix->tokens));
  }
  if (load.conversation) {
    out += fmt::format("; conversations of {}", counted(load.conversation->turns, "turn"));
  }
  return out;
}

/// "; 50 % from Europe, 50 % from America"; with hours " over a whole day, 50 % from Europe, 50 %
/// from America, each by its own hours, from 6 o'clock on", since the hours that are simulated may
/// have more or less than the day.
std::string populations_text(const WrittenLoad& load) {
  const auto by_hour = [](const ServingPopulation& of) { return !of.hours.empty(); };
  const bool hours = std::ranges::any_of(load.populations, by_hour);
  double all = 0;
  for (const ServingPopulation& of : load.populations) all += of.share;
  std::string out = hours ? " over a whole day" : "";
  for (const ServingPopulation& of : load.populations) {
    out +=
        fmt::format("{}{:.3g} % from {}", out.empty() ? "; " : ", ", 100 * of.share / all, of.name);
  }
  return hours ? out + fmt::format(", each by its own hours, from {} o'clock on",
                                   plain_number(load.start_hour))
               : out;
}

void check_populations(const JsonCursor& at, const WrittenLoad& load) {
  const auto list = at.find("populations");
  if (const auto hour = at.find("start_hour"); hour && !list) {
    hour->fail("no such key without \"populations\"");
  }
  if (!list) return;
  if (load.rate == 0) list->fail("no such key without \"rate\"");
  std::size_t i = 0;
  for (const JsonCursor& one : list->elements(kMostPopulations)) {
    if (i == load.populations.size()) return;  // an example stands for the list
    const ServingPopulation& of = load.populations[i++];
    if (of.input) check_lengths(one.at("input"), *of.input);
    if (of.output) check_lengths(one.at("output"), *of.output);
  }
}

}  // namespace

ZipfDraw::ZipfDraw(int count, double exponent) {
  double sum = 0;
  for (int k = 1; k <= count; ++k) {
    sum += portable_exp(-exponent * portable_log(k));
    sums_.push_back(sum);
  }
}

std::size_t ZipfDraw::next(RandomStream& random) const {
  const auto found = std::ranges::upper_bound(sums_, random.uniform() * sums_.back());
  return static_cast<std::size_t>(
      std::min(found - sums_.begin(), static_cast<std::ptrdiff_t>(sums_.size()) - 1));
}

double arrival_gap(double variation, RandomStream& random) {
  if (variation == 1) return random.exponential();
  if (variation == 0) return 1;
  const double shape = 1 / (variation * variation);
  const double raised = shape < 1 ? shape + 1 : shape;
  const double d = raised - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  double v = 0;
  while (true) {
    const double x = random.normal();
    v = 1 + c * x;
    if (v <= 0) continue;
    v = v * v * v;
    const double u = 1 - random.uniform();
    if (portable_log(u) < x * x / 2 + d - d * v + d * portable_log(v)) break;
  }
  double value = d * v;
  // Of very uneven times nearly all are nothing.
  constexpr double kLeastLog = -700;
  if (shape < 1) {
    value *= portable_exp(std::max(kLeastLog, portable_log(1 - random.uniform()) / shape));
  }
  return value / shape;
}

void declare_serving_load(const DeclaredMembers& member, WrittenLoad& out) {
  const auto lengths = [](const DeclaredMembers& of, ServingLengths& to) {
    declare_lengths(of, to);
  };
  member.optional(
      "trace", out.trace,
      "A file with arrivals and lengths: CSV (arrival_s, input_tokens, output_tokens, "
      "or the columns of Azure or BurstGPT), JSON lines as Mooncake has them, or CSV of "
      "clients' rates as ServeGen has them (client, window_s, requests_per_s, "
      "interarrival_cv, input_p50, _p90, _p99, the same of output), from which "
      "requests are drawn; may be compressed. From the scenario's folder, else from "
      "the one that LOCKSTEP_DATA names");
  member.optional("speed", out.speed, Interval{0, 1e6, true},
                  "Times of a trace are divided by it; default: 1");
  member.optional("rate", out.rate, Interval{0, 1e9, true},
                  "Requests a second that arrive whatever happens");
  member.optional("burstiness", out.burstiness, Interval{0, 30},
                  "Coefficient of variation of the times between them; default: 1, Poisson");
  member.optional("clients", out.clients, 1, kMostClients,
                  "Each sends its next request when its last one has ended; all begin at once");
  member.optional("think", out.think, Interval{0, 1e6}, "Of a client between requests; default: 0");
  member.optional("requests", out.requests, 1, kMostRequests,
                  "How many; default: 10,000, of clients 10 each, of a trace all");
  member.optional("input", out.input, "Tokens of a prompt", lengths);
  member.optional("output", out.output, "Tokens of an answer", lengths);
  member.optional("prefix", out.prefix, "Beginnings that prompts share, as instructions",
                  declare_prefix);
  member.optional("conversation", out.conversation,
                  "Requests follow one another; \"rate\" counts them all", declare_conversation);
  member.optional("populations", kMostPopulations, "Users who ask alike",
                  "Users of several places or kinds, who share \"rate\", the mean over a day; "
                  "default: all are alike",
                  out.populations, declare_population, [&](const JsonCursor& list) {
                    out.populations.clear();
                    for (const JsonCursor& one : list.elements(kMostPopulations)) {
                      declare_population({one, Extent::whole}, out.populations.emplace_back());
                      one.finish();
                    }
                    if (out.populations.empty()) list.fail("at least one population");
                  });
  member.optional("start_hour", out.start_hour, Interval{0, 23.999},
                  "Of the day, when the first requests come, by one clock for all; default: 0");
}

void make_requests(const JsonCursor& at, const WrittenLoad& load, ServingSpec& out) {
  if (load.clients > 0 && load.rate > 0) at.at("rate").fail(R"(either "rate" or "clients")");
  if (load.clients == 0 && load.think > Seconds{}) {
    at.at("think").fail("no such key without \"clients\"");
  }
  if (load.rate == 0 && load.burstiness != 1) {
    at.at("burstiness").fail("no such key without \"rate\"");
  }
  if (load.trace.empty() && load.speed != 1) at.at("speed").fail("no such key without \"trace\"");
  if (load.conversation && load.rate == 0) {
    at.at("conversation").fail("no such key without \"rate\"");
  }
  out.clients = load.clients;
  out.think = to_run_time(load.think);
  check_populations(at, load);
  out.populations = load.populations;
  if (!load.trace.empty()) {
    read_traced(at, load, out);
  } else {
    check_lengths(at.at("input"), load.input);
    check_lengths(at.at("output"), load.output);
    const int usual = load.clients > 0 ? kRequestsOfClient * load.clients : kDefaultRequests;
    const int count = load.requests > 0 ? load.requests : usual;
    if (count > kMostRequests) {
      constexpr int most = kMostRequests / kRequestsOfClient;
      at.at("clients").fail(fmt::format("at most {} clients of {} requests each, or \"requests\"",
                                        grouped(most), kRequestsOfClient));
    }
    draw_requests(load, count, out);
    out.drawn = std::make_shared<const WrittenLoad>(load);
    out.load = fmt::format("{}, prompts of {}, answers of {}",
                           counted(static_cast<double>(out.requests.size()), "request"),
                           lengths_text(load.input, " tokens"), lengths_text(load.output, ""));
    if (load.rate > 0) out.load += fmt::format("; {} a second", plain_number(load.rate));
    if (load.rate > 0 && load.burstiness != 1) {
      out.load += fmt::format(", variation {:g}", load.burstiness);
    }
    if (load.rate == 0 && load.clients == 0) out.load += "; all at once";
    out.load += populations_text(load) + shared_text(load);
  }
  if (load.clients > 0) out.load += fmt::format("; {}", counted(load.clients, "client"));
  draw_adapters(out);
  if (!out.adapters) return;
  out.load += fmt::format("; with {} of rank {}", counted(out.adapters->count, "adapter"),
                          out.adapters->shape.rank);
}

void redraw_requests(ServingSpec& spec, std::size_t count) {
  assert(spec.drawn != nullptr && count >= 1 && count <= kMostRequests);
  spec.requests.clear();
  draw_requests(*spec.drawn, static_cast<int>(count), spec);
  draw_adapters(spec);
}

bool comes_at_a_rate(const ServingSpec& spec) { return spec.drawn && spec.drawn->rate > 0; }

}  // namespace lockstep
