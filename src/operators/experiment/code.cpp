#include "operators/experiment/code.h"

#include <fmt/format.h>

namespace grapnel::experiment {
namespace {

constexpr std::string_view kArchiveDirectory = "/mnt/code-archive";

JsonArray& list_in(JsonObject& object, std::string_view name) {
  Json& list = object[name];
  if (!list.is_array()) list = JsonArray();
  return list.as_array();
}

JsonObject mount(std::string_view name, std::string_view path) {
  return {{"name", name}, {"mountPath", path}};
}

}  // namespace

void add_code(JsonObject& pod, std::string_view config_map) {
  JsonArray& volumes = list_in(pod, "volumes");
  volumes.push_back(JsonObject{{"name", "code"}, {"emptyDir", JsonObject{}}});
  volumes.push_back(
      JsonObject{{"name", "code-archive"}, {"configMap", JsonObject{{"name", config_map}}}});
  JsonObject& container = pod.at("containers").as_array().at(0).as_object();
  list_in(container, "volumeMounts").push_back(mount("code", kCodeDirectory));
  container["workingDir"] = kCodeDirectory;
  JsonObject archive = mount("code-archive", kArchiveDirectory);
  archive["readOnly"] = true;
  // The same image, for its tar; the same resources, so that quotas and limits see no more.
  list_in(pod, "initContainers")
      .push_back(JsonObject{
          {"name", "code"},
          {"image", container.at("image")},
          {"command", JsonArray{"tar", "-xzof", fmt::format("{}/{}", kArchiveDirectory, kCodeFile),
                                "-C", kCodeDirectory}},
          {"resources", container.at("resources")},
          {"volumeMounts", JsonArray{mount("code", kCodeDirectory), std::move(archive)}}});
}

}  // namespace grapnel::experiment
