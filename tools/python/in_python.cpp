#include "tools/python/in_python.hpp"

namespace lockstep {

namespace py = pybind11;

namespace {

/// Guarded by Python's lock, which whoever kept it may have had on a thread of the library.
py::object& kept_end() {
  static auto* const end = new py::object;
  return *end;
}

}  // namespace

std::string line_of(const py::error_already_set& error) {
  std::string line = py::str(error.type().attr("__name__"));
  const std::string said = py::str(error.value());
  if (!said.empty()) line += ": " + said;
  py::object place = error.trace();
  if (!place || place.is_none()) return line;
  while (!place.attr("tb_next").is_none()) place = place.attr("tb_next");
  const std::string file = py::str(place.attr("tb_frame").attr("f_code").attr("co_filename"));
  return line + " (" + file + ", line " + std::string(py::str(place.attr("tb_lineno"))) + ")";
}

std::string found_instead(const py::object& value, const std::string& allowed) {
  constexpr std::size_t kMostShown = 80;
  std::string shown = py::repr(value);
  if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown) + " ...";
  return "found " + shown + "; allowed: " + allowed;
}

void keep_if_end(const py::error_already_set& error) {
  if (!error.matches(PyExc_Exception)) kept_end() = error.value();
}

void raise_kept() {
  py::object end = std::exchange(kept_end(), py::object());
  if (!end) return;
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(end.ptr())), end.ptr());
  throw py::error_already_set();
}

py::function* kept(const py::function& function) {
  return new py::function(function);  // NOLINT(cppcoreguidelines-owning-memory)
}

}  // namespace lockstep
