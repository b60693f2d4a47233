#include "cli/page.h"

namespace grapnel::cli {

Result<Page> page_of(const api::Experiment& experiment, std::string_view what) {
  const auto& spec = experiment.spec;
  const std::string& name = experiment.meta.name();
  if (what == "jupyter") {
    if (!spec.debug || !spec.debug->jupyter || !spec.debug->jupyter->enabled) {
      return fail(Reason::kUsage, "'{}' has no Jupyter: spec.debug.jupyter.enabled asks for it",
                  name);
    }
    return Page{.role = "", .port = 8888, .path = fmt::format("/{}", spec.debug->jupyter->path)};
  }
  if (what == "tensorboard") {
    if (!spec.tensorboard || !spec.tensorboard->enabled) {
      return fail(Reason::kUsage, "'{}' has no TensorBoard: spec.tensorboard.enabled asks for it",
                  name);
    }
    return Page{.role = "tensorboard", .port = 6006};
  }
  if (spec.op != api::Operator::kuberay) {
    return fail(Reason::kUsage, "'{}' has no Ray: its operator is {}", name, api::name_of(spec.op));
  }
  return Page{.role = "head", .port = 8265};
}

}  // namespace grapnel::cli
