// All our kinds.
#pragma once

#include <span>

#include "controllers/our_kind.h"

namespace grapnel::controllers {

std::span<const OurKind* const> our_kinds();

// nullptr: it is not ours.
const OurKind* find_kind(std::string_view kind);
const OurKind* find_controller(std::string_view controller);

// The names of all controllers: "experiment, jobset".
std::string controller_names(std::string_view separator);

}  // namespace grapnel::controllers
