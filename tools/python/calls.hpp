/// What the Python package asks of the library: a command answered as the program answers it, and
/// the numbers of many answers to one scenario. Plain values in and out; nothing here knows Python.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_residuals.hpp"
#include "tools/console/console.hpp"
#include "tools/lockstep/cli.hpp"

namespace lockstep {

/// What a command reads: what a word of the command line names, or a text that is there already.
using CalledInput = std::variant<std::string, CommandInput>;

/// What a command printed, or why it did not answer.
struct Called {
  Exit status = Exit::ok;
  std::string out, err;
  CommandInput input{};  ///< what it read; empty of commands that read no text
  std::optional<Failure> failure{};
};

/// Answers the input as `lockstep NAME INPUT WORDS...` does; without an input, as `lockstep NAME
/// WORDS...` does. Throws nothing: every error is in the answer. May be called from several
/// threads.
Called call(const std::string& name, const std::vector<std::string>& words,
            const std::optional<CalledInput>& input);

/// The numbers of an answer's first level by name, or why there is none.
struct CalledNumbers {
  std::map<std::string, double> numbers{};
  std::optional<Failure> failure{};
};

/// Many answers to one scenario, which differ by changes. Presets are read once, so it lives for
/// one sweep: what changes in files meanwhile is not seen.
class NumbersOf {
 public:
  /// `words`: options of `lockstep run`. Throws InputError and UsageError.
  NumbersOf(const std::vector<std::string>& words, const CalledInput& input);

  /// The numbers with these changes ("path=value") after those of the options. Throws nothing. May
  /// be called from several threads.
  [[nodiscard]] CalledNumbers with(const std::vector<std::string>& changes) const;

 private:
  ParsedOptions options_;
  PresetStore presets_;
  StepIntervals intervals_;
  CommandInput input_;
};

}  // namespace lockstep
