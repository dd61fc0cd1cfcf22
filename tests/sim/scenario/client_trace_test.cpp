// Requests drawn from clients' rates: as many as their rates say, as uneven and as long.
#include "sim/scenario/client_trace.hpp"

#include <algorithm>
#include <cmath>
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "models/base/input_error.hpp"
#include "sim/scenario/serving_trace.hpp"
#include "tests/support/near.hpp"
#include "tests/support/real_files.hpp"

namespace lockstep {
namespace {

const std::string kHeading =
    "client,window_s,requests_per_s,interarrival_cv,input_p50,input_p90,input_p99,"
    "output_p50,output_p90,output_p99\n";

std::vector<ServedRequest> drawn_of(const std::string& rows, ClientDraws draws = {}) {
  return draw_client_requests("c.csv", kHeading + rows, draws);
}

std::string client_message(const std::string& text, ClientDraws draws = {}) {
  try {
    (void)draw_client_requests("c.csv", text, draws);
  } catch (const InputError& error) {
    return error.what();
  }
  return "nothing";
}

double window_count(const std::vector<ServedRequest>& of, double from, double until) {
  return static_cast<double>(std::ranges::count_if(of, [&](const ServedRequest& r) {
    return r.arrival >= to_run_time(Seconds{from}) && r.arrival < to_run_time(Seconds{until});
  }));
}

}  // namespace

TEST_CASE("client rates: each window gets its rate, each client its lengths") {
  // Two clients over two windows of 1,000 s; the second is steady and silent at first.
  const std::vector<ServedRequest> all = drawn_of(
      "a,0,10,1,100,400,1600,20,20,20\na,1000,30,1,100,400,1600,20,20,20\n"
      "b,1000,5,0,7,7,7,900,900,900\n");
  CHECK(std::ranges::is_sorted(all, {}, &ServedRequest::arrival));
  CHECK(all[0].arrival == 0);
  CHECK(std::abs(window_count(all, 0, 1000) - 10'000) < 4 * std::sqrt(10'000.0));
  CHECK(std::abs(window_count(all, 1000, 2000) - 35'000) < 4 * std::sqrt(30'000.0) + 2);
  CHECK(std::ranges::count(all, 900, &ServedRequest::output) == test::near(5000).epsilon(1e-3));
  const auto share_up_to = [&](int tokens) {
    double below = 0, count = 0;
    for (const ServedRequest& r : all) {
      if (r.output != 20) continue;
      ++count;
      below += r.input <= tokens ? 1 : 0;
    }
    return below / count;
  };
  CHECK(share_up_to(100) == test::near(0.5).epsilon(0.02));
  CHECK(share_up_to(400) == test::near(0.9).epsilon(0.01));
  CHECK(share_up_to(1600) == test::near(0.99).epsilon(0.002));
}

TEST_CASE("client rates: bursts do not change how many come") {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    sum += static_cast<double>(
        drawn_of("a,0,2,3,9,9,9,9,9,9\n", {.seed = seed}).size());  // one window: 600 s
  }
  CHECK(sum / 200 == test::near(1200).epsilon(0.03));
}

TEST_CASE("client rates: the first requests are the same however many are drawn") {
  const std::string rows = "a,0,10,2,9,20,30,9,9,9\nb,0,1,1,5,6,7,1,2,3\na,60,1,1,9,9,9,9,9,9\n";
  const std::vector<ServedRequest> all = drawn_of(rows, {.seed = 7});
  const std::vector<ServedRequest> some = drawn_of(rows, {.seed = 7, .most = 50, .cut = true});
  REQUIRE(some.size() == 50);
  for (std::size_t i = 0; i < some.size(); ++i) {
    CHECK(some[i].arrival == all[i].arrival);
    CHECK(some[i].input == all[i].input);
  }
}

TEST_CASE("client rates: a window without lengths has those of another of its client") {
  const std::vector<ServedRequest> all =
      drawn_of("a,0,1,1,,,,,,\na,600,1,1,5,5,5,2,2,2\na,1200,1,1,,,,,,\nnobody,0,9,1,,,,,,\n");
  CHECK(all.size() == test::near(1800).epsilon(0.1));
  CHECK(std::ranges::all_of(all, [](const ServedRequest& r) { return r.input == 5; }));
}

TEST_CASE("client rates: what cannot be drawn says so") {
  CHECK(client_message("client,window_s,requests_per_s\n") ==
        "c.csv: found no column \"interarrival_cv\"; allowed: it, as ServeGen's clients have it");
  CHECK(client_message(kHeading + "a,0,-1,1,9,9,9,9,9,9\n") ==
        "c.csv, row 1: found requests_per_s \"-1\"; allowed: a number from 0 to 1e+09");
  CHECK(client_message(kHeading + "a,0,1,1,9,8,9,9,9,9\n") ==
        "c.csv, row 1: found quantiles that fall; allowed: p50 <= p90 <= p99");
  CHECK(client_message(kHeading + "a,0,0,1,9,9,9,9,9,9\n") ==
        "c.csv: found clients that send nothing; allowed: a rate and lengths in some window");
  CHECK(client_message(kHeading + "a,0,100000,1,9,9,9,9,9,9\n") ==
        "c.csv: found clients that send about 60,000,000 requests; allowed: at most 40,000,000, or "
        "\"requests\", which says how many of the first");
}

TEST_CASE("client rates: ServeGen's clients of a day" *
          doctest::skip(!test::has_real_file("published/serving-traces/"
                                             "servegen-deepseek-r1.csv.gz"))) {
  ClientDraws draws;
  const std::vector<ServedRequest> all = read_request_trace(
      test::real_file("published/serving-traces/servegen-deepseek-r1.csv.gz"), nullptr, &draws);
  CHECK(draws.drawn);
  CHECK(static_cast<double>(all.size()) == test::near(1'383'669).epsilon(0.01));
}

}  // namespace lockstep
