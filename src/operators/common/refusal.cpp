#include "operators/common/refusal.h"

#include <fmt/format.h>

namespace grapnel::operators {

std::string text_of(const runtime::Refusal& refusal) {
  return fmt::format("{}: {}", refusal.what, refusal.error.message);
}

bool is_creation_of(const kube::Kind& kind, const runtime::Refusal& refusal) {
  return refusal.what.starts_with(fmt::format("create {} ", kind.kind));
}

std::string refused_name(const runtime::Refusal& refusal) {
  return refusal.what.substr(refusal.what.find_last_of(" /") + 1);
}

void report_refusal(runtime::ObjectRef regarding, const runtime::Refusal& refusal,
                    std::string reason, runtime::Plan& plan) {
  plan.emit(std::move(regarding), runtime::Event::Type::kWarning, std::move(reason),
            text_of(refusal));
}

}  // namespace grapnel::operators
