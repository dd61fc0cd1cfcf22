# Sourced by the tests of this folder: compares two results databases, all columns of all rows.
contents() {
  sqlite3 "$1" "SELECT * FROM manifest ORDER BY key; SELECT * FROM points ORDER BY point"
}
same_results() {
  [ "$(contents "$1" | wc -l)" -gt 100 ] || { echo "$1 is nearly empty" >&2; return 1; }
  cmp <(contents "$1") <(contents "$2")
}
