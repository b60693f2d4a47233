// Admission webhooks: which are called before an object is written, and what they answered.
//
// Calling them takes time, and other writes continue meanwhile. So the caller must check afterwards
// whether the object it started from is still the stored one. If there is no configuration, nothing
// suspends.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/async.h"
#include "document/json.h"
#include "local/apiserver/admission/resident.h"
#include "local/apiserver/admission/webhook.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

struct Api;
struct Call;

// The write that the webhooks are called for.
struct Review {
  std::string operation;  // CREATE, UPDATE, DELETE
  std::string ns;
  std::string name;
  std::string subresource;
  Json object;  // null for a deletion
  Json old;     // null for a creation
};

class WebhookCaller;

class Webhooks {
 public:
  explicit Webhooks(Executor executor);
  ~Webhooks();

  // `configuration` nullptr: it is gone. `resource`: "mutatingwebhookconfigurations" or the other.
  void set(std::string_view resource, const std::string& name, const Json* configuration);
  void set_residents(const ResidentWebhooks& residents);
  // Whether any webhook may want writes of this kind; cheap.
  bool may_concern(const Call& call, std::string_view operation,
                   std::string_view subresource = "") const;
  // Whether any wants this write.
  bool concern(const Api& api, const Call& call, const Review& review) const;

  // The object as the webhooks leave it.
  Task<Answer<Json>> mutate(Api& api, Call& call, Review review);
  Task<Answer<>> validate(Api& api, Call& call, Review review);

 private:
  using Configurations = std::map<std::string, std::vector<Webhook>>;
  template <class Predicate>
  bool any(Predicate predicate) const;

  Configurations mutating_;
  Configurations validating_;
  std::unique_ptr<WebhookCaller> caller_;
};

// A configuration that asks for more than this server can do is refused, or gets a warning if the
// rest of it is useful.
void validate_webhooks(const Json& configuration, FieldErrors& errors);
void warn_of_webhooks(const Json& configuration, std::vector<std::string>& warnings);

}  // namespace grapnel::local
