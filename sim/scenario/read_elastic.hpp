/// Elastic jobs of a scenario: "elastic" of a queue, "widths" of a job.
#pragma once

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"

namespace lockstep {

/// A width as a scenario lists it.
struct ListedWidth {
  int gpus = 1;
  double speed = 1;
};

void declare_elastic(const DeclaredMembers& member, QueueElastic& out);
void declare_widths(const DeclaredMembers& member, std::vector<ListedWidth>& out);

/// Of drawn jobs: by the width that each asks for.
void declare_drawn_widths(const DeclaredMembers& member, std::vector<DrawnWidth>& out);
/// Of a training: so many whole nodes.
void declare_training_widths(const DeclaredMembers& member, std::vector<int>& nodes);

/// The number of the table of a drawn job, of those of its widths that are whole and fit on the
/// cluster; 0 where none but its own does.
std::uint16_t drawn_width_table(const std::vector<DrawnWidth>& drawn, int gpus, QueueSpec& out);

/// The number of the table that the job has. Throws InputError for widths that do not rise, or of
/// which none is the job's own.
std::uint16_t width_table(const JsonCursor& list, const std::vector<ListedWidth>& written, int gpus,
                          QueueSpec& out);

/// What elastic jobs ask of the other rules. Throws InputError.
void check_elastic(const JsonCursor& queue, const QueueSpec& spec);

}  // namespace lockstep
