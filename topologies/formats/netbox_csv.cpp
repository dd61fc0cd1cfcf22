#include "topologies/formats/netbox_csv.hpp"

#include <array>
#include <fmt/format.h>
#include <map>
#include <span>
#include <utility>

#include "models/base/csv_reader.hpp"
#include "models/base/input_error.hpp"
#include "models/base/letter_case.hpp"

namespace lockstep {
namespace {

std::string_view without_byte_order_mark(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  return text;
}

/// The parts between commas, without blanks around them; none of an empty cell.
std::vector<std::string> cell_parts(std::string_view cell) {
  std::vector<std::string> out;
  while (true) {
    const std::size_t comma = cell.find(',');
    const std::string_view part = cell.substr(0, comma);
    const std::size_t from = part.find_first_not_of(' ');
    if (from != std::string_view::npos) {
      out.emplace_back(part.substr(from, part.find_last_not_of(' ') - from + 1));
    }
    if (comma == std::string_view::npos) return out;
    cell.remove_prefix(comma + 1);
  }
}

class NetboxTable {
 public:
  explicit NetboxTable(const std::string& file) : file_(file) {}

  void read_heading(std::span<const std::string> cells) {
    for (std::size_t i = 0; i < cells.size(); ++i) columns_.emplace(lowered(cells[i]), i);
    for (const char side : {'a', 'b'}) {
      if (find(device_columns(side)) != nullptr && find(port_columns(side)) != nullptr) continue;
      throw InputError({file_, "",
                        fmt::format("cables without their devices and ports on side {}", side),
                        "columns \"Termination A\", \"Device A\", \"Termination B\" and \"Device "
                        "B\": export all data, or add these to the table",
                        ""});
    }
  }

  void read_row(std::size_t row, std::span<const std::string> cells) {
    row_ = row;
    cells_ = cells;
    cables_.push_back({.a = side('a'),
                       .b = side('b'),
                       .status = lowered(text({"status"})),
                       .place = fmt::format("row {}", row),
                       .through_panels = false});
  }

  std::vector<NetboxCable> take() { return std::move(cables_); }

 private:
  using Names = std::array<std::string, 3>;
  static Names device_columns(char side) {
    return {fmt::format("device {}", side), fmt::format("side {}", side),
            fmt::format("side_{}_device", side)};
  }
  static Names port_columns(char side) {
    return {fmt::format("termination {}", side), fmt::format("side_{}_name", side), ""};
  }

  const std::size_t* find(std::span<const std::string> names) const {
    for (const std::string& name : names) {
      const auto found = columns_.find(name);
      if (found != columns_.end()) return &found->second;
    }
    return nullptr;
  }
  std::string text(std::span<const std::string> names) const {
    const std::size_t* column = find(names);
    return column == nullptr ? std::string() : cells_[*column];
  }
  std::string text(const std::array<std::string, 1>& name) const {
    return text(std::span<const std::string>(name));
  }

  std::vector<NetboxEnd> side(char letter) const {
    const std::vector<std::string> devices = cell_parts(text(device_columns(letter)));
    const std::vector<std::string> ports = cell_parts(text(port_columns(letter)));
    if (devices.empty()) return {};  // such as a circuit
    if (devices.size() != 1 && devices.size() != ports.size()) {
      throw InputError(
          {csv_place(file_, row_), "",
           fmt::format("{} devices and {} ports on side {}", devices.size(), ports.size(), letter),
           "one device, or one for each port", ""});
    }
    NetboxEnd end;
    const std::string type = text({fmt::format("side_{}_type", letter)});
    if (!type.empty()) end.type = type;
    if (lowered(text({"type"})) == "power") end.type = "dcim.powerport";
    std::vector<NetboxEnd> out;
    for (std::size_t i = 0; i < ports.size(); ++i) {
      end.port = {.device = devices[devices.size() == 1 ? 0 : i], .port = ports[i], .number = 0};
      out.push_back(end);
    }
    return out;
  }

  const std::string& file_;
  std::map<std::string, std::size_t, std::less<>> columns_;
  std::vector<NetboxCable> cables_;
  std::size_t row_ = 0;
  std::span<const std::string> cells_;  ///< of that row
};

}  // namespace

bool is_netbox_csv(std::string_view text) {
  const std::string first = lowered(text.substr(0, text.find('\n')));
  return first.find(',') != std::string::npos && first.find('{') == std::string::npos &&
         (first.find("termination a") != std::string::npos ||
          first.find("side_a_name") != std::string::npos);
}

std::vector<NetboxCable> read_netbox_csv(const std::string& file, std::string_view text) {
  NetboxTable table(file);
  read_csv(
      file, without_byte_order_mark(text),
      [&](std::span<const std::string> cells) { table.read_heading(cells); },
      [&](std::size_t row, std::span<const std::string> cells) { table.read_row(row, cells); });
  return table.take();
}

}  // namespace lockstep
