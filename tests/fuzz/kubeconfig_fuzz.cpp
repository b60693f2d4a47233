// kubeconfig: what is accepted merges with itself to itself, and every context gives a whole choice
// or an error that says something.
#include "kube/kubeconfig.h"

#include "tests/fuzz/fuzz.h"

using namespace grapnel;
using namespace grapnel::kube;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto config = parse_kubeconfig(fuzz::text_of(data, size), "config");
  if (!config) {
    fuzz::require(config.error().message.starts_with("config"), "an error names the file");
    return 0;
  }
  const Kubeconfig merged = merge_kubeconfigs({*config, *config});
  fuzz::require(merged.clusters.size() == config->clusters.size() &&
                    merged.users.size() == config->users.size() &&
                    merged.contexts.size() == config->contexts.size(),
                "merging with itself adds nothing");
  for (const ContextEntry& context : config->contexts) {
    const auto chosen = choose_context(*config, context.name);
    if (!chosen) {
      fuzz::require(!chosen.error().message.empty(), "an error says something");
      continue;
    }
    fuzz::require(chosen->context == &context, "names are unique");
    fuzz::require(chosen->cluster != nullptr && chosen->cluster->name == context.cluster,
                  "the cluster is the one named");
    fuzz::require((chosen->user == nullptr) == context.user.empty(), "the user is the one named");
    (void)chosen->cluster->origin.resolve(chosen->cluster->certificate_authority);
  }
  (void)choose_context(*config, "");
  return 0;
}
