#include "local/apiserver/apply.h"

#include <fmt/format.h>

#include "local/apiserver/managed/managers.h"
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
  if (const std::string_view name = meta_text(*object, "name");
      !name.empty() && name != call.info.name) {
    co_return Refusal(bad_request(
        fmt::format("the name of the object ({}) does not match the name on the URL ({})", name,
                    call.info.name)));
  }
  meta["name"] = call.info.name;
  if (type->namespaced) meta["namespace"] = call.info.ns;
  const Writer writer{
      .manager = call.field_manager, .subresource = call.info.subresource, .now = api.clock.now()};
  const std::string_view forced = call.query("force");
  const bool force = forced == "true" || forced == "1";
  Edit edit{.make = [&](const Json& current) -> Answer<Json> {
              return apply_config(current, *object, *type, writer, force);
            },
            .subresource = call.info.subresource,
            .applied = true};
  if (call.info.subresource.empty()) {
    edit.make_new = [&]() -> Answer<Json> {
      if (const std::string_view uid = meta_text(*object, "uid"); !uid.empty()) {
        return Refusal(conflict(call.what(), call.info.name,
                                fmt::format("uid mismatch: the provided object specified uid {}, "
                                            "and no existing object was found",
                                            uid)));
      }
      ensure_object(object->as_object(), "metadata").erase("resourceVersion");
      return apply_config(Json(), *object, *type, writer, force);
    };
  }
  auto written = co_await write_change(api, call, call.info.ns, call.info.name, std::move(edit));
  if (!written) co_return Refusal(written.error());
  co_return Reply{.code = written->created ? 201 : 200,
                  .body = encode_object(api, call, *written->object)};
}

}  // namespace grapnel::local
