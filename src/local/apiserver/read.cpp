// get and list.

#include <fmt/format.h>

#include "base/strings.h"
#include "local/apiserver/api.h"
#include "local/apiserver/list_options.h"
#include "local/apiserver/selection.h"
#include "local/apiserver/table.h"
#include "local/apiserver/write.h"

namespace grapnel::local {
namespace {

std::string list_meta(const ResourceType& type, const Page& page, const std::string& next,
                      bool selects_all) {
  JsonObject meta{{"resourceVersion", std::to_string(page.version)}};
  if (type.custom) meta["continue"] = "";
  if (page.more) {
    meta["continue"] = next;
    if (selects_all) meta["remainingItemCount"] = page.remaining;
  }
  return to_text(meta);
}

std::string list_text(const ResourceType& type, const Page& page, const std::string& meta) {
  std::string text = fmt::format(R"({{"kind":"{}","apiVersion":"{}","metadata":{},"items":[)",
                                 type.list_kind(), type.api_version(), meta);
  size_t size = text.size() + 2;
  for (const ObjectPtr& item : page.items) size += item->json.size() + 1;
  text.reserve(size);
  bool first = true;
  for (const ObjectPtr& item : page.items) {
    if (!first) text.push_back(',');
    first = false;
    text += list_item(type, *item);
  }
  text += "]}";
  return text;
}

std::string partial_list_text(const ResourceType& type, const Page& page, const std::string& meta) {
  std::string text = fmt::format(
      R"({{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{},"items":[)",
      meta);
  bool first = true;
  for (const ObjectPtr& item : page.items) {
    if (!first) text.push_back(',');
    first = false;
    text += to_text(partial_of(object_as(type, *item)));
  }
  text += "]}";
  return text;
}

std::string table_text(const Api& api, const Call& call, const Page& page,
                       const std::string& next) {
  TableOptions options = TableOptions::from(call, api.clock.now());
  options.version = std::to_string(page.version);
  if (page.more) {
    options.next = next;
    options.remaining = static_cast<int64_t>(page.remaining);
  }
  std::vector<Json> objects;
  objects.reserve(page.items.size());
  for (const ObjectPtr& item : page.items) objects.push_back(object_as(*call.type, *item));
  return to_text(table_of(*call.type, objects, options));
}

}  // namespace

Task<Answer<Reply>> get_object(Api& api, Call& call) {
  const auto version = parse_version(call.query("resourceVersion"));
  if (!version) co_return Refusal(version.error());
  if (*version > api.store.version()) {
    co_return Refusal(version_too_large(*version, api.store.version()));
  }
  const std::string key = key_of(call.type->namespaced ? call.info.ns : "", call.info.name);
  const ObjectPtr object = api.store.get(call.type->collection(), key);
  if (!object) co_return Refusal(not_found(call.what(), call.info.name));
  co_return Reply{.body = encode_object(api, call, *object)};
}

Task<Answer<Reply>> list_objects(Api& api, Call& call) {
  const auto selection = Selection::parse(call);
  if (!selection) co_return Refusal(selection.error());
  const auto options = ListOptions::parse(call, api.store.version());
  if (!options) co_return Refusal(options.error());

  ListRange range{.prefix = selection->prefix(),
                  .after = options->after,
                  .limit = options->limit,
                  .version = options->exact_version};
  if (!selection->selects_all()) {
    range.filter = [&selection](const Object& object) { return selection->matches(object); };
  }
  auto page = api.store.list(call.type->collection(), range);
  if (!page) {
    if (options->after.empty()) {
      co_return Refusal(
          expired(fmt::format("The resourceVersion for the provided list is too old.")));
    }
    // The client may continue without a consistent snapshot, and is told how.
    ApiError error = expired(
        "The provided continue parameter is too old to display a consistent list result. You can "
        "start a new list without the continue parameter, or use the continue token in this "
        "response to retrieve the remainder of the results. Continuing with the provided token "
        "results in an inconsistent list - objects that were created, modified, or deleted between "
        "the time the first chunk was returned and now may show up in the list.");
    co_return Refusal(error);
  }
  const std::string next =
      page->more && !page->items.empty()
          ? continue_token(page->version, page->items.back()->key, call.info.ns)
          : "";
  switch (call.accepted.form) {
    case Form::kTable:
      co_return Reply{.body = table_text(api, call, *page, next)};
    case Form::kPartial:
      co_return Reply{
          .body = partial_list_text(*call.type, *page,
                                    list_meta(*call.type, *page, next, selection->selects_all()))};
    case Form::kObject:
      break;
  }
  co_return Reply{.body = list_text(*call.type, *page,
                                    list_meta(*call.type, *page, next, selection->selects_all()))};
}

}  // namespace grapnel::local
