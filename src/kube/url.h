// Paths and queries of the Kubernetes API.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "kube/kind.h"

namespace grapnel::kube {

// Which object of a kind; an empty name means the collection, an empty namespace all of them.
struct Where {
  std::string ns;
  std::string name;
  std::string subresource;  // "status", "scale", "log", "exec", "proxy" …
};

// "/apis/batch/v1/namespaces/team-a/jobs"; of a namespaced kind without a namespace: of all.
Result<std::string> collection_path(const Kind& kind, std::string_view ns);
// "/apis/batch/v1/namespaces/team-a/jobs/train/status". A missing name or namespace is an error:
// the path would mean the whole collection.
Result<std::string> object_path(const Kind& kind, const Where& where);

// "?a=b&c=d", percent-encoded. Empty values are left out.
class Query {
 public:
  Query& add(std::string_view name, std::string_view value);
  Query& add(std::string_view name, int64_t value);
  Query& add_all(std::string_view name, std::span<const std::string> values);  // empty ones too
  Query& add_flag(std::string_view name, bool value);  // "name=true" when set
  const std::string& text() const { return text_; }

 private:
  Query& append(std::string_view name, std::string_view value);
  std::string text_;
};

}  // namespace grapnel::kube
