/// A certificate for people.
#pragma once

#include <string>

#include "sim/laws/check_random.hpp"
#include "tools/console/table.hpp"

namespace lockstep {

/// The verdict in a line, each law with how closely it held, what broke and how, anomalies, and
/// laws that do not apply with the reason.
std::string certificate_table(const Certificate& certificate, const TextStyle& style);

/// The same of random scenarios: how often each law held; what broke one, shrunk, and how.
std::string random_table(const RandomCertificate& certificate, const TextStyle& style);

}  // namespace lockstep
