/// Which job was on which GPUs, and when, as a picture.
#pragma once

#include "sim/answer/queue_answer.hpp"

namespace lockstep {

class Page;

/// A row for each node, a line in it for each of its GPUs, a rectangle for each span. Nothing where
/// no spans were kept; where nodes or spans are too many to be told apart, a sentence says so.
void add_queue_gantt(Page& page, const QueueAnswer& answer);

}  // namespace lockstep
