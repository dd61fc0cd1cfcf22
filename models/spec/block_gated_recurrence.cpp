// Real-gated linear recurrent units (De et al. 2024, Griffin, arXiv:2402.19427, section 2.4): one
// product makes a branch that is convolved over a few tokens and goes through a recurrence, and one
// that gates its result.
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "models/spec/hugging_face_parts.hpp"

namespace lockstep {
namespace {

constexpr ProductNames kRecurrenceIn{"recurrence_in", "recurrence_in.input_gradient",
                                     "recurrence_in.weight_gradient"};
constexpr ProductNames kRecurrenceGates{"recurrence_gates", "recurrence_gates.input_gradient",
                                        "recurrence_gates.weight_gradient"};
constexpr ProductNames kRecurrenceOut{"recurrence_out", "recurrence_out.input_gradient",
                                      "recurrence_out.weight_gradient"};

constexpr Mixer kGatedRecurrence{11};  // behind those that have names
constexpr auto kRecurrencePlace = static_cast<std::size_t>(kGatedRecurrence);
constexpr int kUsualTaps = 4;
constexpr std::array kRecurrenceMembers{
    MixerMember{
        .key = "width",
        .required = true,
        .low = 1,
        .high = kMostMixerColumns,
        .sentence = "Columns, each with a state of one number",
        .number = [](TransformerShape& m) -> int& { return m.mixers[kRecurrencePlace][0]; }},
    MixerMember{
        .key = "blocks",
        .required = true,
        .low = 1,
        .high = kMostMixerHeads,
        .sentence = "Blocks of columns whose gates are made from each other, a divisor of width",
        .number = [](TransformerShape& m) -> int& { return m.mixers[kRecurrencePlace][1]; }},
    MixerMember{
        .key = "kernel",
        .low = 1,
        .high = 64,
        .sentence = "Tokens that the convolution sees; default: 4",
        .number = [](TransformerShape& m) -> int& { return m.mixers[kRecurrencePlace][2]; }},
};

std::optional<MixerFault> recurrence_fault(const TransformerShape& m) {
  const MixerNumbers& n = m.numbers(kGatedRecurrence);
  if (n[0] % n[1] == 0) return std::nullopt;
  return MixerFault{"blocks", "a divisor of " + std::to_string(n[0]) + " (width)"};
}

/// Of one token and column: of equations 3 and 4 seven operations but for exponents; the branch,
/// both gates and the result go through memory in 16 bit, states stay on the chip.
Scan recurrence_scan(double width) {
  constexpr double kOperations = 7, kColumns = 4, kHalfWord = 2;
  return {.flops = kOperations * width, .bytes = kColumns * kHalfWord * width};
}

void add_gated_recurrence(const TransformerShape& m, const KindShape&, Layer& out) {
  constexpr double kBranches = 2, kGates = 2, kHalfWord = 2;
  const MixerNumbers& n = m.numbers(kGatedRecurrence);
  const double h = m.hidden, width = n[0], blocks = n[1];
  const double taps = n[2] > 0 ? n[2] : kUsualTaps;
  out.rows.emplace_back(Product{.names = kRecurrenceIn,
                                .in = {.whole = h},
                                .out = {.shared = kBranches * width},
                                .in_pieces = true,
                                .adapter = AdapterModule::qkv});
  out.rows.emplace_back(Kernel{.name = "convolution",
                               .columns = {.shared = width},
                               .bytes = 2 * kHalfWord,
                               .backward = 1.5});
  // A square for each gate and block.
  out.rows.emplace_back(Product{.names = kRecurrenceGates,
                                .in = {.whole = width / blocks},
                                .out = {.whole = width / blocks},
                                .matrices = kGates * blocks});
  out.rows.emplace_back(recurrence_scan(width));
  out.rows.emplace_back(Kernel{.name = "recurrence_gate",
                               .columns = {.shared = width},
                               .bytes = 3 * kHalfWord,
                               .backward = 5.0 / 3});
  out.rows.emplace_back(Product{.names = kRecurrenceOut,
                                .in = {.shared = width},
                                .out = {.whole = h},
                                .in_pieces = true,
                                .adapter = AdapterModule::projection});
  out.rows.emplace_back(PairExchange{kRecurrenceIn, kRecurrenceOut});
  // Convolution, biases of the gates and the decay of each column.
  out.small += width * (taps + 1 + kGates + 1) + (m.biases ? kBranches * width + h : 0);
  // Both branches, the convolved one, its gates, what the recurrence gives, and the operand of the
  // product out.
  out.saved.push_back({.columns = (kBranches + 1 + kGates + 1) * width});
  out.saved.push_back(
      {.columns = width, .keep = Keep::operand, .product = AdapterModule::projection});
  out.cache.state = width;
}

std::vector<SharedParts> recurrence_parts(const TransformerShape& m, const KindShape&) {
  return {{m.numbers(kGatedRecurrence)[1], "blocks of gated recurrences"}};
}

}  // namespace

extern const MixerKind kGatedRecurrenceMixer;
constinit const MixerKind kGatedRecurrenceMixer{
    .mixer = kGatedRecurrence,
    .name = "gated_recurrence",
    .add = add_gated_recurrence,
    .operations = "recurrence_* convolution",
    .sentence = "Real-gated linear recurrent units (Griffin, RecurrentGemma)",
    .members = kRecurrenceMembers,
    .known = [](const TransformerShape& m) { return m.numbers(kGatedRecurrence)[0] > 0; },
    .fault = recurrence_fault,
    .whole_sequence = "gated recurrences pass their state along the sequence",
    .shared = recurrence_parts,
    .columns = [](const TransformerShape& m) { return 2.0 * m.numbers(kGatedRecurrence)[0]; },
    .model_families = "recurrent_gemma",
    .read_model = hugging_face::read_recurrent_gemma};

}  // namespace lockstep
