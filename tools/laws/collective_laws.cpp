// Rows of a collective: what each says in itself, against the ports that it has to go through, and
// against each other.
#include <algorithm>
#include <fmt/format.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "models/base/write_json.hpp"
#include "models/collectives/candidate.hpp"
#include "models/collectives/collectives.hpp"
#include "tools/laws/comm_laws.hpp"
#include "tools/laws/said.hpp"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

bool is_collective(const DocumentSubject& subject, LawBook& book) {
  if (subject.about() == "collective") return true;
  book.does_not_apply("no collective");
  return false;
}

CollectiveOp op_of(const Json& row) {
  const auto name = row.at("op").get<std::string>();
  return std::ranges::find(collective_kinds(), name, &CollectiveKind::name)->op;
}

std::string row_name(const Json& row) {
  return fmt::format("{} of {:.0f} B", row.at("op").get<std::string>(),
                     row.at("size_bytes").get<double>());
}

/// What the NIC of each member carries of payload.
BytesPerSecond nic_payload(DocumentSubject& subject) {
  return payload_bandwidth(BytesPerSecond{subject.answer().at("nic_bytes_per_s").get<double>()},
                           checked_cluster(subject).transport.efficiency);
}

void hold_rows(DocumentSubject& subject, LawBook& book) {
  if (!is_collective(subject, book)) return;
  const Json& answer = subject.answer();
  const int ranks = answer.at("ranks").get<int>();
  const double nic = nic_payload(subject).base_units();
  double best = 0, largest = 0, largest_time = 0;
  for (const Json& row : answer.at("rows")) {
    const std::string name = row_name(row);
    const auto number = [&](const char* of) { return row.at(of).get<double>(); };
    const double size = number("size_bytes"), time = number("time_s");
    book.same(name + ": algbw times time", number("algbw_bytes_per_s") * time, size, 1e-10);
    book.same(name + ": busbw over algbw", number("busbw_bytes_per_s"),
              number("algbw_bytes_per_s") * bus_factor(op_of(row), ranks), 1e-10);
    book.at_most(name + ": time on a full fabric", number("full_fabric_time_s"), time, kPrinted);
    if (answer.at("nodes").get<int>() > 1) {
      book.at_most(name + ": bytes through each NIC", size * number("network_bytes_per_byte"),
                   nic * time, 1e-10);
    }
    best = std::max(best, number("busbw_bytes_per_s"));
    if (size > largest) largest = size, largest_time = time;
  }
  book.same("largest_time_s", answer.at("largest_time_s").get<double>(), largest_time, kPrinted);
  book.same("best_busbw_bytes_per_s", answer.at("best_busbw_bytes_per_s").get<double>(), best,
            kPrinted);
}

/// The machine as a collective crosses it: NVLink domains that are joined by their members' NICs.
struct Domains {
  double members = 0, domains = 0, most = 0;  ///< in all; how many; of the largest
  bool sums = false;                          ///< switches may add up
};

/// Bytes of payload that a domain's NICs have to carry, per byte of size; at the largest domain,
/// whose share is least. Patarasuk and Yuan 2009, J. Parallel Distrib. Comput. 69(2), 117-124, for
/// all-reduce; others by what a domain lacks or has too much.
double least_of_domain(CollectiveOp op, const Domains& of) {
  using enum CollectiveOp;
  const double outside = (of.members - of.most) / of.members;
  switch (op) {
    case all_reduce:
      return of.sums ? 1 : 2 * (of.domains - 1) / of.domains;
    case all_gather:
    case reduce_scatter:
      return of.sums && op == reduce_scatter ? outside / of.most : outside;
    case all_to_all:
      return of.most * outside;
    case broadcast:
    case send_receive:
    case reduce:
      return 1;
  }
  return 0;
}

void hold_port_bound(DocumentSubject& subject, LawBook& book) {
  if (!is_collective(subject, book)) return;
  const Json& answer = subject.answer();
  const Json& collective = subject.document().at("collective");
  const bool sharp = collective.contains("sharp") && collective.at("sharp") != false;
  const Domains domains{.members = answer.at("ranks").get<double>(),
                        .domains = answer.at("nodes").get<double>(),
                        .most = answer.at("ranks_per_node_max").get<double>(),
                        .sums = sharp};
  if (domains.domains < 2) return book.does_not_apply("its members are in one NVLink domain");
  const double rate = domains.most * nic_payload(subject).base_units();
  for (const Json& row : answer.at("rows")) {
    const double bytes = row.at("size_bytes").get<double>() * least_of_domain(op_of(row), domains);
    book.at_most(row_name(row) + ": bytes through a domain's NICs", bytes,
                 rate * row.at("time_s").get<double>(), 1e-10);
  }
}

/// What an operation and a size is, whatever else is asked.
void hold_rows_alone(DocumentSubject& subject, LawBook& book) {
  if (!is_collective(subject, book)) return;
  const Json& rows = subject.answer().at("rows");
  const std::size_t step = subject.deep() ? 1 : std::max<std::size_t>(1, rows.size() / 3);
  for (std::size_t i = 0; i < rows.size(); i += step) {
    const Json& row = rows.at(i);
    const Json* const alone = subject.changed(
        {fmt::format("collective.op={}", row.at("op").get<std::string>()),
         fmt::format("collective.sizes=[\"{:.0f} B\"]", row.at("size_bytes").get<double>())});
    if (alone == nullptr) continue;
    book.same_text(row_name(row), write_json(alone->at("rows").at(0)), write_json(row));
  }
}

/// Where NCCL takes the same algorithm and protocol with as many channels.
void hold_sizes(DocumentSubject& subject, LawBook& book) {
  if (!is_collective(subject, book)) return;
  const Json& rows = subject.answer().at("rows");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    for (std::size_t j = 0; j < rows.size(); ++j) {
      const Json &less = rows.at(i), &more = rows.at(j);
      if (less.at("size_bytes").get<double>() >= more.at("size_bytes").get<double>()) continue;
      const bool alike = std::ranges::all_of(
          std::initializer_list<const char*>{"op", "algorithm", "protocol", "channels"},
          [&](const char* of) { return less.at(of) == more.at(of); });
      if (!alike) continue;
      book.at_most(row_name(less), less.at("time_s").get<double>(), more.at("time_s").get<double>(),
                   kPrinted);
    }
  }
  if (book.comparisons() == 0) book.does_not_apply("no two sizes are sent alike");
}

}  // namespace

std::vector<DocumentLaw> collective_laws() {
  using enum LawFamily;
  return {
      {"rows", conservation, "Times, bandwidths and bytes of each row fit each other.", hold_rows},
      {"rows_alone", exactness, "A size asked alone has the row that it has among others.",
       hold_rows_alone},
      {"sizes", monotony, "More bytes, sent alike, take no less time.", hold_sizes},
      {"port_bound", closed_form, "NICs of an NVLink domain carry no more than they can.",
       hold_port_bound},
  };
}

}  // namespace lockstep
