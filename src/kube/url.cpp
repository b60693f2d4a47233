#include "kube/url.h"

#include "base/strings.h"

namespace grapnel::kube {
namespace {

// A name that would leave its place in the path is refused before it is sent: percent-encoding does
// not protect dots, and a server may decode an encoded slash.
Result<> check_segment(std::string_view what, std::string_view text) {
  if (text == "." || text == ".." || text.find('/') != text.npos || text.find('\0') != text.npos) {
    return fail(Reason::kUsage, "{} '{}' cannot be part of a path", what, text);
  }
  return {};
}

Result<> append_segments(std::string& path, std::string_view subresource) {
  for (const std::string_view segment : split(subresource, '/')) {
    if (const auto ok = check_segment("subresource", segment); !ok) return fail(ok.error());
    path += '/';
    path += percent_encode(segment);
  }
  return {};
}

}  // namespace

Result<std::string> collection_path(const Kind& kind, std::string_view ns) {
  std::string path = kind.api_path();
  if (kind.namespaced && !ns.empty()) {
    if (const auto ok = check_segment("namespace", ns); !ok) return fail(ok.error());
    path += "/namespaces/";
    path += percent_encode(ns);
  }
  path += '/';
  path += kind.plural;
  return path;
}

Result<std::string> object_path(const Kind& kind, const Where& where) {
  if (where.name.empty()) {
    return fail(Reason::kUsage, "a {} is asked for without a name", kind.kind);
  }
  if (kind.namespaced && where.ns.empty()) {
    return fail(Reason::kUsage, "{} '{}' is asked for without a namespace", kind.kind, where.name);
  }
  if (const auto ok = check_segment("name", where.name); !ok) return fail(ok.error());
  auto path = collection_path(kind, where.ns);
  if (!path) return path;
  *path += '/';
  *path += percent_encode(where.name);
  if (!where.subresource.empty()) {
    if (const auto ok = append_segments(*path, where.subresource); !ok) return fail(ok.error());
  }
  return path;
}

Query& Query::append(std::string_view name, std::string_view value) {
  text_ += text_.empty() ? '?' : '&';
  text_ += percent_encode(name);
  text_ += '=';
  text_ += percent_encode(value);
  return *this;
}

Query& Query::add(std::string_view name, std::string_view value) {
  return value.empty() ? *this : append(name, value);
}

Query& Query::add(std::string_view name, int64_t value) {
  return append(name, std::to_string(value));
}

Query& Query::add_all(std::string_view name, std::span<const std::string> values) {
  for (const std::string& value : values) append(name, value);
  return *this;
}

Query& Query::add_flag(std::string_view name, bool value) {
  return value ? append(name, "true") : *this;
}

}  // namespace grapnel::kube
