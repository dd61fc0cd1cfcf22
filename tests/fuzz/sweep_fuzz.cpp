// Fuzz target: whatever bytes a sweep's file has, reading it gives a sweep whose first points can
// be made, each the same again, or an InputError of whole lines. Bytes behind the first 0 are a
// results database that is there already: it is this sweep's, or refused.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <unistd.h>

#include "models/base/write_json.hpp"
#include "sim/search/sweep/points.hpp"
#include "sim/search/sweep/results_db.hpp"
#include "sim/search/sweep/sweep.hpp"
#include "tests/fuzz/documents.hpp"

namespace {

using namespace lockstep;

/// A folder of this process, with the scenario that seeds name.
const std::filesystem::path& folder() {
  static const std::filesystem::path kFolder = [] {
    const std::filesystem::path made =
        std::filesystem::temp_directory_path() / ("sweep_fuzz." + std::to_string(getpid()));
    std::filesystem::create_directories(made);
    std::ofstream(made / "job.json")
        << R"({"model": "llama3_8b", "cluster": {"node": "dgx_h100", "nodes": 1},
            "parallelism": {"tensor": 2}, "batch": {"sequences": 16, "tokens": 2048}})";
    return made;
  }();
  return kFolder;
}

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream(path, std::ios::binary)
      .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

void make_points(const Sweep& sweep) {
  constexpr std::uint64_t kFirst = 16;
  PointMaker maker(sweep), again(sweep);
  const std::uint64_t points = std::min(kFirst, sweep.candidates());
  for (std::uint32_t number = 0; number < points; ++number) {
    read_or_lines([&] {
      if (!maker.counts(number)) return;
      const SweepPoint point = maker.make(number);
      if (point.values.size() != sweep.columns().size()) std::abort();
      if (write_json(again.make(number).scenario) != write_json(point.scenario)) std::abort();
    });
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  write(folder() / "sweep.json", next_part(bytes));
  const std::filesystem::path results = folder() / "results.db";
  for (const char* beside : {"", "-wal", "-shm", "-journal"}) {
    std::filesystem::remove(results.string() + beside);
  }
  if (!bytes.empty()) write(results, bytes);
  read_or_lines([&] {
    const Sweep sweep = load_sweep((folder() / "sweep.json").string());
    make_points(sweep);
    if (bytes.empty()) return;
    ResultsDb database(results.string(), sweep, manifest_of(sweep, "fuzz"),
                       ResultsDb::Journal::rollback);
    (void)database.finished();
    (void)database.find("0");
  });
  return 0;
}
