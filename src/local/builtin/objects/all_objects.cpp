#include "local/builtin/objects/all_objects.h"

#include <algorithm>

#include "base/log.h"
#include "kube/status.h"
#include "local/builtin/objects/discovery.h"

namespace grapnel::local {
namespace {

constexpr size_t kMostGone = 10'000;
constexpr seconds kRetry{1};

// Both groups show the same events.
bool is_shown_twice(const kube::Kind& kind) {
  return kind.group == "events.k8s.io" && kind.kind == "Event";
}

}  // namespace

Result<AnyObject> decode_any_object(JsonView object) {
  auto meta = kube::decode_meta(object);
  if (!meta) return fail(meta.error());
  AnyObject any{.meta = std::move(*meta)};
  if (any.meta.owners.empty()) return any;
  const auto owners = object.find("metadata")->find("ownerReferences");
  owners->for_each_element([&](size_t, JsonView owner) {
    const auto blocks = owner.find("blockOwnerDeletion");
    if (blocks && blocks->as_bool().value_or(false)) {
      const auto uid = owner.find("uid");
      any.blocks.emplace_back(uid ? uid->as_string().value_or("") : "");
    }
    return true;
  });
  return any;
}

AllObjects::AllObjects(Executor executor, kube::Client& client, Clock& clock, Random& random)
    : executor_(executor), client_(client), clock_(clock), random_(random), changed_(executor) {}

void AllObjects::look_again() {
  out_of_date_ = true;
  changed_.notify_all();
}

Task<> AllObjects::run() {
  for (;;) {
    while (!out_of_date_) co_await changed_.wait();
    out_of_date_ = false;
    const auto kinds = co_await discover();
    if (kinds) {
      follow(*kinds);
      continue;
    }
    log_warning("the kinds of the server are not known", {{"why", kinds.error().message}});
    out_of_date_ = true;
    co_await clock_.sleep(kRetry);
  }
}

Task<> AllObjects::end() {
  for (auto& followed : kinds_) followed->watch.cancel();
  for (auto& followed : kinds_) co_await followed->watch.join();
}

Task<Result<std::vector<kube::Kind>>> AllObjects::discover() {
  auto core = co_await discover("/api");
  if (!core) co_return core;
  auto groups = co_await discover("/apis");
  if (!groups) co_return groups;
  std::ranges::copy_if(*groups, std::back_inserter(*core),
                       [](const kube::Kind& kind) { return !is_shown_twice(kind); });
  co_return core;
}

Task<Result<std::vector<kube::Kind>>> AllObjects::discover(std::string path) {
  http::Request request{.target = path};
  request.headers.set("accept",
                      "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
  const auto answer = co_await client_.raw(std::move(request));
  if (!answer) co_return fail(answer.error());
  if (answer->status != 200) co_return fail(kube::error_of_answer(*answer, "GET " + path));
  const auto document = parse_json(answer->body);
  if (!document) co_return fail(document.error());
  co_return kinds_of_discovery(*document);
}

void AllObjects::follow(const std::vector<kube::Kind>& kinds) {
  for (auto& followed : kinds_) {
    const bool served = std::ranges::find(kinds, followed->kind) != kinds.end();
    if (followed->served && !served) {
      followed->watch.cancel();
      followed->informer->cache().begin_replace();
      followed->informer->cache().finish_replace();
    } else if (!followed->served && served) {
      followed->watch = spawn(executor_, followed->informer->run());
    }
    followed->served = served;
  }
  for (const auto& kind : kinds) {
    if (std::ranges::none_of(kinds_, [&](const auto& one) { return one->kind == kind; })) add(kind);
  }
}

void AllObjects::add(const kube::Kind& kind) {
  auto& followed = *kinds_.emplace_back(std::make_unique<Followed>());
  followed.kind = kind;
  followed.informer = std::make_unique<runtime::Informer<AnyObject>>(
      client_, clock_, random_, runtime::InformerOptions{.kind = kind}, decode_any_object);
  auto& cache = followed.informer->cache();
  cache.add_index("owner", [](const AnyObject& object) {
    std::vector<std::string> uids;
    for (const auto& owner : object.meta.owners) uids.push_back(owner.uid.text());
    return uids;
  });
  cache.add_index("namespace", [](const AnyObject& object) {
    return object.meta.ns().empty() ? std::vector<std::string>()
                                    : std::vector{std::string(object.meta.ns())};
  });
  cache.add_index("uid",
                  [](const AnyObject& object) { return std::vector{object.meta.uid.text()}; });
  cache.add_handler([this, &followed](const AnyObject* before, const AnyObject* after) {
    note(followed, before, after);
  });
  for (const auto& handler : kind_handlers_) handler(followed);
  followed.watch = spawn(executor_, followed.informer->run());
}

void AllObjects::note(const Followed& kind, const AnyObject* before, const AnyObject* after) {
  if (after == nullptr && gone_.insert(before->meta.uid).second) {
    gone_in_order_.push_back(before->meta.uid);
    if (gone_in_order_.size() > kMostGone) {
      gone_.erase(gone_in_order_.front());
      gone_in_order_.pop_front();
    }
  }
  for (const auto& handler : handlers_) handler(kind, before, after);
}

bool AllObjects::complete() const {
  return !out_of_date_ && !kinds_.empty() && std::ranges::all_of(kinds_, [](const auto& followed) {
    return !followed->served || followed->informer->synced();
  });
}

const AllObjects::Followed* AllObjects::kind(std::string_view group, std::string_view kind) const {
  for (const auto& followed : kinds_) {
    if (followed->served && followed->kind.group == group && followed->kind.kind == kind) {
      return followed.get();
    }
  }
  return nullptr;
}

std::vector<AllObjects::Found> AllObjects::indexed(std::string_view index,
                                                   const std::string& value) const {
  std::vector<Found> found;
  for (const auto& followed : kinds_) {
    for (auto& object : followed->informer->cache().indexed(index, value)) {
      found.push_back({followed.get(), std::move(object)});
    }
  }
  return found;
}

std::vector<AllObjects::Found> AllObjects::owned_by(const kube::Uid& owner) const {
  return indexed("owner", owner.text());
}

std::vector<AllObjects::Found> AllObjects::in_namespace(std::string_view ns) const {
  return indexed("namespace", std::string(ns));
}

AllObjects::Found AllObjects::by_uid(const kube::Uid& uid) const {
  auto found = indexed("uid", uid.text());
  return found.empty() ? Found{} : std::move(found.front());
}

std::vector<AllObjects::Found> AllObjects::of_kind(const Followed& kind) const {
  std::vector<Found> found;
  for (auto& object : kind.informer->cache().all()) found.push_back({&kind, std::move(object)});
  return found;
}

}  // namespace grapnel::local
