#include "topologies/formats/rocm_smi.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "models/base/input_error.hpp"
#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kRocmTitle = "Link Type between two GPUs";

class RocmSmiReader {
 public:
  RocmSmiReader(const std::string& file, std::string_view text) : lines_(file, text) {}

  NodeDrawing read() {
    find_title();
    const std::vector<std::string> names = next_words("a line of GPU0, GPU1, ...");
    if (names.size() > kMostDevices) {
      lines_.refuse(fmt::format("{} GPUs", names.size()), fmt::format("at most {}", kMostDevices));
    }
    std::vector<std::vector<std::size_t>> joined;
    for (const std::string& name : names) {
      if (!name.starts_with("GPU")) lines_.refuse(in_quotes(name), "GPU0, GPU1, ...");
      node_.gpus.push_back({.name = name, .nvlinks = 0, .nvlink_group = -1, .paths = {}});
    }
    for (const std::string& name : names) joined.push_back(read_row(name));
    set_nvlink_groups(joined, node_);
    node_.counts_nvlinks = false;
    node_.lists_dies = true;
    return std::move(node_);
  }

 private:
  void find_title() {
    while (lines_.next()) {
      if (lines_.line().find(kRocmTitle) != std::string_view::npos) return;
    }
    lines_.refuse_line(std::max(1, lines_.number()), fmt::format("no \"{}\"", kRocmTitle),
                       "the output of rocm-smi --showtopo");
  }

  /// Of the next line that has any.
  std::vector<std::string> next_words(const std::string& allowed) {
    std::vector<std::string> words;
    while (words.empty()) {
      if (!lines_.next()) lines_.refuse_line(lines_.number() + 1, "the end of the file", allowed);
      LineCursor cursor(lines_.line());
      while (cursor.skip_spaces(), !cursor.empty()) words.emplace_back(cursor.word());
    }
    return words;
  }

  /// The GPUs that xGMI joins to that one.
  std::vector<std::size_t> read_row(const std::string& name) {
    const std::vector<std::string> words = next_words("the row of " + name);
    if (words[0] != name) lines_.refuse(in_quotes(words[0]), "the row of " + name);
    if (words.size() != node_.gpus.size() + 1) {
      lines_.refuse(fmt::format("{} cells", words.size() - 1),
                    fmt::format("{}, one for each GPU of the first line", node_.gpus.size()));
    }
    std::vector<std::size_t> joined;
    for (std::size_t i = 0; i < node_.gpus.size(); ++i) {
      const std::string& cell = words[i + 1];
      const bool self = node_.gpus[i].name == name;
      // XXXX: the driver does not know.
      const bool fits = self ? cell == "0" : cell == "XGMI" || cell == "PCIE" || cell == "XXXX";
      if (!fits) {
        lines_.refuse(in_quotes(cell),
                      self ? "0 where a GPU meets itself" : "XGMI, PCIE or XXXX (unknown)");
      }
      if (cell == "XGMI") joined.push_back(i);
    }
    return joined;
  }

  TextLines lines_;
  NodeDrawing node_;
};

}  // namespace

bool is_rocm_smi(std::string_view text) { return text.find(kRocmTitle) != std::string_view::npos; }

NodeDrawing read_rocm_smi(const std::string& file, std::string_view text) {
  return RocmSmiReader(file, text).read();
}

}  // namespace lockstep
