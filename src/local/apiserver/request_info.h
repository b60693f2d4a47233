// What a request asks for: path and method, read as Kubernetes reads them.
#pragma once

#include <string>
#include <string_view>

#include "http/message.h"

namespace grapnel::local {

struct RequestInfo {
  bool is_resource = false;
  std::string path;
  std::string verb;  // get list watch create update patch delete deletecollection
  std::string group;
  std::string version;
  std::string plural;
  std::string ns;
  std::string name;
  std::string subresource;
  std::string rest;  // what follows …/proxy, with its slash
};

RequestInfo parse_request_info(std::string_view method, const http::Target& target);

// The forms an answer can take, in the order the client prefers them.
enum class Form { kObject, kTable, kPartial };
struct Accepted {
  Form form = Form::kObject;
  bool aggregated_discovery = false;
  std::string discovery_version;  // v2, v2beta1
  bool acceptable = true;
};
// JSON in every form; protobuf is never answered, so a client that takes nothing else is refused.
Accepted parse_accept(std::string_view header);

}  // namespace grapnel::local
