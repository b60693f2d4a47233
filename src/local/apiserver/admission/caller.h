// Sends a review to a webhook and reads its answer.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"
#include "http/client.h"
#include "local/apiserver/admission/webhook.h"
#include "runtime/admission.h"

namespace grapnel::local {

struct Api;

class WebhookCaller {
 public:
  explicit WebhookCaller(Executor executor) : executor_(std::move(executor)) {}
  void set_residents(const runtime::Admission* residents) { residents_ = residents; }
  // The `response` of the review that came back; it belongs to the one that was sent.
  Task<Result<Json>> call(Api& api, Webhook webhook, Json review);

 private:
  http::Transport& transport(const std::string& ca_pem, const std::string& server_name);

  Task<Result<Json>> send(Api& api, Webhook webhook, Json review);

  Executor executor_;
  const runtime::Admission* residents_ = nullptr;  // not owned
  std::map<std::string, std::unique_ptr<http::Transport>> transports_;
};

}  // namespace grapnel::local
