// create, update and patch.

#include <fmt/format.h>

#include <algorithm>

#include "base/strings.h"
#include "document/patch.h"
#include "local/apiserver/api.h"
#include "local/apiserver/apply.h"
#include "local/apiserver/metadata.h"
#include "local/apiserver/subresources.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

// The namespaces of the path and of the object must be the same.
Answer<> match_namespace(const Call& call, Json& object) {
  const std::string_view given = meta_text(object, "namespace");
  if (!call.type->namespaced) {
    if (given.empty()) return {};
    return Refusal(bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  if (!given.empty() && given != call.info.ns) {
    return Refusal(bad_request(
        "the namespace of the provided object does not match the namespace sent on the request"));
  }
  return {};
}

Answer<> match_name(const Call& call, const Json& object) {
  const std::string_view given = meta_text(object, "name");
  if (given == call.info.name) return {};
  if (given.empty()) {
    return Refusal(bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        call.info.name)));
  }
  return Refusal(
      bad_request(fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                              given, call.info.name)));
}

Reply reply_of(const Api& api, const Call& call, const Written& written) {
  return Reply{.code = written.created ? 201 : 200,
               .body = encode_object(api, call, *written.object)};
}

ApiError patch_error(const Call& call, const Error& error) {
  // A test that fails and a missing path are different errors from bad JSON.
  if (error.is(Reason::kInvalid)) {
    ApiError refusal = invalid(call.type->group, call.type->kind, call.info.name, {});
    refusal.message = error.message;
    refusal.group = refusal.kind = refusal.name = "";
    return refusal;
  }
  return bad_request(error.message);
}

}  // namespace

Task<Answer<Reply>> create_object(Api& api, Call& call) {
  auto object = decode_object(call);
  if (!object) co_return Refusal(object.error());
  if (auto same = match_namespace(call, *object); !same) co_return Refusal(same.error());
  if (!call.type->stored) co_return answer_question(api, call, std::move(*object));
  if (call.type->namespaced && call.info.ns.empty()) {
    co_return Refusal(bad_request("an empty namespace may not be set during creation"));
  }
  if (!call.info.name.empty()) co_return Refusal(method_not_supported(call.what(), "create"));
  auto written = co_await write_new(api, call, call.info.ns, std::move(*object));
  if (!written) co_return Refusal(written.error());
  co_return reply_of(api, call, *written);
}

Task<Answer<Reply>> update_object(Api& api, Call& call) {
  auto object = decode_object(call);
  if (!object) co_return Refusal(object.error());
  if (auto same = match_namespace(call, *object); !same) co_return Refusal(same.error());
  if (auto same = match_name(call, *object); !same) co_return Refusal(same.error());
  Edit edit{.make = [&object](const Json&) -> Answer<Json> { return *object; },
            .subresource = call.info.subresource,
            .needs_version = true};
  if (call.type->create_on_update && call.info.subresource.empty()) {
    edit.make_new = [&object]() -> Answer<Json> { return *object; };
  }
  auto written = co_await write_change(api, call, call.info.ns, call.info.name, std::move(edit));
  if (!written) co_return Refusal(written.error());
  co_return reply_of(api, call, *written);
}

namespace {

using Patch = std::function<Answer<Json>(const Json& current)>;

Answer<Patch> make_patch(const Call& call, const std::string& media) {
  const TypePtr type = call.type;
  auto body = decode_body(call);
  if (!body) {
    if (body.error().code != 400) return Refusal(body.error());
    return Refusal(bad_request(fmt::format("error decoding patch: {}", body.error().message)));
  }
  auto patch = std::make_shared<const Json>(std::move(*body));
  if (media == "application/json-patch+json") {
    const JsonArray* operations = patch->if_array();
    if (operations == nullptr || !std::all_of(operations->begin(), operations->end(),
                                              [](const Json& one) { return one.is_object(); })) {
      return Refusal(bad_request("error decoding patch: it is not a list of operations"));
    }
    return Patch([patch, &call](const Json& current) -> Answer<Json> {
      Json next = current;
      if (auto done = apply_json_patch(next, *patch); !done) {
        return Refusal(patch_error(call, done.error()));
      }
      return next;
    });
  }
  if (!patch->is_object()) {
    return Refusal(bad_request("error decoding patch: the patch is not a JSON object"));
  }
  if (media == "application/merge-patch+json") {
    return Patch([patch](const Json& current) -> Answer<Json> {
      Json next = current;
      apply_merge_patch(next, *patch);
      return next;
    });
  }
  if (media == "application/strategic-merge-patch+json" && !type->custom) {
    return Patch([patch, type](const Json& current) -> Answer<Json> {
      Json next = current;
      if (auto done = apply_strategic_merge_patch(next, *patch, type->kind); !done) {
        return Refusal(ApiError{.code = 500, .message = done.error().message});
      }
      return next;
    });
  }
  if (type->custom) {
    return Refusal(unsupported_media_type(
        "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml"));
  }
  ApiError refusal = unsupported_media_type("");
  refusal.message = "415: Unsupported Media Type";
  refusal.has_details = true;
  return Refusal(std::move(refusal));
}

}  // namespace

Task<Answer<Reply>> patch_object(Api& api, Call& call) {
  const std::string_view header = call.request->headers.get("content-type");
  const std::string media = to_lower(trim(header.substr(0, header.find(';'))));
  if (media == "application/apply-patch+yaml" || media == "application/apply-patch+cbor") {
    co_return co_await apply_object(api, call);
  }
  if (call.target.has("force")) {
    FieldErrors errors;
    errors.forbidden("force", "may not be specified for non-apply patch");
    co_return Refusal(invalid("meta.k8s.io", "PatchOptions", "", errors.take()));
  }
  auto patch = make_patch(call, media);
  if (!patch) co_return Refusal(patch.error());
  Edit edit{.make = [&patch, &call](const Json& current) -> Answer<Json> {
              auto next = (*patch)(current);
              if (!next) return next;
              if (!next->is_object()) {
                return Refusal(bad_request("the patch leaves no object"));
              }
              if (auto known = check_fields(call, *next); !known) return Refusal(known.error());
              // The identity in the path holds, whatever the patch says.
              if (auto same = match_name(call, *next); !same) return Refusal(same.error());
              if (auto same = match_namespace(call, *next); !same) return Refusal(same.error());
              return next;
            },
            .subresource = call.info.subresource};
  auto written = co_await write_change(api, call, call.info.ns, call.info.name, std::move(edit));
  if (!written) co_return Refusal(written.error());
  co_return reply_of(api, call, *written);
}

}  // namespace grapnel::local
