/// The variables of a shell script, and what words with them come to, without running anything.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep {

/// What a word comes to. A variable that is not known stays as "${NAME}", a command's output as
/// "$(...)".
class ShellVariables {
 public:
  /// `file`: for the error of a script that writes out more text than any needs.
  explicit ShellVariables(std::string file) : file_(std::move(file)) {}

  /// Sets a variable that no assignment of the script changes.
  void fix(const std::string& name, const std::string& value);
  /// An element of an associative array has the name "NAME[KEY]".
  void assign(const std::string& name, std::vector<std::string> values, bool append);
  void unset(const std::string& name);
  /// $1 and so on: of a function that is called.
  void set_positionals(std::vector<std::string> words) { positionals_ = std::move(words); }
  [[nodiscard]] const std::vector<std::string>& positionals() const { return positionals_; }

  /// The value, of an array its elements with blanks between; nothing where there is none.
  [[nodiscard]] std::optional<std::string> value(const std::string& name) const;
  [[nodiscard]] std::optional<std::int64_t> number(std::string_view name) const;
  [[nodiscard]] const std::map<std::string, std::vector<std::string>>& all() const {
    return values_;
  }

  /// The words that a raw word becomes: quotes gone, variables filled in, split at blanks where it
  /// is not quoted.
  std::vector<std::string> words(std::string_view raw);
  /// The raw word as one text that is not split at blanks.
  std::string text(std::string_view raw);
  /// Lines of a here-document, whose quotes stay.
  std::string lines(std::string_view raw);
  /// What an expression of numbers comes to, as text.
  std::string formula(std::string_view expression);
  /// Does what ((...)) says, where that is an assignment; its worth, where that is known.
  std::optional<bool> run_formula(std::string_view expression);

 private:
  struct Piece;
  void add_piece(std::string_view piece, bool quoted, Piece& out);
  void add_letters(std::string_view raw, bool quoted, Piece& out);
  std::vector<std::string> dollar(std::string_view piece, bool& is_list);
  std::vector<std::string> braces(std::string_view inside, bool& is_list);
  std::string changed(const std::string& name, const std::optional<std::string>& value,
                      std::string_view rest);
  std::string command_output(std::string_view inside);
  void spend(std::size_t bytes);

  std::string file_;
  std::map<std::string, std::vector<std::string>> values_;
  std::set<std::string, std::less<>> fixed_;
  std::vector<std::string> positionals_;
  std::size_t spent_ = 0;
  int depth_ = 0;
};

/// Whether `text` is what the pattern of a shell says: * and ? stand for letters.
bool matches_glob(std::string_view text, std::string_view pattern);

}  // namespace lockstep
