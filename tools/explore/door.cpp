#include "tools/explore/door.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <openssl/crypto.h>
#include <optional>
#include <stdexcept>
#include <unistd.h>

#include "tools/console/failure.hpp"
#include "tools/console/written.hpp"

namespace lockstep {
namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::size_t kTokenBytes = 16;

/// The values of a header.
std::vector<std::string> headers_of(const DoorRequest& request, std::string_view name) {
  std::vector<std::string> values;
  for (const auto& [key, value] : request.headers) {
    if (key == name) values.push_back(value);
  }
  return values;
}

/// The same time for any text of the token's length.
bool is_token(std::string_view text, std::string_view token) {
  return text.size() == token.size() && CRYPTO_memcmp(text.data(), token.data(), token.size()) == 0;
}

}  // namespace

std::string random_token() {
  std::array<unsigned char, kTokenBytes> bytes{};
  if (getentropy(bytes.data(), bytes.size()) != 0) {
    throw std::runtime_error("the system gives no random numbers");
  }
  std::string token;
  for (const unsigned char byte : bytes) token += fmt::format("{:02x}", byte);
  return token;
}

Door::Door(const Explorer& explorer, std::string page, std::string token, int port)
    : explorer_(&explorer),
      page_(std::move(page)),
      token_(std::move(token)),
      host_(fmt::format("127.0.0.1:{}", port)),
      local_host_(fmt::format("localhost:{}", port)) {}

int Door::refusal(const DoorRequest& request) const {
  constexpr int kBad = 400, kForbidden = 403, kNotThere = 404, kMethod = 405, kTooLarge = 413;
  if (request.method != "GET") return kMethod;
  // Another name for this machine is somebody else's page that was told our address.
  const std::vector<std::string> hosts = headers_of(request, "host");
  if (hosts.size() != 1) return kBad;
  if (hosts.front() != host_ && hosts.front() != local_host_) return kForbidden;
  for (const std::string& origin : headers_of(request, "origin")) {
    if (origin != "http://" + hosts.front()) return kForbidden;
  }
  for (const std::string& site : headers_of(request, "sec-fetch-site")) {
    if (site != "same-origin" && site != "none") return kForbidden;
  }
  for (const std::string& length : headers_of(request, "content-length")) {
    if (length != "0") return kTooLarge;
  }
  for (const std::string_view name : {"transfer-encoding", "range", "upgrade", "expect"}) {
    if (!headers_of(request, name).empty()) return kBad;
  }
  const std::string_view path = request.path;
  const bool ours = path.size() >= token_.size() + 2 && path.front() == '/' &&
                    is_token(path.substr(1, token_.size()), token_) &&
                    path[token_.size() + 1] == '/';
  return ours ? 0 : kNotThere;
}

DoorReply Door::answered(std::string_view what, const DoorRequest& request) const {
  std::optional<std::string> body = explorer_->asked(what, request.query);
  constexpr int kBad = 400, kNotThere = 404;
  if (!body) {
    const bool lacks_part = what == "explain" || what == "moved" || what == "positions";
    return {.status = lacks_part ? kBad : kNotThere};
  }
  DoorReply reply{.status = 200, .type = std::string(kJson), .body = *std::move(body)};
  if (what == kExploredFile) reply.saved_as = kExploredFile;
  return reply;
}

DoorReply Door::reply(const DoorRequest& request) const {
  constexpr int kUnprocessable = 422, kOurMistake = 500;
  if (const int status = refusal(request); status != 0) return {.status = status};
  const std::string_view what = std::string_view(request.path).substr(token_.size() + 2);
  if (what.empty()) return {.status = 200, .type = "text/html; charset=utf-8", .body = page_};
  try {
    return answered(what, request);
  } catch (const std::exception&) {
    const Failure failure = current_failure();
    const bool ours = failure.status == Exit::internal_error;
    return {.status = ours ? kOurMistake : kUnprocessable,
            .type = std::string(kJson),
            .body = JsonText(failure_json(failure)).str()};
  }
}

}  // namespace lockstep
