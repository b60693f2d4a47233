#include "runtime/writer.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/probe.h"

namespace grapnel::runtime {
namespace {

Probe kUnclear("write: neither it nor the question what it did was answered");
Probe kCreateArrived("write: a create had arrived, or was there before");
Probe kCreateLost("write: an unanswered create had not arrived");
Probe kCreateGone("write: what stood in a create's way is gone");
Probe kCreateForeign("write: another owner's object has the name");
Probe kCreateGoing("write: the object before is still in deletion");
Probe kDeleteArrived("write: an unanswered delete had arrived");
Probe kDeleteLost("write: an unanswered delete had not arrived");
Probe kPatchLooked("write: what a patch met was looked up");
Probe kPatchGone("write: what was to be patched is gone");
Probe kPatchOther("write: another object has the name of what was to be patched");

kube::Where where_of(const ObjectRef& target, std::string subresource = "") {
  return {
      .ns = target.key.ns.str(), .name = target.key.name, .subresource = std::move(subresource)};
}

// Nobody here reads what the server would say of unknown fields, and to look for them takes
// kube-apiserver a twelfth of the time of a create. Of the answer only the version is needed.
kube::WriteOptions plainly() {
  return {.field_validation = "Ignore", .metadata_only = true};
}

kube::Uid uid_of(const Json& object) {
  return kube::Uid(string_or(at(object, "metadata", "uid")));
}

kube::ResourceVersion version_of(const Json& object) {
  return kube::parse_resource_version(string_or(at(object, "metadata", "resourceVersion")));
}

bool is_going(const Json& object) {
  return at(object, "metadata", "deletionTimestamp") != nullptr;
}

// The uid of the controller among its owners; empty when there is none.
kube::Uid controller_of(const Json& object) {
  const Json* owners = at(object, "metadata", "ownerReferences");
  if (owners == nullptr || !owners->is_array()) return {};
  for (const Json& owner : owners->get_array()) {
    if (bool_or(find(owner, "controller"))) return kube::Uid(string_or(find(owner, "uid")));
  }
  return {};
}

WriteResult success(const ObjectRef& target, const Json& answer) {
  return {.trace = Trace{.kind = target.kind, .key = target.key, .version = version_of(answer)}};
}
WriteResult failure(Error error) {
  return {.error = std::move(error)};
}
WriteResult failure(Reason reason, const ObjectRef& target, std::string_view what) {
  return failure(
      Error{.reason = reason,
            .message = fmt::format("{} {} {}", target.kind->kind, target.key.text(), what)});
}
WriteResult gone(const ObjectRef& target) {
  return {.trace = Trace{.kind = target.kind, .key = target.key, .deleted = target.uid}};
}
// The plan was made for an object that is no longer there: plan again when the cache knows.
WriteResult conflict_gone(const ObjectRef& target) {
  auto result = failure(Reason::kConflict, target, "is gone");
  if (!target.uid.empty()) result.trace = gone(target).trace;
  return result;
}

// Neither the write was answered nor the question what it did.
WriteResult unclear(const ObjectRef& target, Error error) {
  kUnclear.hit();
  auto result = failure(std::move(error));
  result.trace = Trace{.kind = target.kind, .key = target.key, .unclear = true};
  return result;
}

// ---- create -------------------------------------------------------------------------------------

// A create was answered with "exists" or not at all: is what stands there what we wanted?
Task<WriteResult> look_after_create(kube::Client& client, const Create& create, kube::Uid owner,
                                    Error error) {
  ObjectRef target = target_of(create);
  const auto found = co_await client.get(*target.kind, where_of(target));
  if (!found) {
    if (!found.error().is(Reason::kNotFound)) co_return unclear(target, found.error());
    if (error.is(Reason::kAlreadyExists)) {
      kCreateGone.hit();
      co_return conflict_gone(target);
    }
    kCreateLost.hit();
    error.ambiguous = false;  // and should it still arrive, its name makes a repetition harmless
    co_return failure(std::move(error));
  }
  target.uid = uid_of(*found);
  if (controller_of(*found) != owner) {
    kCreateForeign.hit();
    co_return failure(Reason::kAlreadyExists, target, "exists and belongs to another owner");
  }
  if (is_going(*found)) {
    kCreateGoing.hit();
    auto result = failure(Reason::kConflict, target, "is still being deleted");
    result.trace = success(target, *found).trace;
    co_return result;
  }
  kCreateArrived.hit();
  co_return success(target, *found);
}

// Runs code of the planner's, late: what it throws concerns this object alone.
Result<Json> make(const Create& create) {
  try {
    return create.object.make();
  } catch (const std::exception& e) {
    return fail(Reason::kUnknown, "its planner failed: {}", e.what());
  }
}

WriteResult result_of(const Create& create, Result<Json> answer) {
  return answer ? success(target_of(create), *answer) : failure(std::move(answer.error()));
}

// The answer is not the object, so it leaves no version to wait for.
Task<WriteResult> write_subresource(kube::Client& client, const Create& create) {
  const ObjectRef target = target_of(create);
  Task<Result<Json>> asking;
  if (auto object = make(create)) {
    asking = client.create(*create.kind, std::move(*object), {.subresource = create.subresource});
  } else {
    co_return WriteResult{.error = std::move(object.error()), .defect = true};
  }
  auto answer = co_await std::move(asking);
  if (answer) co_return WriteResult{};
  if (answer.error().ambiguous) co_return unclear(target, std::move(answer.error()));
  co_return failure(std::move(answer.error()));
}

Task<WriteResult> write(kube::Client& client, const Create& create) {
  if (target_of(create).key.name.empty()) {
    co_return failure(Reason::kUsage, target_of(create), "is to be created without a name");
  }
  if (!create.subresource.empty()) co_return co_await write_subresource(client, create);
  kube::Uid owner;
  Task<Result<Json>> asking;
  if (auto object = make(create)) {
    owner = controller_of(*object);
    // What it is made from is gone while we wait, with hundreds of others.
    asking = client.create(*create.kind, std::move(*object), plainly());
  } else {
    co_return WriteResult{.error = std::move(object.error()), .defect = true};
  }
  auto answer = co_await std::move(asking);
  if (!answer && (answer.error().is(Reason::kAlreadyExists) || answer.error().ambiguous)) {
    co_return co_await look_after_create(client, create, owner, std::move(answer.error()));
  }
  co_return result_of(create, std::move(answer));
}

// ---- delete -------------------------------------------------------------------------------------

std::string_view propagation_of(Delete::Propagation propagation) {
  switch (propagation) {
    case Delete::Propagation::kBackground:
      return "Background";
    case Delete::Propagation::kForeground:
      return "Foreground";
    case Delete::Propagation::kOrphan:
      return "Orphan";
  }
  return "";
}

Task<WriteResult> write(kube::Client& client, const Delete& erase) {
  const ObjectRef& target = erase.target;
  if (target.uid.empty()) {
    co_return failure(Reason::kUsage, target, "is to be deleted without saying which uid");
  }
  auto answer =
      co_await client.remove(*target.kind, where_of(target),
                             {.uid = target.uid,
                              .propagation = std::string(propagation_of(erase.propagation)),
                              .grace_seconds = erase.grace_seconds,
                              .metadata_only = true});
  if (answer || answer.error().is(Reason::kNotFound)) co_return gone(target);
  Error& error = answer.error();
  if (!error.is(Reason::kConflict) && !error.ambiguous) co_return failure(std::move(error));
  const auto found = co_await client.get(*target.kind, where_of(target));
  if (!found && !found.error().is(Reason::kNotFound)) co_return unclear(target, found.error());
  if (!found || uid_of(*found) != target.uid || is_going(*found)) {
    kDeleteArrived.hit();
    co_return gone(target);
  }
  kDeleteLost.hit();
  error.ambiguous = false;
  co_return failure(std::move(error));
}

// ---- patch and apply ----------------------------------------------------------------------------

bool blames_uid(const Error& error) {
  return std::ranges::any_of(error.causes,
                             [](const Cause& cause) { return cause.field == "metadata.uid"; });
}

// A patch failed in a way that leaves open what stands there now. Whatever it is, the next plan
// must be made with a cache that knows it: then a conflict is not repeated from the same stale
// state.
Task<WriteResult> look_after_patch(kube::Client& client, ObjectRef target, Error error) {
  const auto found = co_await client.get(*target.kind, where_of(target));
  if (!found) {
    if (!found.error().is(Reason::kNotFound)) co_return unclear(target, found.error());
    kPatchGone.hit();
    co_return conflict_gone(target);
  }
  if (!target.uid.empty() && uid_of(*found) != target.uid) {
    kPatchOther.hit();
    co_return conflict_gone(target);
  }
  kPatchLooked.hit();
  error.ambiguous = false;
  auto result = failure(std::move(error));
  result.trace = success(target, *found).trace;
  co_return result;
}

Task<WriteResult> finish_patch(kube::Client& client, ObjectRef target, Result<Json> answer,
                               bool tests_version) {
  if (answer) co_return success(target, *answer);
  Error& error = answer.error();
  if (error.is(Reason::kNotFound)) co_return conflict_gone(target);
  // A failed `test` of a JSON patch and a uid that does not match are both called Invalid.
  const bool unclear = error.ambiguous || error.is(Reason::kConflict) ||
                       (error.is(Reason::kInvalid) && (tests_version || blames_uid(error)));
  if (!unclear) co_return failure(std::move(error));
  co_return co_await look_after_patch(client, target, std::move(error));
}

JsonObject test_of(std::string_view path, std::string value) {
  return {{"op", "test"}, {"path", path}, {"value", std::move(value)}};
}

// The patch with the identity it is meant for inside, so that the server refuses it for any other.
Json guarded(const Patch& patch) {
  const std::string version = patch.if_version == 0 ? "" : std::to_string(patch.if_version);
  Json body = patch.body;
  if (patch.type == Patch::Type::kJson) {
    JsonArray tests{test_of("/metadata/uid", patch.target.uid.text())};
    if (!version.empty()) tests.push_back(test_of("/metadata/resourceVersion", version));
    JsonArray& operations = body.as_array();
    operations.insert(operations.begin(), tests.begin(), tests.end());
    return body;
  }
  JsonObject& metadata = ensure_object(body.as_object(), "metadata");
  metadata["uid"] = patch.target.uid.text();
  if (!version.empty()) metadata["resourceVersion"] = version;
  return body;
}

kube::PatchType type_of(Patch::Type type) {
  switch (type) {
    case Patch::Type::kJson:
      return kube::PatchType::kJson;
    case Patch::Type::kStrategic:
      return kube::PatchType::kStrategic;
    case Patch::Type::kMerge:
      break;
  }
  return kube::PatchType::kMerge;
}

Task<WriteResult> write(kube::Client& client, const Patch& patch) {
  const bool json = patch.type == Patch::Type::kJson;
  if (patch.target.uid.empty() || (json ? !patch.body.is_array() : !patch.body.is_object())) {
    co_return failure(Reason::kUsage, patch.target, "is to be patched without a uid or a body");
  }
  auto answer = co_await client.patch(*patch.target.kind, where_of(patch.target, patch.subresource),
                                      type_of(patch.type), guarded(patch), plainly());
  co_return co_await finish_patch(client, patch.target, std::move(answer), json);
}

Task<WriteResult> write(kube::Client& client, const Apply& apply) {
  const ObjectRef target = target_of(apply);
  if (target.key.name.empty()) {
    co_return failure(Reason::kUsage, target, "is to be applied without a name");
  }
  Json object = apply.object;
  if (!apply.uid.empty()) {
    ensure_object(object.as_object(), "metadata")["uid"] = apply.uid.text();
  }
  auto answer = co_await client.patch(*apply.kind, where_of(target), kube::PatchType::kApply,
                                      std::move(object), {.force = true, .metadata_only = true});
  // To create by apply, the namespace must exist: this NotFound is not about the object.
  if (!answer && apply.uid.empty() && answer.error().is(Reason::kNotFound)) {
    co_return failure(std::move(answer.error()));
  }
  co_return co_await finish_patch(client, target, std::move(answer), false);
}

bool has_no_leaf(const Json& value) {
  return value.is_object() && std::ranges::all_of(value.get_object(), [](const auto& member) {
           return has_no_leaf(member.value());
         });
}

}  // namespace

bool changes_nothing(const Write& write) {
  const auto* patch = std::get_if<Patch>(&write);
  if (patch == nullptr) return false;
  if (patch->type == Patch::Type::kJson) {
    return patch->body.is_array() && patch->body.get_array().empty();
  }
  return has_no_leaf(patch->body);
}

Task<WriteResult> carry_out(kube::Client& client, const Write& what) {
  return std::visit([&client](const auto& one) { return write(client, one); }, what);
}

Task<Result<std::optional<Trace>>> look(kube::Client& client, Trace trace) {
  const ObjectRef target{trace.kind, trace.key, {}};
  const auto found = co_await client.get(*target.kind, where_of(target));
  if (found) co_return success(target, *found).trace;
  if (found.error().is(Reason::kNotFound)) co_return std::optional<Trace>();
  co_return fail(found.error());
}

bool is_refusal(const Error& error) {
  switch (error.reason) {
    case Reason::kBadRequest:
    case Reason::kForbidden:
    case Reason::kNotFound:  // of a namespace or a kind: for objects it became a conflict
    case Reason::kMethodNotAllowed:
    case Reason::kAlreadyExists:
    case Reason::kRequestEntityTooLarge:
    case Reason::kUnsupportedMediaType:
    case Reason::kInvalid:
    case Reason::kUsage:
      return true;
    default:
      return false;
  }
}

}  // namespace grapnel::runtime
