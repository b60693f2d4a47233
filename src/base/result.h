// Result<T>: a value or an Error. Exceptions do not cross a module; this does.
#pragma once

#include <fmt/format.h>

#include <tl/expected.hpp>
#include <utility>

#include "base/error.h"

namespace grapnel {

template <class T = void>
using Result = tl::expected<T, Error>;

using Failure = tl::unexpected<Error>;

// return fail(Reason::kDecode, "line {}: expected a string", line);
template <class... Args>
[[nodiscard]] Failure fail(Reason reason, fmt::format_string<Args...> text, Args&&... args) {
  return Failure(
      Error{.reason = reason, .message = fmt::format(text, std::forward<Args>(args)...)});
}

[[nodiscard]] inline Failure fail(Error error) {
  return Failure(std::move(error));
}

// The same error with words before it that say where we were: "reading ~/.kube/config: no such
// file".
[[nodiscard]] inline Failure fail_in(std::string_view where, Error error) {
  error.message = fmt::format("{}: {}", where, error.message);
  return Failure(std::move(error));
}

}  // namespace grapnel
