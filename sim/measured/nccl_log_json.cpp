// The JSON of nccl-tests' option -J: its keys are those of nccl-tests 2.17, src/util.cu.
#include "models/base/input_error.hpp"
#include "sim/measured/nccl_log.hpp"

namespace lockstep {
namespace {

constexpr std::size_t kMostListed = 1'000'000;
constexpr std::size_t kMostDevices = 30'000;
constexpr int kMostPerProcess = 256;  // threads, and GPUs of each
constexpr Interval kJsonSize{0, 1e15}, kJsonTime{0, 1e12}, kAnyNumber{-1e300, 1e300};

NcclRanks read_devices(const JsonCursor& root) {
  NcclRanks ranks;
  const JsonCursor config = root.at("config");
  const auto count = [&](const char* key) {
    const auto member = config.find(key);
    return member ? member->integer(1, kMostPerProcess) : 1;
  };
  const int per_process = count("nthreads") * count("ngpus");
  const auto devices = config.find("devices");
  if (!devices) return ranks;
  // Listed once for each process.
  for (const JsonCursor& device : devices->elements(kMostDevices)) {
    ranks.add(device.at("hostname").string(), per_process, device.at("device_info").string());
  }
  return ranks;
}

/// Out of place, else in place.
std::optional<JsonCursor> timing_of(const JsonCursor& result) {
  for (const char* key : {"out_of_place", "in_place"}) {
    const auto timing = result.find(key);
    if (timing && !timing->is_null()) return timing;
  }
  return std::nullopt;
}

double variation_of(const JsonCursor& result) {
  const auto repeats = result.find("out_of_place_per_iter");
  if (!repeats || !repeats->is_object()) return 0;
  const auto percent = repeats->find("cv_pct");
  return percent && percent->is_number() ? percent->number({0, 1e6}) / 100 : 0;
}

/// Adds the sample, or returns why it says nothing.
std::string read_result(const JsonCursor& result, std::vector<NcclSample>& samples) {
  const auto timing = timing_of(result);
  if (!timing) return "nothing was timed";
  if (!timing->find("time")) return "time of the CPU";
  const auto wrong = timing->find("nwrong");
  if (wrong && wrong->is_number() && wrong->number(kAnyNumber) > 0) return "wrong results";
  NcclSample sample;
  sample.size = Bytes{result.at("size").number(kJsonSize)};
  sample.time_us = timing->at("time").number(kJsonTime);
  sample.spread = variation_of(result);
  if (sample.size < Bytes{1} || *sample.time_us <= 0) return "nothing was sent";
  const auto rate = timing->find("alg_bw");
  if (rate && rate->is_number() &&
      !bandwidth_agrees(sample.size, *sample.time_us, rate->number(kAnyNumber))) {
    return "time and bandwidth disagree";
  }
  samples.push_back(sample);
  return {};
}

}  // namespace

NcclLog parse_nccl_json(const std::string& file, std::string_view text,
                        const NcclLogOptions& options) {
  const JsonCursor root = JsonCursor::parse(file, text);
  NcclLog log;
  NcclSeries series;
  series.system = file;
  std::string op;
  if (const auto args = root.find("args")) {
    for (const JsonCursor& arg : args->elements(kMostListed)) {
      if (op.empty()) op = op_of_program(arg.string());
    }
  }
  series.op = op_of_log(op, options, file);
  std::string why = read_devices(root).fill(options, series);
  for (const JsonCursor& result : root.at("results").elements(kMostListed)) {
    const std::string odd = why.empty() ? read_result(result, series.samples) : why;
    if (!odd.empty()) ++log.left_out[odd];
  }
  if (why.empty()) log.series.push_back(std::move(series));
  return log;
}

}  // namespace lockstep
