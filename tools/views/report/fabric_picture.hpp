/// A fabric as a picture: switches layer by layer, the cables between them coloured by use.
#pragma once

#include "sim/fabric/fabric_use.hpp"

namespace lockstep {

class Page;

/// Adds one section: the picture, and a table with the figures; a sentence in place of both where
/// nothing moved and nothing is broken. Requires boxes.
void add_fabric_picture(Page& page, const FabricUse& use);

}  // namespace lockstep
