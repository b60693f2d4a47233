// Admission, as the model's API server asks for it: the webhooks of a subject, by the
// configurations with which they would be installed. What none of ours uses is left out: selectors
// that look at more than labels that exist, CEL, side effects.
#pragma once

#include <memory>
#include <optional>
#include <string_view>

#include "document/json.h"
#include "http/message.h"
#include "kube/kind.h"
#include "runtime/admission.h"

namespace grapnel::simulation {

// The same as an API server of ours takes; null: none.
struct WebhookConfigurations {
  Json mutating;
  Json validating;
  std::shared_ptr<const runtime::Admission> admission;
};

class Webhooks {
 public:
  explicit Webhooks(WebhookConfigurations configurations)
      : configurations_(std::move(configurations)) {}

  // The object as it is to be stored; or the answer to whoever sent it. `before` is null for a
  // create.
  struct Outcome {
    std::optional<http::Response> refused;
    Json object;
  };
  Outcome review(const kube::Kind& kind, Json object, const Json* before, bool down) const;

 private:
  std::optional<http::Response> ask(const Json& webhook, const kube::Kind& kind, Json& object,
                                    const Json* before) const;

  WebhookConfigurations configurations_;
};

}  // namespace grapnel::simulation
