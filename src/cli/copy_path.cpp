#include "cli/copy_path.h"

namespace grapnel::cli {

CopyPath parse_copy_path(std::string_view text) {
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || text.find('/') < colon) {
    return {.experiment = "", .path = std::string(text)};
  }
  return {.experiment = std::string(text.substr(0, colon)),
          .path = std::string(text.substr(colon + 1))};
}

Result<CopyRoute> parse_copy_route(std::string_view from, std::string_view to) {
  CopyRoute route{parse_copy_path(from), parse_copy_path(to)};
  if (route.from.experiment.empty() == route.to.experiment.empty()) {
    return fail(Reason::kUsage,
                "one of the two is NAME:PATH, the other a path of this machine "
                "(a path with a colon in it begins with ./)");
  }
  for (const auto* side : {&route.from, &route.to}) {
    if (side->path.empty()) {
      return fail(Reason::kUsage, "'{}:' names no path", side->experiment);
    }
  }
  return route;
}

std::string base_name(std::string_view path) {
  while (path.ends_with('/')) path.remove_suffix(1);
  const auto slash = path.rfind('/');
  const auto name = slash == std::string_view::npos ? path : path.substr(slash + 1);
  return name == "." || name == ".." ? "" : std::string(name);
}

}  // namespace grapnel::cli
