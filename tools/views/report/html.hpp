/// Text that is already HTML is a type of its own, so that text which is not gets escaped.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

/// A piece of HTML. Only the functions below make one from text.
class Html {
 public:
  Html() = default;
  [[nodiscard]] const std::string& str() const { return text_; }
  [[nodiscard]] bool empty() const { return text_.empty(); }
  Html& operator+=(const Html& more) {
    text_ += more.text_;
    return *this;
  }
  friend Html operator+(Html a, const Html& b) { return a += b; }

  /// Takes the text as it is: for markup written in our own sources, never for a name from a file.
  static Html markup(std::string_view html) { return Html(html); }

 private:
  explicit Html(std::string_view text) : text_(text) {}
  std::string text_;
};

/// The text with & < > " ' escaped: fits between tags and in a quoted attribute. Control characters
/// but line breaks and tabs are visible, as printable() says. No line ends between a number and
/// its unit.
Html escaped(std::string_view text);
/// The text as it is, escaped: what a page sends back, such as the value of an <option>.
Html attribute_text(std::string_view text);
/// The text as it is, to be copied: escaped, in a <code>.
Html code(std::string_view text);
/// A sentence, escaped: what it has between two backticks, as help and presets mark a command or a
/// name, is <code>. A backtick without a second one stays. Terminals have the sentence too, and
/// plain ASCII: "12 us" is 12 µs here, CO2 has its 2 below the line, as all numbers of pages are.
Html prose(std::string_view text);
/// "8 -> 4" with the sign that terminals do not have, which no line ends within.
std::string with_arrows(std::string_view text);
/// A path or a name of the house ("cluster.fabric.leaf_oversubscription"), escaped: a line may end
/// after its dots, slashes and underscores, and nowhere else.
Html key_words(std::string_view text);
/// The text escaped, in a <strong>.
Html strong(std::string_view text);

/// JSON for a <script type="application/json">: "<" is written as an escape of JSON, so that no
/// string in it can end the element. Parses to the same value.
Html script_json(std::string_view text);

}  // namespace lockstep
