#pragma once

#include "controllers/our_kind.h"

namespace example {

grapnel::controllers::OurKind greeting_kind();

}  // namespace example
