// Answers of the API: metadata, projections, our kinds and Statuses, decoded from any JSON.
#include "api/job.h"
#include "api/jobset.h"
#include "api/pod.h"
#include "api/service.h"
#include "document/json_view.h"
#include "kube/status.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;

namespace {

size_t values_in(JsonView view) {
  size_t count = 1;
  if (view.is_object()) {
    view.for_each_member([&](std::string_view, JsonView member) {
      count += values_in(member);
      return true;
    });
  } else if (view.is_array()) {
    view.for_each_element([&](size_t, JsonView element) {
      count += values_in(element);
      return true;
    });
  }
  return count;
}

}  // namespace

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static JsonParser parser;
  const auto view = parser.parse(fuzz::text_of(data, size));
  if (!view) return 0;
  const kube::MetaOptions all{.all_annotations = true, .all_labels = true};
  const Json json = view->to_json();
  // Of two members of one name a Json keeps the last and a view shows both. No server writes such.
  if (values_in(*view) != values_in(json)) return 0;
  const auto pod = api::decode_pod(*view, all);
  const auto same = api::decode_pod(json, all);
  fuzz::require(pod.has_value() == same.has_value(), "a view and a Json decode alike");
  if (pod) fuzz::require(*pod == *same, "and to the same");
  (void)api::decode_job(*view, all);
  (void)api::decode_service(*view, all);
  (void)api::decode_jobset(*view);
  (void)api::decode_jobset(*view, api::Unknown::kRefuse);
  (void)kube::error_of_status(409, json);
  return 0;
}
