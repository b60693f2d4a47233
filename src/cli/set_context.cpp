#include "cli/set_context.h"

#include "document/json.h"
#include "kube/kubeconfig.h"

namespace grapnel::cli {
namespace {

constexpr std::string_view kKey = "current-context";

// The line that sets it, from its first letter to its end; npos: none.
std::pair<size_t, size_t> line_of_key(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const auto line = text.substr(begin, end - begin);
    if (line.starts_with(kKey) && line.substr(kKey.size()).starts_with(':')) return {begin, end};
    begin = end + 1;
  }
  return {std::string_view::npos, 0};
}

}  // namespace

Result<std::string> with_current_context(std::string_view text, std::string_view name) {
  // A JSON string is a YAML scalar, whatever the name has in it.
  const std::string line = fmt::format("{}: {}", kKey, to_text(Json(name)));
  std::string out(text);
  const auto [begin, end] = line_of_key(text);
  if (begin != std::string_view::npos) {
    out.replace(begin, end - begin, line);
  } else if (text.starts_with('{')) {
    auto document = parse_json(text);
    if (!document || !document->is_object()) {
      return fail(Reason::kDecode, "neither YAML of the usual form nor JSON");
    }
    document->as_object()[kKey] = name;
    out = to_pretty_text(*document) + "\n";
  } else {
    if (!out.empty() && !out.ends_with('\n')) out += '\n';
    out += line + "\n";
  }
  const auto parsed = kube::parse_kubeconfig(out);
  if (!parsed || parsed->current_context != name) {
    return fail(Reason::kDecode,
                "it cannot be edited line by line; use `kubectl config use-context`");
  }
  return out;
}

}  // namespace grapnel::cli
