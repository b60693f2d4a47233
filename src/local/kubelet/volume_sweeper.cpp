#include "local/kubelet/volume_sweeper.h"

#include <filesystem>

#include "base/log.h"

namespace grapnel::local::kubelet {

VolumeSweeper::VolumeSweeper(Options options)
    : options_(std::move(options)),
      volumes_(*options_.client, *options_.clock, *options_.random,
               runtime::InformerOptions{.kind = kube::kinds::kPersistentVolume},
               [](JsonView object) -> Result<Volume> {
                 auto meta = kube::decode_meta(object);
                 if (!meta) return fail(meta.error());
                 return Volume{std::move(*meta)};
               }),
      changed_(options_.executor) {
  const auto look = [this] {
    is_due_ = true;
    changed_.notify_all();
  };
  volumes_.cache().add_handler([look](const Volume*, const Volume* after) {
    if (after == nullptr) look();
  });
  volumes_.on_synced(look);
}

Task<> VolumeSweeper::run() {
  for (;;) {
    while (!is_due_ || !volumes_.synced()) co_await changed_.wait();
    is_due_ = false;
    co_await sweep();
  }
}

Task<> VolumeSweeper::sweep() {
  std::vector<std::string> unknown;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(options_.directory, ignored)) {
    std::string name = entry.path().filename().string();
    if (!volumes_.cache().get({Interned(), name})) unknown.push_back(std::move(name));
  }
  for (const std::string& name : unknown) {
    // Our view may be older than the volume: what cannot be made again is looked up before it goes.
    const auto found = co_await options_.client->get(kube::kinds::kPersistentVolume,
                                                     {.ns = "", .name = name, .subresource = ""});
    if (found || !found.error().is(Reason::kNotFound)) continue;
    const auto gone = co_await options_.discard(options_.directory + "/" + name);
    if (!gone) log_warning("a volume's files stay behind", {{"why", gone.error().message}});
  }
}

}  // namespace grapnel::local::kubelet
