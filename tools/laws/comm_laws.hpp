/// Laws on what `lockstep comm` answers: traffic over a fabric, and collectives.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "sim/laws/law.hpp"
#include "sim/scenario/preset_store.hpp"
#include "sim/scenario/read_cluster.hpp"
#include "tools/laws/document_subject.hpp"

namespace lockstep {

using DocumentLaw = LawOf<DocumentSubject>;

/// What `lockstep comm --format json` says, without its version and, where routes are hashed,
/// "hashing". Throws InputError.
nlohmann::ordered_json comm_answer(const std::string& file, const std::string& text,
                                   const PresetStore& presets);

/// All laws on "traffic" and on "collective"; those of one say themselves that they do not apply to
/// the other. `presets`: the folders that --presets gave.
std::vector<DocumentLaw> comm_laws(const std::vector<std::string>& presets);

/// Of a simulation of traffic, looked at from inside: links and messages.
std::vector<DocumentLaw> traffic_laws();
/// Of the rows of a collective.
std::vector<DocumentLaw> collective_laws();

/// The machine of its document.
Cluster checked_cluster(const DocumentSubject& subject);
/// Whether the subject has "traffic"; says in the book that a law does not apply where not.
bool is_traffic(const DocumentSubject& subject, LawBook& book);

}  // namespace lockstep
