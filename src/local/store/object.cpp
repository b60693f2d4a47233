#include "local/store/object.h"

namespace grapnel::local {

std::string_view Object::ns() const {
  const size_t slash = key.find('/');
  return slash == std::string::npos ? std::string_view() : std::string_view(key).substr(0, slash);
}

std::string_view Object::name() const {
  const size_t slash = key.find('/');
  return slash == std::string::npos ? std::string_view(key)
                                    : std::string_view(key).substr(slash + 1);
}

std::optional<std::string_view> Object::label(std::string_view wanted) const {
  std::string_view rest = labels;
  while (!rest.empty()) {
    const size_t key_end = rest.find('\0');
    const size_t value_end = rest.find('\0', key_end + 1);
    if (rest.substr(0, key_end) == wanted) {
      return rest.substr(key_end + 1, value_end - key_end - 1);
    }
    rest.remove_prefix(value_end + 1);
  }
  return std::nullopt;
}

std::string key_of(std::string_view ns, std::string_view name) {
  if (ns.empty()) return std::string(name);
  std::string key;
  key.reserve(ns.size() + 1 + name.size());
  key.append(ns).append("/").append(name);
  return key;
}

std::string pack_labels(JsonView object) {
  std::string packed;
  const auto metadata = object.find("metadata");
  const auto labels = metadata ? metadata->find("labels") : std::nullopt;
  if (!labels) return packed;
  labels->for_each_member([&packed](std::string_view key, JsonView value) {
    packed.append(key).push_back('\0');
    packed.append(value.as_string().value_or("")).push_back('\0');
    return true;
  });
  return packed;
}

}  // namespace grapnel::local
