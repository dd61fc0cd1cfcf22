// Serving against measured rows.
#include "sim/measured/validate_serving.hpp"

#include <algorithm>
#include <doctest/doctest.h>
#include <fstream>
#include <string>

#include "tests/support/presets.hpp"
#include "tests/support/temporary_folder.hpp"

namespace lockstep {
namespace {

const std::string kRows = LOCKSTEP_SOURCE_DIR "/tests/reference/serving.json";

PointSummary group_of(const PointTable& table, const std::string& name) {
  const auto at = std::ranges::find(table.summary, name, &PointSummary::group);
  REQUIRE(at != table.summary.end());
  return *at;
}

PointTable table_of_rows(const std::string& rows) {
  const test::TemporaryFolder folder;
  const std::string path = folder.path() + "/rows.json";
  std::ofstream(path) << R"({"rows": [)" << rows << "]}";
  return validate_serving(path, test::presets());
}

}  // namespace

TEST_CASE("validate --serving: the sample of measured engines is predicted as well as it was") {
  const PointTable table = validate_serving(kRows, test::presets());
  const PointSummary one_pool = group_of(table, "tpot_ms, one pool");
  CHECK(one_pool.n >= 60);
  CHECK(one_pool.median_abs < 0.14);
  CHECK(group_of(table, "ttft_ms, one pool").median_abs < 0.40);
}

TEST_CASE("validate --serving: engines are started as benchmarks start them") {
  const auto ttft = [](const std::string& engine, int clients, const std::string& parallel) {
    const std::string row = R"({"id": "a", "source": {"key": "s"},
      "model": {"preset": "gpt_oss_120b"}, "precision": {"weights": "mxfp4"},
      "gpu": {"kind": "B200-SXM-180GB", "count": 4}, "mode": "aggregated",
      "load": {"kind": "closed_loop", "input_tokens": 1000, "output_tokens": 2000,
      "range_ratio": 0.8,)";
    return table_of_rows(row + R"("concurrency": )" + std::to_string(clients) +
                         R"(}, "measured": {"ttft_ms": 50}, "engine": {"name": ")" + engine +
                         R"("}, "parallel": {)" + parallel + "}}")
        .points.at(0)
        .predicted;
  };
  // SGLang looks for requests every 10 passes of up to 15 clients, else every 30.
  CHECK(ttft("sglang", 16, R"("tp": 4)") > 1.1 * ttft("sglang", 15, R"("tp": 4)"));
  // TensorRT-LLM's attention ranks wait for each other's prompts.
  const std::string ranks = R"("tp": 1, "attention_dp": 4, "moe_ep": 4)";
  CHECK(ttft("tensorrt_llm", 16, ranks) > 1.5 * ttft("vllm", 16, ranks));
}

TEST_CASE("validate --serving: prompts of a dense model wait where benchmarks let them wait") {
  const auto ttft = [](int output, int ranks) {
    const std::string row = R"({"id": "a", "source": {"key": "s"},
      "model": {"preset": "llama3_70b"}, "precision": {"gemm": "fp8"},
      "gpu": {"kind": "B200-SXM-180GB", "count": )";
    return table_of_rows(row + std::to_string(ranks) + R"(}, "mode": "aggregated",
      "engine": {"name": "tensorrt_llm"}, "measured": {"ttft_ms": 50},
      "load": {"kind": "closed_loop", "input_tokens": 1024, "range_ratio": 0.8,
      "concurrency": 4, "output_tokens": )" +
                         std::to_string(output) + R"(}, "parallel": {"tp": )" +
                         std::to_string(ranks) + "}}")
        .points.at(0)
        .predicted;
  };
  // Up to 20 steps of some 7 ms on four ranks; on eight none.
  CHECK(ttft(1024, 4) > ttft(512, 4) + 70);
  CHECK(ttft(1024, 8) < ttft(512, 8) + 35);
}

TEST_CASE("validate --serving: attention ranks that draft, draft one token") {
  const auto tpot = [](const std::string& release) {
    return table_of_rows(R"({"id": "a", "source": {"key": "s"},
      "model": {"preset": "deepseek_v3"}, "precision": {"weights": "nvfp4"},
      "gpu": {"kind": "B200-SXM-180GB", "count": 8}, "mode": "aggregated",
      "load": {"kind": "closed_loop", "input_tokens": 100, "output_tokens": 400,
      "concurrency": 64}, "measured": {"tpot_ms": 10},
      "parallel": {"tp": 1, "attention_dp": 8, "moe_ep": 8},
      "engine": {"name": "tensorrt_llm", "version": ")" +
                         release + "\"}}")
        .points.at(0)
        .predicted;
  };
  // The one is right 68 times in 100; what it takes itself eats up part of that.
  const double gain = tpot("1.2.0rc6.post2") / tpot("1.2.0rc6.post3");
  CHECK(gain > 1.2);
  CHECK(gain < 1.68);
}

TEST_CASE("validate --serving: sequences that pools' ranks had on average limit nobody") {
  const auto ttft = [](const std::string& batch) {
    const std::string pool = R"({"tp": 4, "attention_dp": 1, "moe_ep": 4, "workers": 1)" + batch;
    return table_of_rows(R"({"id": "a", "source": {"key": "s"},
      "model": {"preset": "gpt_oss_120b"}, "precision": {"weights": "mxfp4"},
      "gpu": {"kind": "B200-SXM-180GB", "count": 8}, "mode": "disaggregated",
      "load": {"kind": "closed_loop", "input_tokens": 1000, "output_tokens": 100,
      "concurrency": 32}, "measured": {"ttft_ms": 50}, "engine": {"name": "vllm"},
      "pools": {"prefill": )" +
                         pool + R"(}, "decode": )" + pool + "}}}")
        .points.at(0)
        .predicted;
  };
  CHECK(ttft(R"(, "batch": 1)") == ttft(""));
}

TEST_CASE("validate --serving: rows that nothing stands for are counted, with the reason") {
  const std::string row = R"({"id": "a", "source": {"key": "s"}, "model": {"preset": "llama3_70b"},
    "precision": {"gemm": "fp8"}, "gpu": {"kind": "H100-SXM-80GB", "count": 4},
    "engine": {"name": "vllm"}, "mode": "aggregated", "parallel": {"tp": 4},
    "load": {"kind": "closed_loop", "concurrency": 2, "input_tokens": 100, "output_tokens": 20},
    "measured": {"tpot_ms": 10, "ttft_ms": 50}})";
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string out = row;
    out.replace(out.find(from), from.size(), to);
    return out;
  };
  CHECK(table_of_rows(row).points.size() == 2);
  const PointTable table =
      table_of_rows(with("llama3_70b", "llama9") + "," + with("H100-SXM-80GB", "H900") + "," +
                    with("\"vllm\"", "\"none\"") + "," + with("closed_loop", "service") + "," +
                    with("\"tp\": 4", "\"tp\": 1"));
  CHECK(table.points.empty());
  CHECK(table.skipped == std::vector<std::string>{"1 rows: does not fit in memory",
                                                  "1 rows: load service", "1 rows: no card H900",
                                                  "1 rows: no engine none",
                                                  "1 rows: no model llama9"});
}

}  // namespace lockstep
