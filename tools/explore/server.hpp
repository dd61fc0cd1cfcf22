/// The sockets of `lockstep explore`: this machine's own address, one request a connection.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "tools/explore/door.hpp"

namespace lockstep {

/// How long a connection may last.
struct ServerPatience {
  std::chrono::milliseconds head{2000};    ///< until the head of a request is there
  std::chrono::milliseconds reply{30000};  ///< until the reply is taken
  std::chrono::milliseconds after{1000};   ///< with what still comes behind the reply
};

class ExploreServer {
 public:
  /// Takes the port of 127.0.0.1; 0: any that is free. Throws UsageError where it is taken. From
  /// then on connections are kept, which `run` takes.
  explicit ExploreServer(int port, ServerPatience patience = {});
  ~ExploreServer();
  ExploreServer(const ExploreServer&) = delete;
  ExploreServer& operator=(const ExploreServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  /// Answers until `stopped` says so; it is asked ten times a second.
  void run(const Door& door, const std::function<bool()>& stopped);

 private:
  struct Sockets;
  std::unique_ptr<Sockets> sockets_;
  int port_ = 0;
};

}  // namespace lockstep
