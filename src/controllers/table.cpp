#include "controllers/table.h"

#include <algorithm>
#include <array>

#include "controllers/kinds.h"

namespace grapnel::controllers {

std::span<const OurKind* const> our_kinds() {
  static const std::array kinds{jobset_kind(), experiment_kind()};
  static const auto pointers = [] {
    std::array<const OurKind*, kinds.size()> out{};
    std::ranges::transform(kinds, out.begin(), [](const OurKind& kind) { return &kind; });
    return out;
  }();
  return pointers;
}

const OurKind* find_kind(std::string_view kind) {
  const auto found = std::ranges::find(our_kinds(), kind,
                                       [](const OurKind* each) { return each->type.kind.kind; });
  return found == our_kinds().end() ? nullptr : *found;
}

const OurKind* find_controller(std::string_view controller) {
  const auto found = std::ranges::find(our_kinds(), controller, &OurKind::controller);
  return found == our_kinds().end() ? nullptr : *found;
}

std::string controller_names(std::string_view separator) {
  std::string names;
  for (const OurKind* kind : our_kinds()) {
    if (!names.empty()) names += separator;
    names += kind->controller;
  }
  return names;
}

}  // namespace grapnel::controllers
