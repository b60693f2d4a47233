#include "controllers/our_kind.h"

namespace grapnel::controllers {

Causes causes_of(const Error& error) {
  if (!error.causes.empty()) return error.causes;
  return {{.field = "metadata", .message = error.message}};  // all else has its causes
}

}  // namespace grapnel::controllers
