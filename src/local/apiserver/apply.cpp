#include "local/apiserver/apply.h"

#include <fmt/format.h>

#include "document/patch.h"
#include "local/apiserver/metadata.h"
#include "local/apiserver/write.h"

namespace grapnel::local {

Task<Answer<Reply>> apply_object(Api& api, Call& call) {
  auto object = decode_object(call);
  if (!object) co_return Refusal(object.error());
  if (call.field_manager.empty()) {
    co_return Refusal(invalid("meta.k8s.io", "PatchOptions", "",
                              {Cause{.field = "fieldManager",
                                     .message = "Required value: is required for apply patch",
                                     .reason = "FieldValueRequired"}}));
  }
  const TypePtr type = call.type;
  JsonObject& meta = ensure_object(object->as_object(), "metadata");
  meta["name"] = call.info.name;
  if (type->namespaced) meta["namespace"] = call.info.ns;
  Edit edit{.make = [&object, type](const Json& current) -> Answer<Json> {
              Json next = current;
              if (type->custom) {
                apply_merge_patch(next, *object);
                return next;
              }
              auto merged = apply_strategic_merge_patch(next, *object, type->kind);
              if (!merged) return Refusal(bad_request(merged.error().message));
              return next;
            },
            .subresource = call.info.subresource};
  if (call.info.subresource.empty()) {
    edit.make_new = [&object]() -> Answer<Json> { return *object; };
  }
  auto written = co_await write_change(api, call, call.info.ns, call.info.name, std::move(edit));
  if (!written) co_return Refusal(written.error());
  co_return Reply{.code = written->created ? 201 : 200,
                  .body = encode_object(api, call, *written->object)};
}

}  // namespace grapnel::local
