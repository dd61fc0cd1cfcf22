#include "sim/scenario/queue_order_extension.hpp"

#include <cassert>
#include <cmath>
#include <deque>
#include <exception>
#include <utility>

#include "models/base/input_error.hpp"

namespace lockstep {
namespace {

std::deque<QueueOrderExtension>& added_orders() {
  static std::deque<QueueOrderExtension> orders;
  return orders;
}

std::size_t place_among_added(QueueOrder order) {
  return static_cast<std::size_t>(order) - kQueueOrderNames.size();
}

InputError order_error(const QueueSpec& spec, const std::string& what, std::size_t job) {
  return InputError({.file = spec.file,
                     .pointer = "/queue/order",
                     .found = extension_text("order", name_of(spec.order)) + ", " + what +
                              " of job " + spec.job_name(job),
                     .allowed = "a finite key for every job",
                     .nearest = {}});
}

/// Whatever the extension throws is a mistake of the extension.
double key_of(const QueueOrderExtension& order, const QueueSpec& spec, const SubmittedJob& job) {
  double key = 0;
  try {
    key = order.key(job);
  } catch (const std::exception& error) {
    throw order_error(spec, error.what(), job.number);
  }
  if (std::isfinite(key)) return key;
  throw order_error(spec, "the key " + std::to_string(key), job.number);
}

}  // namespace

QueueOrder add_queue_order(QueueOrderExtension order, int interface) {
  std::deque<QueueOrderExtension>& orders = added_orders();
  check_extension("order", order.name, interface, queue_order_names(), orders.size());
  if (!order.key) {
    throw ExtensionError("order \"" + order.name +
                         "\": found no key; allowed: a function that gives a job's");
  }
  orders.push_back(std::move(order));
  return static_cast<QueueOrder>(kQueueOrderNames.size() + orders.size() - 1);
}

bool is_extension(QueueOrder order) {
  return static_cast<std::size_t>(order) >= kQueueOrderNames.size();
}

const QueueOrderExtension& extension_of(QueueOrder order) {
  assert(is_extension(order) && place_among_added(order) < added_orders().size());
  return added_orders()[place_among_added(order)];
}

std::vector<std::string_view> queue_order_names() {
  std::vector<std::string_view> names(kQueueOrderNames.begin(), kQueueOrderNames.end());
  for (const QueueOrderExtension& order : added_orders()) names.push_back(order.name);
  return names;
}

std::string_view name_of(QueueOrder order) {
  if (is_extension(order)) return extension_of(order).name;
  return kQueueOrderNames[static_cast<std::size_t>(order)];
}

std::vector<double> added_keys(const QueueSpec& spec) {
  const QueueOrderExtension& order = extension_of(spec.order);
  std::vector<double> out;
  out.reserve(spec.jobs.size());
  for (const QueueJob& job : spec.jobs) {
    const std::size_t number = out.size();
    out.push_back(key_of(order, spec,
                         {.number = number,
                          .submit = to_seconds(job.submit),
                          .runs = order.knows_duration ? to_seconds(job.runs) : Seconds{},
                          .limit = to_seconds(job.limit),
                          .gpus = job.gpus,
                          .priority = job.priority,
                          .user = spec.users[job.user],
                          .account = spec.accounts[job.account],
                          .model = spec.models[job.model]}));
  }
  return out;
}

}  // namespace lockstep
