// What went wrong, in a form that a program can branch on and a person can act on. Some of the
// reasons are Kubernetes' own (the `reason` of a Status), the others are ours.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace grapnel {

enum class Reason {
  // Kubernetes' own.
  kBadRequest,
  kUnauthorized,
  kForbidden,
  kNotFound,
  kMethodNotAllowed,
  kNotAcceptable,
  kAlreadyExists,
  kConflict,
  kGone,
  kExpired,
  kRequestEntityTooLarge,
  kUnsupportedMediaType,
  kInvalid,
  kTooManyRequests,
  kInternalError,
  kServiceUnavailable,
  kTimeout,
  kServerTimeout,
  kUnknown,
  // Ours.
  kTransport,  // no whole answer came: refused, reset, cut short, TLS, names
  kDecode,     // an answer or a file is not what its format asks for
  kUsage,      // the person or the caller asked for something that cannot be
  kCancelled,  // we stopped it ourselves
  kSystem,     // the operating system said no
};

// The name Kubernetes uses ("NotFound"), or ours ("Transport").
std::string_view to_string(Reason reason);
Reason reason_from_string(std::string_view name);

// One field at fault, as in Status.details.causes.
struct Cause {
  std::string field;    // spec.replicatedJobs[0].name
  std::string message;  // Invalid value: "X": must be lower case
  std::string reason;   // FieldValueInvalid, FieldValueRequired …
  // For a person: what was found, and what is allowed.
  std::string found;
  std::string allowed;
  bool operator==(const Cause&) const = default;
};

struct Error {
  Reason reason = Reason::kUnknown;
  std::string message;
  int code = 0;  // the HTTP code, where there was one
  std::vector<Cause> causes;
  std::optional<Duration> retry_after;
  // The request may have taken effect: read again before repeating it.
  bool ambiguous = false;

  bool is(Reason r) const { return reason == r; }
  // The same request can succeed later with nothing else changed.
  bool is_transient() const;
};

}  // namespace grapnel
