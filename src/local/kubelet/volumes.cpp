#include "local/kubelet/volumes.h"

#include <algorithm>

#include "base/quantity.h"
#include "base/strings.h"

namespace grapnel::local::kubelet {
namespace {

constexpr uint64_t kDefaultShm = 64UL << 20;
constexpr int64_t kDefaultMode = 0644;
constexpr std::string_view kApiAccess = "kube-api-access";  // no volume of a spec may be called so
constexpr std::string_view kApiAccessPath = "/var/run/secrets/kubernetes.io/serviceaccount";

bool is_below(std::string_view path) {
  if (path.empty() || path.front() == '/') return false;
  return std::ranges::none_of(split(path, '/'), [](std::string_view part) { return part == ".."; });
}

Failure volume_failure(std::string_view volume, std::string_view why) {
  return fail(Reason::kInvalid, "MountVolume.SetUp failed for volume \"{}\" : {}", volume, why);
}

bool is_mounted_at_shm(const Pod& pod, std::string_view volume) {
  for (const Container& container : all_containers(pod)) {
    for (const Json& mount : elements(find(*container.spec, "volumeMounts"))) {
      if (string_or(find(mount, "name")) == volume &&
          string_or(find(mount, "mountPath")) == "/dev/shm") {
        return true;
      }
    }
  }
  return false;
}

uint64_t memory_size(const Json& empty_dir, const NodeFacts& node) {
  const auto limit = Quantity::parse(string_or(find(empty_dir, "sizeLimit"), "0"));
  if (limit && !limit->is_zero()) return static_cast<uint64_t>(limit->units());
  return static_cast<uint64_t>(node.memory_bytes / 2);
}

// Collects the files of a configMap, secret, downwardAPI or projected volume.
class Files {
 public:
  Files(const VolumeInput& in, unsigned default_mode) : in_(in), default_mode_(default_mode) {}

  Result<> add_source(const Json& reference, std::string_view words, const Json* source,
                      std::string_view name) {
    const bool optional = bool_or(find(reference, "optional"));
    if (source == nullptr) {
      if (optional) return {};
      return fail(Reason::kNotFound, "{} \"{}\" not found", words, name);
    }
    const auto contents = contents_of(*source);
    const JsonArray& items = elements(find(reference, "items"));
    if (items.empty()) {
      for (const auto& [key, content] : contents) put(key, content, default_mode_);
      return {};
    }
    for (const Json& item : items) {
      const auto key = string_or(find(item, "key"));
      const auto path = string_or(find(item, "path"));
      const auto found = contents.find(key);
      if (found == contents.end()) {
        if (optional) continue;
        return fail(Reason::kNotFound, "{} references non-existent {} key: {}", name, words, key);
      }
      if (!is_below(path)) return fail(Reason::kInvalid, "invalid path \"{}\"", path);
      put(path, found->second, mode_of(item));
    }
    return {};
  }

  Result<> add_fields(const Json& downward) {
    for (const Json& item : elements(find(downward, "items"))) {
      const auto path = string_or(find(item, "path"));
      if (!is_below(path)) return fail(Reason::kInvalid, "invalid path \"{}\"", path);
      std::optional<std::string> value;
      if (const Json* field = find(item, "fieldRef")) {
        value = field_of_pod(*in_.pod, string_or(find(*field, "fieldPath")), *in_.node,
                             in_.pod_address);
      } else if (const Json* resource = find(item, "resourceFieldRef")) {
        value = resource_of(*resource);
      }
      if (!value) return fail(Reason::kInvalid, "unsupported field for \"{}\"", path);
      put(path, *value, mode_of(item));
    }
    return {};
  }

  Result<> add_token(const Json& request, const Sources& sources) {
    const auto found = sources.tokens.find(token_key(request));
    if (found == sources.tokens.end()) {
      return fail(Reason::kNotFound, "the service account's token is missing");
    }
    put(string_or(find(request, "path")), found->second, mode_of(request));
    return {};
  }

  void put(std::string_view path, std::string content, unsigned mode) {
    const auto found =
        std::ranges::find_if(files_, [&](const VolumeFile& f) { return f.path == path; });
    VolumeFile file{.path = std::string(path), .content = std::move(content), .mode = mode};
    if (found != files_.end()) {
      *found = std::move(file);
    } else {
      files_.push_back(std::move(file));
    }
  }

  std::vector<VolumeFile> take() { return std::move(files_); }

 private:
  std::optional<std::string> resource_of(const Json& reference) {
    const auto name = string_or(find(reference, "containerName"));
    for (const Container& container : all_containers(*in_.pod)) {
      if (container.name() != name) continue;
      return resource_of_container(container, string_or(find(reference, "resource")),
                                   string_or(find(reference, "divisor"), "1"), *in_.node);
    }
    return std::nullopt;
  }
  unsigned mode_of(const Json& item) const {
    return static_cast<unsigned>(int_or(find(item, "mode"), default_mode_)) & 0777U;
  }

  const VolumeInput& in_;
  unsigned default_mode_;
  std::vector<VolumeFile> files_;
};

Result<> add_projected(Files& files, const VolumeInput& in, const Json& source) {
  if (const Json* map = find(source, "configMap")) {
    const auto name = string_or(find(*map, "name"));
    return files.add_source(*map, "configmap", in.sources->config_map(name), name);
  }
  if (const Json* secret = find(source, "secret")) {
    const auto name = string_or(find(*secret, "name"));
    return files.add_source(*secret, "secret", in.sources->secret(name), name);
  }
  if (const Json* downward = find(source, "downwardAPI")) return files.add_fields(*downward);
  if (const Json* token = find(source, "serviceAccountToken")) {
    return files.add_token(*token, *in.sources);
  }
  return fail(Reason::kInvalid, "this source is not supported here: {}", to_text(source));
}

// None: not a volume of files.
Result<std::optional<std::vector<VolumeFile>>> files_of(const VolumeInput& in, const Json& volume) {
  const auto with_mode = [&](const Json& part) {
    return Files(in,
                 static_cast<unsigned>(int_or(find(part, "defaultMode"), kDefaultMode)) & 0777U);
  };
  if (const Json* map = find(volume, "configMap")) {
    const auto name = string_or(find(*map, "name"));
    Files files = with_mode(*map);
    auto added = files.add_source(*map, "configmap", in.sources->config_map(name), name);
    if (!added) return fail(added.error());
    return files.take();
  }
  if (const Json* secret = find(volume, "secret")) {
    const auto name = string_or(find(*secret, "secretName"));
    Files files = with_mode(*secret);
    auto added = files.add_source(*secret, "secret", in.sources->secret(name), name);
    if (!added) return fail(added.error());
    return files.take();
  }
  if (const Json* downward = find(volume, "downwardAPI")) {
    Files files = with_mode(*downward);
    if (auto added = files.add_fields(*downward); !added) return fail(added.error());
    return files.take();
  }
  if (const Json* projected = find(volume, "projected")) {
    Files files = with_mode(*projected);
    for (const Json& source : elements(find(*projected, "sources"))) {
      if (auto added = add_projected(files, in, source); !added) return fail(added.error());
    }
    return files.take();
  }
  return std::nullopt;
}

// A directory of the host, as a PersistentVolume has it.
Result<Volume> plan_host_volume(Volume out, const Json& volume) {
  out.kind = Volume::Kind::kHost;
  if (const Json* host = at(volume, "spec", "hostPath")) {
    out.source = string_or(find(*host, "path"));
    out.host_type = string_or(find(*host, "type"));
    if (out.host_type == "DirectoryOrCreate") out.kind = Volume::Kind::kDirectory;
    return out;
  }
  if (const Json* local = at(volume, "spec", "local")) {
    out.source = string_or(find(*local, "path"));
    out.host_type = "Directory";
    return out;
  }
  return fail(Reason::kInvalid,
              "PersistentVolume \"{}\": only hostPath and local are supported here",
              string_or(at(volume, "metadata", "name")));
}

Result<Volume> plan_volume(const VolumeInput& in, const Json& spec) {
  Volume out{.name = std::string(string_or(find(spec, "name"))), .source = {}};
  out.source = in.pod_directory + "/volumes/" + out.name;
  if (const Json* empty = find(spec, "emptyDir")) {
    if (string_or(find(*empty, "medium")) != "Memory") return out;
    const bool is_shm = is_mounted_at_shm(*in.pod, out.name);
    out.kind = is_shm ? Volume::Kind::kShm : Volume::Kind::kMemory;
    return out;
  }
  if (const Json* host = find(spec, "hostPath")) {
    out.kind = Volume::Kind::kHost;
    out.source = string_or(find(*host, "path"));
    out.host_type = string_or(find(*host, "type"));
    return out;
  }
  if (const Json* claim = find(spec, "persistentVolumeClaim")) {
    const auto name = string_or(find(*claim, "claimName"));
    const auto found = in.sources->volumes.find(name);
    if (found == in.sources->volumes.end()) {
      return fail(Reason::kNotFound, "persistentvolumeclaim \"{}\" not found or not bound", name);
    }
    return plan_host_volume(std::move(out), found->second);
  }
  if (find(spec, "ephemeral") != nullptr) return out;  // as long as the pod: as an emptyDir
  auto files = files_of(in, spec);
  if (!files) return fail(files.error());
  if (!*files) return fail(Reason::kInvalid, "volumes of this kind are not supported here");
  out.kind = Volume::Kind::kFiles;
  out.files = std::move(**files);
  return out;
}

Result<Volume> api_access(const VolumeInput& in) {
  Files files(in, kDefaultMode);
  if (auto added = files.add_token(api_token_request(), *in.sources); !added) {
    return fail(added.error());
  }
  files.put("ca.crt", in.node->api_authority_pem, kDefaultMode);
  files.put("namespace", std::string(in.pod->meta.ns()), kDefaultMode);
  return Volume{.name = std::string(kApiAccess),
                .kind = Volume::Kind::kFiles,
                .source = fmt::format("{}/{}", in.pod_directory, kApiAccess),
                .files = files.take()};
}

}  // namespace

Result<std::vector<Volume>> plan_volumes(const VolumeInput& in) {
  std::vector<Volume> out;
  for (const Json& spec : elements(find(in.pod->spec(), "volumes"))) {
    auto volume = plan_volume(in, spec);
    if (!volume) {
      return volume_failure(string_or(find(spec, "name")), volume.error().message);
    }
    const Json* group = at(in.pod->spec(), "securityContext", "fsGroup");
    if (group != nullptr && in.node->can_change_user) {
      volume->group = static_cast<uint32_t>(int_or(group));
    }
    out.push_back(std::move(*volume));
  }
  if (!in.node->api_authority_pem.empty() && wants_api_access(*in.pod)) {
    auto access = api_access(in);
    if (!access) return volume_failure(kApiAccess, access.error().message);
    out.push_back(std::move(*access));
  }
  return out;
}

uint64_t shm_bytes(const Pod& pod, const NodeFacts& node) {
  for (const Json& spec : elements(find(pod.spec(), "volumes"))) {
    const Json* empty = find(spec, "emptyDir");
    if (empty == nullptr || string_or(find(*empty, "medium")) != "Memory") continue;
    if (is_mounted_at_shm(pod, string_or(find(spec, "name")))) return memory_size(*empty, node);
  }
  return kDefaultShm;
}

std::vector<MemoryDirectory> memory_directories(const Pod& pod, const NodeFacts& node) {
  std::vector<MemoryDirectory> out;
  for (const Json& spec : elements(find(pod.spec(), "volumes"))) {
    const Json* empty = find(spec, "emptyDir");
    const auto name = string_or(find(spec, "name"));
    if (empty == nullptr || string_or(find(*empty, "medium")) != "Memory") continue;
    if (is_mounted_at_shm(pod, name)) continue;
    out.push_back({.path = fmt::format("volumes/{}", name), .bytes = memory_size(*empty, node)});
  }
  return out;
}

bool has_live_files(const Pod& pod, const NodeFacts& node) {
  if (!node.api_authority_pem.empty() && wants_api_access(pod)) return true;
  return std::ranges::any_of(elements(find(pod.spec(), "volumes")), [](const Json& volume) {
    return find(volume, "configMap") != nullptr || find(volume, "secret") != nullptr ||
           find(volume, "projected") != nullptr || find(volume, "downwardAPI") != nullptr;
  });
}

Result<Mounts> mounts_of(const Container& container, const std::vector<Volume>& volumes,
                         const ContainerEnvironment& environment) {
  Mounts out;
  for (const Json& spec : elements(find(*container.spec, "volumeMounts"))) {
    const auto name = string_or(find(spec, "name"));
    const auto volume =
        std::ranges::find_if(volumes, [&](const Volume& v) { return v.name == name; });
    if (volume == volumes.end()) {
      return fail(Reason::kInvalid, "volumeMounts name a volume that is not there: {}", name);
    }
    Mount mount{.source = volume->source,
                .path = std::string(string_or(find(spec, "mountPath"))),
                .read_only = bool_or(find(spec, "readOnly"))};
    if (volume->kind == Volume::Kind::kShm && mount.path == "/dev/shm") continue;
    if (volume->kind == Volume::Kind::kFiles) mount.read_only = true;
    std::string sub_path(string_or(find(spec, "subPath")));
    if (const Json* expression = find(spec, "subPathExpr")) {
      sub_path = expand(string_or(expression),
                        [&](std::string_view n) { return environment.get_known(n); });
    }
    if (!sub_path.empty()) {
      if (!is_below(sub_path)) return fail(Reason::kInvalid, "invalid subPath \"{}\"", sub_path);
      mount.source += "/" + sub_path;
      // What is in memory only the pod itself can reach.
      mount.make_source = volume->kind == Volume::Kind::kMemory;
      if (volume->kind != Volume::Kind::kFiles && !mount.make_source) {
        out.directories.push_back(mount.source);
      }
    }
    out.mounts.push_back(std::move(mount));
  }
  const auto access =
      std::ranges::find_if(volumes, [](const Volume& v) { return v.name == kApiAccess; });
  const bool is_taken =
      std::ranges::any_of(out.mounts, [](const Mount& m) { return m.path == kApiAccessPath; });
  if (access != volumes.end() && !is_taken) {
    out.mounts.push_back(
        {.source = access->source, .path = std::string(kApiAccessPath), .read_only = true});
  }
  std::ranges::sort(out.mounts, {}, [](const Mount& m) -> const std::string& { return m.path; });
  return out;
}

}  // namespace grapnel::local::kubelet
