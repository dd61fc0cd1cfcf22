#include "sim/search/sweep/expressions.hpp"

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <algorithm>
#include <array>
#include <cassert>
#include <fmt/format.h>
#include <sqlite3.h>
#include <string_view>

#include "models/base/input_error.hpp"
#include "sim/search/sweep/sql_value.hpp"

namespace lockstep {
namespace {

/// What formulas may call: functions of their arguments alone.
constexpr std::array<std::string_view, 25> kFunctions{
    "abs",   "ceil", "ceiling", "coalesce", "exp",   "floor", "glob",  "ifnull", "iif",
    "instr", "like", "ln",      "log",      "log10", "log2",  "lower", "max",    "min",
    "mod",   "pow",  "power",   "round",    "sqrt",  "trunc", "upper"};

/// SQLite asks it about everything that a statement would do while it compiles it.
int allow(void*, int action, const char*, const char* name, const char*, const char*) {
  if (action == SQLITE_SELECT || action == SQLITE_READ) return SQLITE_OK;
  const bool known =
      action == SQLITE_FUNCTION && std::ranges::find(kFunctions, name) != kFunctions.end();
  return known ? SQLITE_OK : SQLITE_DENY;
}

/// "SELECT (TEXT) FROM (SELECT ?1 AS "a", ?2 AS "b")".
std::string query_of(const std::string& text, std::span<const std::string> names) {
  std::string query = "SELECT (" + text + ") FROM (SELECT ?1 AS " + quoted_name(names.front());
  for (std::size_t i = 1; i < names.size(); ++i) {
    query += ", ?" + std::to_string(i + 1) + " AS " + quoted_name(names[i]);
  }
  return query + ")";
}

}  // namespace

struct Evaluator::State {
  SQLite::Database database{":memory:", SQLite::OPEN_READWRITE};
  struct Formula {
    SQLite::Statement statement;
    std::size_t names;
    std::string file;
    Expression expression;
  };
  std::vector<Formula> formulas;
};

Evaluator::Evaluator() : state_(std::make_unique<State>()) {
  sqlite3* handle = state_->database.getHandle();
  // A name that is unknown is an error, not a string.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_set_authorizer(handle, allow, nullptr);
}
Evaluator::~Evaluator() = default;

std::size_t Evaluator::add(const std::string& file, const Expression& expression,
                           std::span<const std::string> names) {
  assert(!names.empty());
  const auto refuse = [&](const std::string& reason) {
    const std::vector<std::string> known(names.begin(), names.end());
    throw InputError({.file = file,
                      .pointer = expression.pointer,
                      .found = in_quotes(expression.text) + " (" + reason + ")",
                      .allowed = "a formula as SQLite takes it, over " + listed(known),
                      .nearest = {}});
  };
  if (expression.text.find(';') != std::string::npos) refuse("it has a ;");
  try {
    state_->formulas.push_back(
        {SQLite::Statement(state_->database, query_of(expression.text, names)), names.size(), file,
         expression});
  } catch (const SQLite::Exception& error) {
    refuse(error.what());
  }
  return state_->formulas.size() - 1;
}

SqlValue Evaluator::evaluate(std::size_t number, std::span<const SqlValue> values) {
  State::Formula& formula = state_->formulas[number];
  assert(values.size() >= formula.names);
  formula.statement.reset();
  for (std::size_t i = 0; i < formula.names; ++i) {
    bind_value(formula.statement, static_cast<int>(i + 1), values[i]);
  }
  try {
    formula.statement.executeStep();
    return value_of(formula.statement.getColumn(0));
  } catch (const SQLite::Exception& error) {
    throw InputError(
        {.file = formula.file,
         .pointer = formula.expression.pointer,
         .found = fmt::format("{} ({})", in_quotes(formula.expression.text), error.what()),
         .allowed = "a formula that has a value for every point",
         .nearest = {}});
  }
}

bool is_true(const SqlValue& value) {
  if (const auto* whole = std::get_if<std::int64_t>(&value)) return *whole != 0;
  if (const auto* number = std::get_if<double>(&value)) return *number != 0;
  return false;
}

}  // namespace lockstep
