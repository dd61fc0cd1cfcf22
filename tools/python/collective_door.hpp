/// Algorithms of collectives that are Python functions.
#pragma once

#include <pybind11/pybind11.h>
#include <string>

namespace lockstep {

/// Adds the algorithm. `law` gets a dictionary of the call and answers its candidates, a dictionary
/// each; None where the call is none of its own, or a text that says why it cannot run there.
/// `shape` (or None: the links of a ring) gets the group and answers edges between its members.
/// Each is asked once for each call, and its answer is kept. One of the same name that was added
/// here is replaced. Throws ExtensionError as add_collective() does.
void add_python_collective(const std::string& name, const pybind11::function& law,
                           const pybind11::object& shape, const std::string& summary,
                           const std::string& source);

/// Whether there was one: it is weighed no more.
bool remove_python_collective(const std::string& name);

}  // namespace lockstep
