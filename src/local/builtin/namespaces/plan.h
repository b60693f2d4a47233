// Deletes a Namespace: everything in it goes first. And creates what every Namespace has: a default
// ServiceAccount, and the certificate by which its pods recognise the API server.
#pragma once

#include <string>
#include <vector>

#include "document/json.h"
#include "kube/meta.h"
#include "runtime/plan.h"

namespace grapnel::local {

struct Namespace {
  kube::Meta meta;
  std::vector<std::string> finalizers;  // of its spec
  Json status;
  bool operator==(const Namespace& other) const;
};
Result<Namespace> decode_namespace(JsonView object);

struct NamespaceObserved {
  const Namespace& ns;
  struct Content {
    const kube::Kind* kind = nullptr;
    const kube::Meta* meta = nullptr;
  };
  std::vector<Content> content;
  bool knows_all = false;  // no kind is missing in the content
};
struct NamespacePlan {
  runtime::Plan plan;
  // The namespace as it is to be put to its `finalize` subresource, which takes no patch.
  std::optional<Json> finalized;
};
NamespacePlan plan(const NamespaceObserved& observed, Time now);

struct NamespaceFurniture {
  const Namespace& ns;
  bool has_account = false;
  std::optional<std::string> certificate;  // in kube-root-ca.crt, where it is there
  kube::Uid certificate_uid;
};
runtime::Plan plan(const NamespaceFurniture& observed, const std::string& authority_pem);

}  // namespace grapnel::local
