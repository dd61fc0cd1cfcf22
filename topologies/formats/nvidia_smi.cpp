#include "topologies/formats/nvidia_smi.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "models/base/input_error.hpp"
#include "topologies/formats/fabric_json.hpp"
#include "topologies/infiniband/text_lines.hpp"

namespace lockstep {
namespace {

/// Words of a line, without the terminal's escape sequences ("\x1b[4m").
std::vector<std::string> words_of(std::string_view line) {
  std::string plain;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      plain += line[i];
      continue;
    }
    while (i < line.size() &&
           !((line[i] >= 'a' && line[i] <= 'z') || (line[i] >= 'A' && line[i] <= 'Z')))
      ++i;
  }
  std::vector<std::string> words;
  LineCursor cursor(plain);
  while (cursor.skip_spaces(), !cursor.empty()) words.emplace_back(cursor.word());
  return words;
}

bool is_gpu(std::string_view name) { return name.starts_with("GPU"); }

/// NVLinks of a cell "NV18"; nothing: it is none.
std::optional<int> nvlinks(std::string_view cell) {
  if (!cell.starts_with("NV") || cell.size() < 3) return std::nullopt;
  int count = 0;
  const auto [end, error] = std::from_chars(cell.data() + 2, cell.data() + cell.size(), count);
  constexpr int kMost = 1000;
  const bool fits = error == std::errc{} && end == cell.data() + cell.size() && count >= 1;
  return fits && count <= kMost ? std::optional(count) : std::nullopt;
}

/// The name of a GPU in a line of `nvidia-smi -L` ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: ..."), of
/// the table that nvidia-smi prints ("|   0  NVIDIA H100 80GB HBM3   On  |"), or of a query as CSV
/// ("0, NVIDIA H100 80GB HBM3"); empty: another line.
std::string_view device_in(std::string_view line) {
  constexpr std::string_view kDigits = "0123456789", kBlanks = " \t";
  const auto after = [](std::string_view text, std::string_view letters) {
    return text.substr(std::min(text.find_first_not_of(letters), text.size()));
  };
  line = after(line, kBlanks);
  const std::size_t uuid = line.find(" (UUID: GPU-");
  if (line.starts_with("GPU ") && uuid != std::string_view::npos) {
    const std::string_view name = after(line.substr(4, uuid - 4), kDigits);
    return name.starts_with(": ") ? name.substr(2) : std::string_view();
  }
  if (line.starts_with("|")) {
    const std::string_view number = after(line.substr(1), kBlanks);
    const std::string_view name = after(number, kDigits);
    if (name.size() == number.size() || !name.starts_with("  ")) return {};
    const std::string_view begin = after(name, kBlanks);
    const std::string_view found = begin.substr(0, begin.find("  "));
    return found.find_first_of("|:/%") == std::string_view::npos ? found : std::string_view();
  }
  for (const std::string_view maker : {"NVIDIA ", "Tesla "}) {
    const std::size_t at = line.find(maker);
    const bool cell = at == 0 || (at != std::string_view::npos && at > 1 && line[at - 2] == ',');
    const bool csv = line.find(", ") != std::string_view::npos;
    if (cell && csv) return line.substr(at, std::min(line.find(',', at), line.size()) - at);
  }
  return {};
}

/// Names of GPUs in all of a text, each once.
std::vector<std::string> devices_in(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view name = device_in(text.substr(0, end));
    while (name.ends_with(' ') || name.ends_with('\r')) name.remove_suffix(1);
    text.remove_prefix(std::min(end + 1, text.size()));
    const bool known = std::ranges::find(out, name) != out.end();
    if (!name.empty() && !known && out.size() < kMostDevices) out.emplace_back(name);
  }
  return out;
}

class NvidiaSmiReader {
 public:
  NvidiaSmiReader(const std::string& file, std::string_view text) : lines_(file, text) {
    node_.devices = devices_in(text);
  }

  NodeDrawing read() {
    find_header();
    read_rows();
    read_legend();
    find_groups();
    for (NodeDrawing::Nic& nic : node_.nics) nic.transport = transport_of_name(nic.name);
    return std::move(node_);
  }

 private:
  void find_header() {
    while (lines_.next()) {
      const std::vector<std::string> words = words_of(lines_.line());
      // A row begins with a name too, but goes on with a cell.
      if (words.empty() || words[0] != "GPU0" || (words.size() > 1 && words[1] == "X")) continue;
      for (const std::string& word : words) {
        if (word == "CPU") break;  // "CPU Affinity" and what follows
        devices_.push_back(word);
      }
      if (devices_.size() > kMostDevices) {
        lines_.refuse(fmt::format("{} devices", devices_.size()),
                      fmt::format("at most {}", kMostDevices));
      }
      add_devices();
      return;
    }
    lines_.refuse_line(std::max(1, lines_.number()), "no line of GPU0, GPU1, ...",
                       "the output of nvidia-smi topo -m");
  }

  void add_devices() {
    for (const std::string& name : devices_) {
      if (!places_.emplace(name, is_gpu(name) ? node_.gpus.size() : node_.nics.size()).second) {
        lines_.refuse(in_quotes(name), "each device once");
      }
      if (is_gpu(name)) {
        node_.gpus.push_back({.name = name, .nvlinks = 0, .nvlink_group = -1, .paths = {}});
      } else {
        node_.nics.push_back({.name = name, .rate = {}, .transport = {}});
      }
    }
    for (NodeDrawing::Gpu& gpu : node_.gpus) gpu.paths.resize(node_.nics.size());
    joined_.assign(node_.gpus.size(), {});
  }

  /// Rows of NICs say nothing that those of GPUs do not: excerpts may end before them.
  void read_rows() {
    for (std::size_t i = 0; i < devices_.size();) {
      const std::string& device = devices_[i];
      const bool more = lines_.next();
      if (!more && !is_gpu(device)) return;
      if (!more) {
        lines_.refuse_line(lines_.number() + 1, "the end of the file", "the row of " + device);
      }
      const std::vector<std::string> words = words_of(lines_.line());
      if (words.empty()) continue;
      if (words[0] != device) {
        if (!is_gpu(device)) return;
        lines_.refuse(in_quotes(words[0]), "the row of " + device);
      }
      read_row(device, words);
      ++i;
    }
  }

  void read_row(const std::string& device, const std::vector<std::string>& words) {
    if (words.size() < devices_.size() + 1) {
      lines_.refuse(fmt::format("{} cells", words.size() - 1),
                    fmt::format("{}, one for each device of the first line", devices_.size()));
    }
    for (std::size_t i = 0; i < devices_.size(); ++i) read_cell(device, devices_[i], words[i + 1]);
  }

  void read_cell(const std::string& row, const std::string& column, const std::string& cell) {
    constexpr std::array kPaths{PciePath::pix, PciePath::pxb, PciePath::phb, PciePath::node,
                                PciePath::sys};
    // Drivers of the first years of `topo -m` write SOC for SYS.
    const std::string_view word = cell == "SOC" ? name_of(PciePath::sys) : std::string_view(cell);
    const auto path = std::ranges::find_if(kPaths, [&](PciePath p) { return name_of(p) == word; });
    const std::optional<int> links = nvlinks(cell);
    const bool fits = row == column ? cell == "X" : path != kPaths.end() || links;
    if (!fits) {
      lines_.refuse(in_quotes(cell), row == column
                                         ? "X where a device meets itself"
                                         : "PIX, PXB, PHB, NODE, SYS or NV and a number of links");
    }
    if (!is_gpu(row) || row == column) return;
    const std::size_t gpu = places_.at(row), other = places_.at(column);
    if (links && is_gpu(column)) {
      // Through switches every pair shows all links of the GPU; bonded pairs show theirs.
      through_switches_ =
          through_switches_ && (node_.gpus[gpu].nvlinks == 0 || node_.gpus[gpu].nvlinks == *links);
      node_.gpus[gpu].nvlinks = std::max(node_.gpus[gpu].nvlinks, *links);
      sums_[gpu] += *links;
      joined_[gpu].push_back(other);
    } else if (!is_gpu(column)) {
      node_.gpus[gpu].paths[other] = path == kPaths.end() ? PciePath::pix : *path;
    }
  }

  /// From the line on that ended the matrix.
  void read_legend() {
    bool names_nics = false, explains = false, explains_nvlink = false;
    do {
      const std::vector<std::string> words = words_of(lines_.line());
      if (words.size() == 1 && words[0] == "Legend:") explains = true;
      if (!words.empty() && words[0] == "NV#") explains_nvlink = true;
      if (words.size() == 2 && words[0] == "NIC" && words[1] == "Legend:") names_nics = true;
      if (!names_nics || words.size() != 2 || !words[0].ends_with(':')) continue;
      const auto at = places_.find(words[0].substr(0, words[0].size() - 1));
      if (at != places_.end() && !is_gpu(at->first)) node_.nics[at->second].name = words[1];
    } while (lines_.next());
    // The matrix of PCIe alone, `nvidia-smi topo -mp`, explains no NV#.
    node_.tells_nvlink = explains_nvlink || !explains || !sums_.empty();
  }

  void find_groups() {
    set_nvlink_groups(joined_, node_);
    // Without switches (DGX-1, HGX of four GPUs, bridges) the links to all neighbours are different
    // ones. Where all pairs show the same number, few links mean a full mesh, and so do as many in
    // all as a GPU has (six to each of three neighbours of an H100), else switches.
    constexpr int kFewLinks = 4, kMostLinks = 18;
    for (std::size_t gpu = 0; gpu < node_.gpus.size(); ++gpu) {
      NodeDrawing::Gpu& at = node_.gpus[gpu];
      const bool pair = sums_[gpu] == at.nvlinks;  // of two, either is as fast
      const bool switches =
          through_switches_ && at.nvlinks > kFewLinks && (pair || sums_[gpu] > kMostLinks);
      if (!switches) at.nvlinks = sums_[gpu];
      node_.nvlink_switches = node_.nvlink_switches || switches;
    }
  }

  TextLines lines_;
  NodeDrawing node_;
  std::vector<std::string> devices_;
  std::map<std::string, std::size_t, std::less<>> places_;  ///< among GPUs or among NICs
  std::vector<std::vector<std::size_t>> joined_;            ///< by GPU: those over NVLink
  std::map<std::size_t, int> sums_;                         ///< by GPU: links of all its cells
  bool through_switches_ = true;
};

}  // namespace

NodeDrawing read_nvidia_smi(const std::string& file, std::string_view text) {
  return NvidiaSmiReader(file, text).read();
}

}  // namespace lockstep
