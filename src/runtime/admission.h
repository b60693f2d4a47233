// Admission webhooks: what the API server asks us before it stores an object. The answer is a
// function of the request, so it can be tested without a server.
//
//   Admission admission;
//   admission.add("/validate-jobset-x-k8s-io-v1alpha2-jobset", review_jobset);
//   auto server = http::start_server(executor, options, admission.handler());
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "document/json.h"
#include "http/message.h"
#include "http/server.h"

namespace grapnel::runtime {

// The part of an AdmissionReview that a rule reads.
struct Admitted {
  std::string operation;  // CREATE, UPDATE …
  Json object;
  Json before;  // of an update; null otherwise
};

// The object as it is to be stored, changed or not; or why it may not be: an Error with the fields
// at fault as its causes.
using Review = std::function<Result<Json>(const Admitted& request)>;

class Admission {
 public:
  // A review at this path. Of a validating webhook the API server takes no change.
  void add(std::string path, Review review) { reviews_[std::move(path)] = std::move(review); }

  // The `response` to an AdmissionReview's `request`; nothing where no review is at this path.
  std::optional<Json> respond(std::string_view path, const Json& request) const;
  http::Response answer(const http::Request& request) const;
  // For start_server(); this object must outlive the server.
  http::Handler handler() const;

 private:
  std::map<std::string, Review, std::less<>> reviews_;
};

}  // namespace grapnel::runtime
