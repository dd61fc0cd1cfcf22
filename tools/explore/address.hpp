/// What a page asks for, out of its address: "/TOKEN/answer?model=llama3_8b&batch.micro=2".
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockstep {

/// The path of an address, with "%41" as "A". What is no such sign stays as it is.
std::string decoded_path(std::string_view address);

/// The pairs behind its question mark, decoded, in their order; "+" is a blank there. One without a
/// name is left out.
std::vector<std::pair<std::string, std::string>> decoded_query(std::string_view query);

}  // namespace lockstep
