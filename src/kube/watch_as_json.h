// A watch in protobuf, read as the lines of JSON that it would be otherwise.
#pragma once

#include <memory>

#include "http/client.h"

namespace grapnel::kube {

std::unique_ptr<http::BodyStream> watch_as_json(std::unique_ptr<http::BodyStream> protobuf);

}  // namespace grapnel::kube
