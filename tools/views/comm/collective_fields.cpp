#include <algorithm>
#include <cmath>

#include <nlohmann/json.hpp>

#include "sim/answer/answer_fields.hpp"
#include "tools/views/comm/comm_collective_output.hpp"
#include "tools/views/tables/command_fields.hpp"

namespace lockstep {
namespace {

constexpr double kFloatBytes = 4;  // float, as nccl-tests' default

const CollectiveRow& largest_row(const CollectiveStudy& study) {
  return *std::ranges::max_element(study.rows, {}, &CollectiveRow::size);
}
const CollectiveRow& best_row(const CollectiveStudy& study) {
  return *std::ranges::max_element(study.rows, {}, &CollectiveRow::busbw_bytes_per_s);
}

std::string_view name_of_row_op(const CollectiveRow& row) {
  return collective_kinds()[static_cast<std::size_t>(row.op)].name;
}

/// Each operation at its largest size.
std::vector<CollectiveRow> largest_of_operations(const CollectiveStudy& study) {
  std::vector<CollectiveRow> rows;
  for (const CollectiveRow& row : study.rows) {
    if (rows.empty() || rows.back().op != row.op) {
      rows.push_back(row);
    } else if (rows.back().size < row.size) {
      rows.back() = row;
    }
  }
  return rows;
}

const FieldTable<CollectiveRow>& collective_operation_fields() {
  using Row = CollectiveRow;
  static const FieldTable<Row> fields =
      FieldTable<Row>()
          .add("op", "The operation.", name_of_row_op)
          .add("size_bytes", "Its largest size, as nccl-tests counts it.",
               [](const Row& r) { return AllDigits{r.size.base_units()}; })
          .add("time_s", Better::less, "Time of the operation at its largest size.",
               [](const Row& r) { return r.time; })
          .add("busbw_bytes_per_s", Better::more,
               "Bus bandwidth of the operation at its largest size.",
               [](const Row& r) { return r.busbw_bytes_per_s; });
  return fields;
}

const FieldTable<JudgedCandidate>& choice_fields() {
  using Of = JudgedCandidate;
  const auto where_it_runs = [](Seconds Of::* time) {
    return [time](const Of& c) -> std::optional<Seconds> {
      if (c.protocol.empty()) return std::nullopt;
      return c.*time;
    };
  };
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("algorithm", "Its algorithm.", [](const Of& c) { return c.algorithm; })
          .add("protocol", "Its protocol; absent where the algorithm cannot run.",
               [](const Of& c) -> std::optional<std::string_view> {
                 if (c.protocol.empty()) return std::nullopt;
                 return c.protocol;
               })
          .add("latency_s", Better::less, "The part of its time that no size changes.",
               where_it_runs(&Of::latency))
          .add("time_s", Better::less, "Its time alone on the machine.", where_it_runs(&Of::time))
          .add("why_not", "Why it could not be taken; absent where it could.",
               [](const Of& c) -> std::optional<std::string> {
                 if (c.eligible) return std::nullopt;
                 return c.why_not;
               });
  return fields;
}

/// A way in which groups lie.
struct GroupShape {
  int groups = 0;
  DomainSpread way;
};
std::vector<GroupShape> group_shapes(const CollectiveStudy& study) {
  std::vector<GroupShape> out;
  if (study.group.ways.size() <= 1) return out;
  for (std::size_t i = 0; i < study.group.ways.size(); ++i) {
    out.push_back({study.group.groups_of_way[i], study.group.ways[i]});
  }
  return out;
}

const FieldTable<GroupShape>& group_shape_fields() {
  using Of = GroupShape;
  static const FieldTable<Of> fields =
      FieldTable<Of>()
          .add("groups", "How many groups lie so.", [](const Of& s) { return s.groups; })
          .add("nodes", "NVLink domains that hold a member of such a group.",
               [](const Of& s) { return s.way.domains; })
          .add("ranks_per_node_min", "Its members in the domain with the fewest.",
               [](const Of& s) { return s.way.per_domain; })
          .add("ranks_per_node_max", "Its members in the domain with the most.",
               [](const Of& s) { return s.way.per_domain_max; });
  return fields;
}

bool drawn_often(const CollectiveStudy& study) { return study.hash && study.hash->draws > 1; }

struct RowOfStudy {
  const CollectiveStudy& study;
  std::size_t place = 0;

  [[nodiscard]] const CollectiveRow& row() const { return study.rows[place]; }
};
std::vector<RowOfStudy> rows_of_collectives(const CollectiveStudy& study) {
  std::vector<RowOfStudy> out;
  for (std::size_t i = 0; i < study.rows.size(); ++i) out.push_back({study, i});
  return out;
}

void add_nccl_choice(FieldTable<RowOfStudy>& fields) {
  using Of = RowOfStudy;
  fields
      .add("algorithm", "The algorithm that NCCL takes.",
           [](const Of& r) { return r.row().choice.cost->algorithm; })
      .add("protocol", "Its protocol.", [](const Of& r) { return r.row().choice.cost->protocol; })
      .add("channels", "Channels that it takes at this size.",
           [](const Of& r) { return r.row().choice.channels; })
      .add("nvlink_bytes_per_byte", Better::less,
           "Bytes that leave a member over NVLink for each byte of the size.",
           [](const Of& r) { return r.row().choice.cost->nvlink_coefficient; })
      .add("network_bytes_per_byte", Better::less,
           "Bytes that leave a member over its NIC for each byte of the size.",
           [](const Of& r) { return r.row().choice.cost->network_coefficient; })
      .add("reason", "Why it is taken, against the others.",
           [](const Of& r) { return r.row().choice.reason; })
      .list("candidates", "All that were compared: those that could be taken by time, then others.",
            choice_fields(), [](const Of& r) -> const auto& { return r.row().choice.candidates; })
      .add("shape",
           "Of \"shapes\", from 0: that of the groups that end last; where there are "
           "several.",
           [](const Of& r) -> std::optional<std::size_t> {
             if (r.study.group.ways.size() <= 1) return std::nullopt;
             return r.row().way;
           })
      .object("hashing", "time_s over the draws of --hash-seeds.", time_band_fields(),
              [](const Of& r) -> std::optional<HashBand> {
                if (!drawn_often(r.study)) return std::nullopt;
                return r.study.hash->bands[r.place];
              });
}

const FieldTable<RowOfStudy>& collective_row_fields() {
  using Of = RowOfStudy;
  static const FieldTable<Of> fields = [] {
    FieldTable<Of> out;
    out.add("op", "The operation.", [](const Of& r) { return name_of_row_op(r.row()); })
        .add("size_bytes", "Size, as nccl-tests counts it.",
             [](const Of& r) { return AllDigits{r.row().size.base_units()}; })
        .add("count",
             "Elements, as nccl-tests counts them: of one rank's part where the buffer "
             "has one for each.",
             [](const Of& r) { return AllDigits{collective_count(r.row(), r.study)}; })
        .constant("type", "Type of an element.", "float")
        .add("redop", "\"sum\" where the operation reduces.",
             [](const Of& r) { return reduction_of(r.row().op); })
        .add("time_s", Better::less, "Time of the operation at this size.",
             [](const Of& r) { return r.row().time; })
        .add("full_fabric_time_s", Better::less, "The same on a fabric whose switches never limit.",
             [](const Of& r) { return r.row().full_time; })
        .add("slowest_link", "The link that holds it back beyond its own NICs; else empty.",
             [](const Of& r) { return r.row().slowest_link; })
        .add("algbw_bytes_per_s", Better::more, "Algorithm bandwidth: size over time.",
             [](const Of& r) { return r.row().algbw_bytes_per_s; })
        .add("busbw_bytes_per_s", Better::more, "Bus bandwidth, as nccl-tests prints it.",
             [](const Of& r) { return r.row().busbw_bytes_per_s; });
    add_nccl_choice(out);
    return out;
  }();
  return fields;
}

void add_collective_group(FieldTable<CollectiveStudy>& fields) {
  fields
      .add("about", "What the scenario says of itself.",
           [](const CollectiveStudy& s) { return s.about; })
      .add("ranks", "GPUs that take part.",
           [](const CollectiveStudy& s) { return s.group.gpus.size(); })
      .add("nodes", "NVLink domains that hold one of them.",
           [](const CollectiveStudy& s) { return s.group.nodes; })
      .add("ranks_per_node_min", "Members in the domain with the fewest.",
           [](const CollectiveStudy& s) { return s.group.least; })
      .add("ranks_per_node_max", "Members in the domain with the most.",
           [](const CollectiveStudy& s) { return s.group.most; })
      .add("nic_bytes_per_s", "What a member has of its node's NICs.",
           [](const CollectiveStudy& s) { return s.group.nic_bandwidth; })
      .add("transport", "Network transport.",
           [](const CollectiveStudy& s) { return s.cluster.transport.name; });
}

const FieldTable<CollectiveStudy>& collective_study_fields() {
  static const FieldTable<CollectiveStudy> fields = [] {
    FieldTable<CollectiveStudy> out;
    add_collective_group(out);
    out.add("largest_time_s", Better::less, "Time of the first operation at the largest size.",
            [](const CollectiveStudy& s) { return largest_row(s).time; })
        .add("best_busbw_bytes_per_s", Better::more, "The best bus bandwidth of all rows.",
             [](const CollectiveStudy& s) { return best_row(s).busbw_bytes_per_s; })
        .add("best_size_bytes", "Size of the row that has it.",
             [](const CollectiveStudy& s) { return AllDigits{best_row(s).size.base_units()}; })
        .add("best_time_s", Better::less, "Time of the row that has it.",
             [](const CollectiveStudy& s) { return best_row(s).time; });
    add_hash_headline(
        out, "largest_time_s", [](const CollectiveStudy& s) -> std::optional<HashBand> {
          if (!drawn_often(s)) return std::nullopt;
          return s.hash->bands[static_cast<std::size_t>(&largest_row(s) - s.rows.data())];
        });
    out.object("hashing", "Draws of the hashes, where they decide anything.", draw_fields(),
               [](const CollectiveStudy& s) -> const auto& { return s.hash; })
        .list_if_any("shapes",
                     "The ways in which the groups lie over NVLink domains, where there are "
                     "several: the first group's first.",
                     group_shape_fields(), group_shapes)
        .list("operations", "Each operation at its largest size.", collective_operation_fields(),
              largest_of_operations)
        .add("assumptions", "What was filled in.",
             [](const CollectiveStudy& s) { return s.cluster.assumptions; })
        .add("notes", "What the times leave out.", [](const CollectiveStudy& s) { return s.notes; })
        .list("rows", "By operation, then by size: what nccl-tests prints, with NCCL's choice.",
              collective_row_fields(), rows_of_collectives);
    return out;
  }();
  return fields;
}

}  // namespace

std::string_view reduction_of(CollectiveOp op) {
  using enum CollectiveOp;
  return op == all_reduce || op == reduce_scatter || op == reduce ? "sum" : "none";
}

double collective_count(const CollectiveRow& row, const CollectiveStudy& study) {
  using enum CollectiveOp;
  const bool parts = row.op == all_gather || row.op == reduce_scatter || row.op == all_to_all;
  const double ranks = parts ? static_cast<double>(study.group.gpus.size()) : 1;
  return std::floor(row.size.base_units() / kFloatBytes / ranks);
}

nlohmann::ordered_json collective_json(const CollectiveStudy& study) {
  return Value(collective_study_fields().values(study)).json();
}

std::vector<FieldInfo> collective_fields() { return collective_study_fields().infos(); }

}  // namespace lockstep
