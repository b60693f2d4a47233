// The server's answer when it refuses: a Kubernetes Status, in Kubernetes' words. Clients branch on
// the reason and people search for the message, so both are exact.
#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "base/error.h"
#include "document/json.h"

namespace grapnel::local {

struct ApiError {
  int code = 500;
  std::string reason;
  std::string message;
  // details
  std::string name;
  std::string group;
  std::string kind;  // the resource, or the kind where Kubernetes says the kind
  std::string uid;
  std::vector<Cause> causes;
  int retry_after = 0;
  bool has_details = false;
};

template <class T = void>
using Answer = tl::expected<T, ApiError>;
using Refusal = tl::unexpected<ApiError>;

// A resource as errors name it: "pods", "jobs.batch".
struct GroupResource {
  std::string group;
  std::string resource;
  std::string text() const { return group.empty() ? resource : resource + "." + group; }
};

Json to_status(const ApiError& error);
Json success_status(const GroupResource& what, std::string_view name, std::string_view uid);

ApiError not_found(const GroupResource& what, std::string_view name);
ApiError already_exists(const GroupResource& what, std::string_view name);
ApiError conflict(const GroupResource& what, std::string_view name, std::string_view why);
ApiError modified(const GroupResource& what, std::string_view name);
ApiError forbidden(const GroupResource& what, std::string_view name, std::string_view why);
ApiError bad_request(std::string message);
ApiError unauthorized();
ApiError path_not_found();
ApiError method_not_allowed();  // nobody could do this at this path
ApiError method_not_supported(const GroupResource& what, std::string_view action);
// kind: "Pod", "JobSet.jobset.x-k8s.io".
ApiError invalid(std::string_view group, std::string_view kind, std::string_view name,
                 std::vector<Cause> causes);
ApiError expired(std::string message);
// options: "DeleteOptions".
ApiError invalid_dry_run(std::string_view options, std::string_view given);
ApiError unsupported_media_type(std::string_view accepted);
ApiError not_acceptable(std::string_view accepted);
ApiError too_large(size_t limit);
ApiError internal(std::string_view what);
ApiError not_implemented(std::string message);
ApiError version_too_large(uint64_t asked, uint64_t current);

// Collects what is wrong with fields, in the words of Kubernetes' field errors.
class FieldErrors {
 public:
  void required(std::string field, std::string_view detail = "");
  void invalid(std::string field, std::string_view value, std::string_view detail);  // quoted
  void invalid_value(std::string field, const Json& value, std::string_view detail);
  void type_invalid(std::string field, const Json& value, std::string_view detail);
  void not_supported(std::string field, std::string_view value,
                     const std::vector<std::string_view>& allowed);
  void duplicate(std::string field, const Json& value);
  void forbidden(std::string field, std::string_view detail);
  void too_long(std::string field, size_t most);
  void too_many(std::string field, size_t actual, size_t most);
  void add(Cause cause) { list_.push_back(std::move(cause)); }
  void repeat();  // all of them once more

  bool empty() const { return list_.empty(); }
  std::vector<Cause> take() { return std::move(list_); }
  const std::vector<Cause>& list() const { return list_; }

 private:
  void add(std::string field, std::string_view reason, std::string message);
  std::vector<Cause> list_;
};

// As Go's %q prints a string.
std::string in_quotes(std::string_view text);

}  // namespace grapnel::local
