/// What the library asks of a Python function: under Python's lock, with mistakes that have a line.
#pragma once

#include <cstddef>
#include <exception>
#include <pybind11/pybind11.h>
#include <stdexcept>
#include <string>
#include <utility>

namespace lockstep {

/// "KeyError: 'wide' (orders.py, line 7)". Requires Python's lock.
std::string line_of(const pybind11::error_already_set& error);

/// "found 'now'; allowed: a number", with the beginning of what is long. Requires Python's lock.
std::string found_instead(const pybind11::object& value, const std::string& allowed);

/// Keeps what is no Exception for whoever asked Lockstep. Requires Python's lock.
void keep_if_end(const pybind11::error_already_set& error);
/// Throws what was kept, once. Requires Python's lock.
void raise_kept();

/// What `ask` gives, under Python's lock; what it throws has a text that needs no lock to be read.
/// What is no mistake but the end, KeyboardInterrupt and SystemExit, is kept for raise_kept().
template <class Ask>
auto in_python(Ask&& ask) {
  const pybind11::gil_scoped_acquire held;
  try {
    return ask();
  } catch (const pybind11::error_already_set& error) {
    keep_if_end(error);
    throw std::runtime_error(line_of(error));
  } catch (const std::exception& error) {
    throw std::runtime_error(error.what());
  }
}

/// The value as this type. Throws std::runtime_error that says what is there and what may be.
template <class Type>
Type given(const pybind11::object& value, const std::string& allowed) {
  try {
    return value.cast<Type>();
  } catch (const pybind11::cast_error&) {
    throw std::runtime_error(found_instead(value, allowed));
  }
}

/// Kept for ever: Python may end before the library's tables.
pybind11::function* kept(const pybind11::function& function);

}  // namespace lockstep
