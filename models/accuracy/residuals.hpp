/// What predictions of published training runs missed by: the evidence for the interval around
/// every other prediction (prediction_interval.hpp).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/spec/learnt_level.hpp"

namespace lockstep {

/// What decides how far a prediction can be trusted: the software, the machine, the kind of job.
struct PredictionTraits {
  std::string stack;               ///< name of the preset, "megatron_core"
  std::string release;             ///< empty: not stated
  bool release_stands_in = false;  ///< for another one, which the preset does not know
  bool stack_stands_in = false;  ///< the default, for software that was not named or has no preset
  std::string gpu;               ///< name of the preset, "h100_sxm5_80gb"
  std::string architecture;      ///< of the GPU, "hopper"
  std::string network;           ///< transport between nodes; empty: the job needs none
  std::string fabric;            ///< family of its cabling, "fat_tree"; empty: the same
  bool experts = false;          ///< mixture of experts
  bool sharded_weights = false;  ///< ZeRO-3, FSDP
  bool context = false;          ///< context parallel
  bool composed = false;  ///< the software is composed from what it does, not fitted to runs of it
  /// The level of the software is known from its user's own steps; nothing: it isn't.
  std::optional<LevelInForce> learnt{};
  /// Why the software is as good as unknown, whatever its name, in words. Empty: it is what its
  /// name and release say.
  std::vector<std::string> unknown_software{};
  /// Of job and machine, what no published run had and none of the names above says: "no run among
  /// these with low-rank adapters". Each is an error of its own.
  std::vector<std::string> strange{};
};

/// What published runs say about a run's software. Decides which residuals are evidence for an
/// interval; each level is less sure than the one before.
enum class SoftwareKnown : unsigned char {
  release,   ///< this release, which several sources measured: errors of fitted rows
  stack,     ///< the stack, but not that release of it: errors of rows whose source was left out
  learnt,    ///< its user measured steps of it
  composed,  ///< what it does: errors of rows predicted from what their software does
  none,  ///< neither: the same, of rows whose stack no other source has; where the default stack
         ///< stands in, errors of rows predicted with it
};

/// One measured run. Errors are log(predicted / measured) of the step time.
struct Residual {
  std::string row;     ///< its name in tests/reference/training.json
  std::string source;  ///< who measured: rows of one source err alike
  std::string
      vendor;  ///< who is behind the source: several may be of one, whose software they share
  PredictionTraits traits;
  double fitted = 0;           ///< with the constants as they are, fitted to this row among others
  double left_out = 0;         ///< with constants fitted without any row of the source
  double vendor_left_out = 0;  ///< with constants fitted without any row of the vendor's sources
  /// Predicted with the default stack, as if nobody had said which it was; nothing: it cannot run
  /// it.
  std::optional<double> as_default{};
  /// Predicted with its software composed from what that does, with constants of GPUs and a common
  /// level that no row of its vendor had a part in; nothing: its preset does not say what it does.
  std::optional<double> composed{};
  SoftwareKnown left_out_known = SoftwareKnown::none;  ///< what that fit knew; see classify()
  SoftwareKnown vendor_left_out_known = SoftwareKnown::none;  ///< the same without the vendor

  /// Whether it is of this source, or of this vendor.
  [[nodiscard]] bool is_of(std::string_view name) const { return source == name || vendor == name; }
};

using ResidualTable = std::vector<Residual>;

/// What published runs have of a run's software and machine.
struct Knowledge {
  SoftwareKnown software = SoftwareKnown::none;
  bool gpu = false;               ///< a row ran on this kind
  bool architecture = false;      ///< a row ran on one of its architecture
  bool maker = false;             ///< a row ran on one of its maker; see maker_of()
  bool network = false;           ///< a row had this transport, or the run needs none
  bool fabric = false;            ///< a row had cabling of this family, or the run needs none
  int others = 0;                 ///< PredictionTraits::strange: how many
  std::vector<std::string> gaps;  ///< what is missing, in words: "no stack given"

  /// Of the machine and the job, what no row had.
  [[nodiscard]] int strange_parts() const {
    return int{!gpu} + int{!architecture} + int{!network} + int{!fabric} + others;
  }
};
/// Who makes GPUs of an architecture: "AMD" for cdna2 and its kin, else "NVIDIA".
std::string_view maker_of(std::string_view architecture);

/// What the rows of the table know of a run, but for those of the source or vendor `without`.
Knowledge knowledge_of(const ResidualTable& table, const PredictionTraits& traits,
                       std::string_view without = {});

/// Of knowledge_of(), the software alone. That of a GPU of an architecture that no row ran on is
/// unknown, for its constants were fitted elsewhere.
SoftwareKnown software_known(const ResidualTable& table, const PredictionTraits& traits,
                             std::string_view without = {});

/// Sets left_out_known and vendor_left_out_known of every row.
void classify(ResidualTable& table);

/// "known release", "known stack", "own steps", "composed software", "unknown software".
std::string_view name_of(SoftwareKnown known);

/// What a row is grouped by beside its software: "experts", "sharded weights" or "dense".
std::string_view kind_of(const PredictionTraits& traits);

}  // namespace lockstep
