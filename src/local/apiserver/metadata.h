// The rules of metadata for every kind: identity, times, generation, finalizers.
#pragma once

#include <string>
#include <string_view>

#include "base/random.h"
#include "base/time.h"
#include "document/json.h"
#include "local/apiserver/resource_type.h"
#include "local/apiserver/status.h"

namespace grapnel::local {

std::string new_uid(Random& random);
// The base of a generateName with five letters more.
std::string generate_name(std::string_view base, Random& random);

std::string_view meta_text(const Json& object, std::string_view field);
bool is_being_deleted(const Json& object);
bool has_finalizers(const Json& object);

// A fresh identity; whatever only the server may set is taken out.
void prepare_new_metadata(JsonObject& object, const ResourceType& type, std::string_view ns,
                          Time now, Random& random);
// What an update cannot change is put back.
void keep_old_metadata(JsonObject& object, const Json& old);
// Takes out what no stored object holds: nulls and empty maps of metadata.
// What an update may not give, whatever was there before.
void validate_given_metadata(const Json& object, const Json& old, FieldErrors& errors);
// One owner, one reference; a client that sends one twice is warned.
void drop_repeated_owners(JsonObject& object, std::vector<std::string>& warnings);
void tidy_metadata(JsonObject& object);

void validate_metadata(const Json& object, const ResourceType& type, FieldErrors& errors);
void validate_metadata_update(const Json& object, const Json& old, FieldErrors& errors);

// Same but for metadata.resourceVersion and managedFields.
bool same_content(const Json& a, const Json& b);
// Same but for metadata.resourceVersion.
bool equal_but_version(const Json& a, const Json& b);
// Whether anything changed that counts for metadata.generation.
bool spec_changed(const JsonObject& now, const Json& old, bool status_counts);

}  // namespace grapnel::local
