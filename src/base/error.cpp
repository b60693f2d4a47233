#include "base/error.h"

#include <array>
#include <utility>

namespace grapnel {
namespace {

constexpr auto kNames = std::to_array<std::pair<Reason, std::string_view>>({
    {Reason::kBadRequest, "BadRequest"},
    {Reason::kUnauthorized, "Unauthorized"},
    {Reason::kForbidden, "Forbidden"},
    {Reason::kNotFound, "NotFound"},
    {Reason::kMethodNotAllowed, "MethodNotAllowed"},
    {Reason::kNotAcceptable, "NotAcceptable"},
    {Reason::kAlreadyExists, "AlreadyExists"},
    {Reason::kConflict, "Conflict"},
    {Reason::kGone, "Gone"},
    {Reason::kExpired, "Expired"},
    {Reason::kRequestEntityTooLarge, "RequestEntityTooLarge"},
    {Reason::kUnsupportedMediaType, "UnsupportedMediaType"},
    {Reason::kInvalid, "Invalid"},
    {Reason::kTooManyRequests, "TooManyRequests"},
    {Reason::kInternalError, "InternalError"},
    {Reason::kServiceUnavailable, "ServiceUnavailable"},
    {Reason::kTimeout, "Timeout"},
    {Reason::kServerTimeout, "ServerTimeout"},
    {Reason::kUnknown, ""},
    {Reason::kTransport, "Transport"},
    {Reason::kDecode, "Decode"},
    {Reason::kUsage, "Usage"},
    {Reason::kCancelled, "Cancelled"},
    {Reason::kSystem, "System"},
});

}  // namespace

std::string_view to_string(Reason reason) {
  for (const auto& [value, name] : kNames) {
    if (value == reason) return name;
  }
  return "";
}

Reason reason_from_string(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return Reason::kUnknown;
}

bool Error::is_transient() const {
  switch (reason) {
    case Reason::kTooManyRequests:
    case Reason::kInternalError:
    case Reason::kServiceUnavailable:
    case Reason::kTimeout:
    case Reason::kServerTimeout:
    case Reason::kTransport:
      return true;
    default:
      return false;
  }
}

}  // namespace grapnel
