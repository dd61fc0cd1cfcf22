// Threads of a program that has one.
#pragma once
#include <version>
#undef _LIBCPP_ABI_USE_WRAP_ITER_IN_STD_ARRAY
#undef _LIBCPP_ABI_USE_WRAP_ITER_IN_STD_STRING_VIEW
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <mutex>
#include <string>
namespace std {
// Of numbers with a fraction libc++ has none before 20.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  if (first == last || (*first != '-' && *first != '.' && (*first < '0' || *first > '9')))
    return {first, errc::invalid_argument};
  const string text(first, last);
  if (text.size() > 1 && (text[1] == 'x' || text[1] == 'X')) {
    value = 0;
    return {first + 1, errc{}};
  }
  char* end = nullptr;
  errno = 0;
  const double read = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* const at = first + (end - text.c_str());
  if (errno == ERANGE) return {at, errc::result_out_of_range};
  value = read;
  return {at, errc{}};
}
inline from_chars_result from_chars(const char* first, const char* last, double& value,
                                    chars_format format) {
  // Without an exponent a number ends where one would begin.
  const char* end = last;
  if (format == chars_format::fixed) {
    for (end = first; end != last && *end != 'e' && *end != 'E';) ++end;
  }
  return from_chars(first, end, value);
}
struct mutex {
  void lock() {}
  void unlock() {}
  bool try_lock() { return true; }
};
struct recursive_mutex : mutex {};
template <class... M>
struct scoped_lock {
  explicit scoped_lock(M&...) {}
  scoped_lock(const scoped_lock&) = delete;
};
template <class M>
struct unique_lock {
  explicit unique_lock(M&) {}
  void lock() {}
  void unlock() {}
};
template <class... M>
scoped_lock(M&...) -> scoped_lock<M...>;
}  // namespace std
