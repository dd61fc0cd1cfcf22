/// A value as SQLite keeps it: what stands in one column of one point of a sweep.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include <nlohmann/json_fwd.hpp>

namespace SQLite {  // NOLINT(readability-identifier-naming): theirs
class Column;
class Statement;
}  // namespace SQLite

namespace lockstep {

using SqlValue = std::variant<std::monostate, std::int64_t, double, std::string>;

/// A number or string as it is, true and false as 1 and 0, what has parts as its JSON text.
SqlValue sql_value(const nlohmann::ordered_json& json);
/// The way back; what was an object or array stays text.
nlohmann::ordered_json json_of(const SqlValue& value);
/// As CSV and tables print it; nothing for no value.
std::string text_of(const SqlValue& value);

/// Parameter `index`, counted from 1, of a statement.
void bind_value(SQLite::Statement& statement, int index, const SqlValue& value);
SqlValue value_of(const SQLite::Column& column);

/// A name in double quotes, as SQL has it.
std::string quoted_name(const std::string& name);

}  // namespace lockstep
