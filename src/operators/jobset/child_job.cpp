#include "operators/jobset/child_job.h"

#include <charconv>

#include "api/fields.h"
#include "api/keys.h"

namespace grapnel::jobset {
namespace {

namespace keys = api::keys::jobset;
using api::text_at;

std::optional<int32_t> number_of(std::string_view text) {
  int32_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

std::optional<JobPlace> decode_place(const std::optional<JsonView>& labels) {
  const auto name = text_at(labels, keys::kReplicatedJobName);
  const auto index = number_of(text_at(labels, keys::kJobIndex));
  const auto attempt = number_of(text_at(labels, keys::kRestartAttempt));
  if (name.empty() || !index || !attempt) return std::nullopt;
  return JobPlace{.replicated_job = Interned(name),
                  .index = *index,
                  .restart_attempt = *attempt,
                  .job_restart_attempt = number_of(text_at(labels, keys::kJobRestartAttempt))};
}

}  // namespace

bool ChildJob::operator==(const ChildJob& other) const {
  return api::Job::operator==(other) && place == other.place;
}

Result<ChildJob> decode_child_job(JsonView object) {
  auto job = api::decode_job(object);
  if (!job) return fail(std::move(job.error()));
  return ChildJob{std::move(*job), decode_place(api::view_at(object.find("metadata"), "labels"))};
}

}  // namespace grapnel::jobset
