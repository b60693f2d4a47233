// The conditions of a Pod that the kubelet sets. It leaves other conditions alone.
#pragma once

#include <string_view>

#include "local/kubelet/pod_status.h"

namespace grapnel::local::kubelet {

bool is_container_ready(const Container& container, const ContainerFacts& facts);
Json conditions_of(const Observed& observed, const Progress& progress, std::string_view phase,
                   Time now);

}  // namespace grapnel::local::kubelet
