/// Jobs that a scenario lists one by one, and what jobs wait for that refers to other jobs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/scenario/declared_members.hpp"
#include "sim/scenario/queue_spec.hpp"
#include "sim/scenario/read_elastic.hpp"

namespace lockstep {

/// A component of a heterogeneous job, as a scenario lists it.
struct ListedPart {
  int gpus = 1;
  std::string partition;
};

/// A job, or an array of jobs, as a scenario lists it.
struct ListedJob {
  std::string name, user, account, partition, qos, reservation, dependency, licenses;
  Seconds submit{}, runs{}, limit{}, begin{};
  int gpus = 1, priority = 0, tasks = 0, at_once = 0;
  std::vector<ListedWidth> widths;     ///< empty: one
  std::vector<ListedPart> components;  ///< of a heterogeneous job; empty: it is none
  bool held = false, fails = false;
};
void declare_listed_job(const DeclaredMembers& member, ListedJob& out);
/// A listed job without what tells several jobs apart: a name, tasks.
void declare_unnamed_job(const DeclaredMembers& member, ListedJob& out);

/// Makes the job one of these components, at least two. Where they are of several partitions it is
/// in one of all their nodes, with the tier, priority and limits of the first one's.
void set_shape(const JobShape& shape, QueueJob& job, QueueSpec& out);

/// Adds the job, or its tasks. Throws InputError for a partition and such that the scenario lacks.
void add_listed_job(const JsonCursor& at, const ListedJob& written, QueueSpec& out);

/// A job or a task of it, with its terms but for the array. Throws the same.
struct ReadJob {
  QueueJob job;
  JobTerms terms;
};
ReadJob read_listed_job(const JsonCursor& at, const ListedJob& written, QueueSpec& out);

/// The terms of the job that is added next, where it has any.
JobTerms& new_terms(QueueSpec& out);

/// The number of an array of that name, which is added where it is new.
std::int32_t array_number(const std::string& name, QueueSpec& out);

/// Reads what JobTerms::written say of other jobs, when all jobs stand in the order of their
/// submission: "afterok:a:b,afternotok:c" (all of them), "afterany:a?afterany:b" (one is enough),
/// "after:a+5" (minutes from its start on), "aftercorr:x" (the same task of an array), "singleton"
/// (earlier jobs of the user and of the name have ended). Throws InputError for jobs that are not
/// there, or not earlier.
void resolve_dependencies(QueueSpec& out);

}  // namespace lockstep
