/// A mistake in what was asked, rather than in a file.
#pragma once

#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace lockstep {

/// Parts of a mistake on the command line, as InputProblem has them; empty: not known.
struct UsageParts {
  std::string found, allowed, nearest;
};

/// A mistake on the command line: what() is one line that says what was found and what is allowed.
class UsageError : public std::runtime_error {
 public:
  /// Its parts are those of a line "X: found F; allowed: A. Did you mean N?", as far as it has
  /// them.
  explicit UsageError(const std::string& line);
  UsageError(const std::string& line, UsageParts parts)
      : std::runtime_error(line), parts_(std::move(parts)) {}

  [[nodiscard]] const UsageParts& parts() const { return parts_; }

 private:
  UsageParts parts_;
};

/// ". Did you mean X?" or nothing.
std::string did_you_mean(std::string_view found, std::span<const std::string> names,
                         std::string_view prefix = {});

/// The whole number from 1 to `high` that was given to --OPTION as `text`. Throws UsageError.
int asked_count(std::string_view option, std::string_view text, int high);

}  // namespace lockstep
