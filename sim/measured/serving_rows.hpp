/// Measured rows of serving, as `lockstep validate --serving FILE` reads them: what ran where under
/// which load, and what came out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/generation/serving_engine.hpp"
#include "models/spec/hardware.hpp"
#include "models/spec/transformer.hpp"
#include "sim/scenario/preset_store.hpp"

namespace lockstep {

enum class ServingLoad : std::uint8_t { closed_loop, one_batch, offline, poisson, trace };

/// A figure of a row: its name and how it compares.
struct ServingMeasure {
  std::string name;  ///< "tpot_ms", "ttft_ms", "output_tokens_per_s", "e2e_ms"
  double value = 0;
  bool p99 = false;
  bool mean = false;  ///< else the median
};

struct ServingPoolRow {
  int tensor = 1, pipeline = 1, attention_data = 1, expert = 1;
  int workers = 1;
};

struct ServingRow {
  std::string id, source, engine, gpu, model_name;
  std::string release;  ///< of the engine, as the row calls it
  std::string skipped;  ///< why nothing predicts it; empty: it is predicted
  TransformerShape model;
  NodeSpec node;
  ServingEngine rules;
  WeightFormat weights = WeightFormat::bf16, experts = WeightFormat::bf16;
  double cache_bytes = 2;
  Speculation speculation;
  ServingPoolRow serving;  ///< or the prompts' pool, where there is `decoding`
  std::optional<ServingPoolRow> decoding;
  ServingLoad load = ServingLoad::closed_loop;
  int gpus = 1;
  int concurrency = 0;
  int requests = 0;  ///< 0: not said
  int input = 0, output = 0;
  double shortest = 1;  ///< lengths are drawn from this share of the printed ones up to all
  double longest = 1;
  double rate = 0;          ///< requests a second
  std::string trace;        ///< its name; of a load that replays one, where it lies
  double cache_tokens = 0;  ///< of a replica, as its engine said; 0: it did not
  std::vector<ServingMeasure> measured;
};

/// Reads all rows of a file. Rows that no preset stands for say so. Throws InputError.
std::vector<ServingRow> read_serving_rows(const std::string& file, const PresetStore& presets);

}  // namespace lockstep
