// Creating and changing objects: every write to the store goes through here, whatever the verb.
#pragma once

#include <functional>
#include <string>

#include "local/apiserver/api.h"

namespace grapnel::local {

struct Written {
  ObjectPtr object;  // as stored; for a dry run, as it would be
  bool created = false;
  bool unchanged = false;
};

// A new object. The namespace must be there and the name free.
// `applied`: it carries its managers already.
Task<Answer<Written>> write_new(Api& api, Call& call, std::string ns, Json object,
                                bool applied = false);

struct Edit {
  // The new state, from the current one. Called when no other write is under way.
  std::function<Answer<Json>(const Json& current)> make;
  // The object to create when there is none; nothing: that is an error.
  std::function<Answer<Json>()> make_new;
  // The part this write may touch: "", "status", "finalize", "scale" …
  std::string subresource;
  // The new state names no version and the kind does not allow that (a plain PUT).
  bool needs_version = false;
  // The new state carries its managers already (server-side apply).
  bool applied = false;
};
Task<Answer<Written>> write_change(Api& api, Call& call, std::string ns, std::string name,
                                   Edit edit, int attempt = 0);

// Deletes an object that nothing holds any more; returns its last state.
Task<Answer<ObjectPtr>> write_end(Api& api, const ResourceType& type, std::string key,
                                  const Json& last);

// The stored object as this version of the kind shows it.
Json object_as(const ResourceType& type, const Object& object);
// The same, ready to be stored.
Json stored_as(const ResourceType& type, Json object);
// The same as an element of a list, where built-in kinds do not say what they are.
std::string list_item(const ResourceType& type, const Object& object);
// Nothing needs a second look when the bytes already are what the type shows.
bool is_stored_version(const ResourceType& type);

}  // namespace grapnel::local
