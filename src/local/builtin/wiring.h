// Each function gives one controller its caches. For controllers.cpp.
#pragma once

#include <string>

#include "local/builtin/objects/all_objects.h"
#include "runtime/manager.h"

namespace grapnel::local {

struct Claim;
struct SchedulerPod;

void add_jobs(runtime::Manager& manager);
void add_scheduler(runtime::Manager& manager, runtime::Informer<Claim>& claims,
                   runtime::Informer<SchedulerPod>& pods);
// Volumes that it makes are directories below `directory`.
void add_claims(runtime::Manager& manager, runtime::Informer<Claim>& claims,
                runtime::Informer<SchedulerPod>& pods, std::string directory);
void add_workloads(runtime::Manager& manager);
void add_endpoints(runtime::Manager& manager);
void add_cron_jobs(runtime::Manager& manager);
void add_event_expiry(runtime::Manager& manager);
void add_garbage(runtime::Manager& manager, AllObjects& objects);
// `finalize` puts a Namespace to its subresource of that name.
void add_namespaces(runtime::Manager& manager, AllObjects& objects, std::string authority_pem,
                    std::function<void(Json)> finalize);
void add_definitions(runtime::Manager& manager, AllObjects& objects);
void add_quotas(runtime::Manager& manager, AllObjects& objects);

}  // namespace grapnel::local
