// What connects us: kubeconfig files and the answers of credential plugins.
#include "kube/exec_plugin.h"
#include "kube/kubeconfig.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  if (auto config = kube::parse_kubeconfig(text)) {
    const size_t contexts = config->contexts.size();
    const auto merged = kube::merge_kubeconfigs({*config, *config});
    fuzz::require(merged.contexts.size() <= contexts, "a file merged with itself adds nothing");
  }
  for (const std::string_view version :
       {"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}) {
    (void)kube::decode_plugin_answer(text, version);
  }
  return 0;
}
