#include "local/kubelet/log_watch.h"

#include <sys/inotify.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <vector>

#include "base/log.h"
#include "local/kubelet/fd_stream.h"

namespace grapnel::local::kubelet {
namespace {

constexpr Duration kPoll = milliseconds(50);  // without inotify
// The directory is watched: a log is rotated into others beside it.
constexpr uint32_t kWhat = IN_MODIFY | IN_CREATE | IN_MOVED_TO;

}  // namespace

struct LogWatch::Impl {
  struct Watch {
    int number = -1;
    size_t followers = 0;
  };
  Impl(Executor executor_in, Clock& clock_in) : executor(std::move(executor_in)), clock(clock_in) {}

  bool open() {
    if (events) return true;
    Fd fd(inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
    if (!fd) {
      log_warning("logs are followed by looking again and again", {{"why", strerror(errno)}});
      return false;
    }
    events = std::make_unique<FdStream>(executor, std::move(fd));
    return true;
  }

  bool add(const std::string& directory) {
    if (!events) return false;
    Watch& watch = watches[directory];
    if (watch.followers++ > 0) return true;
    watch.number = inotify_add_watch(events->fd(), directory.c_str(), kWhat);
    if (watch.number >= 0) return true;
    watches.erase(directory);
    return false;
  }

  void remove(const std::string& directory) {
    const auto found = watches.find(directory);
    if (found == watches.end() || --found->second.followers > 0) return;
    inotify_rm_watch(events->fd(), found->second.number);
    watches.erase(found);
  }

  void take(std::string_view bytes) {
    while (bytes.size() >= sizeof(inotify_event)) {
      inotify_event event{};
      memcpy(&event, bytes.data(), sizeof event);
      bytes.remove_prefix(std::min(bytes.size(), sizeof event + event.len));
      for (Follower* follower : followers) {
        const auto watch = watches.find(follower->directory_);
        const bool is_its = watch != watches.end() && watch->second.number == event.wd;
        if (is_its || (event.mask & IN_Q_OVERFLOW) != 0) follower->wake();
      }
    }
  }

  static Task<> read(std::shared_ptr<Impl> self) {
    for (;;) {
      const auto bytes = co_await self->events->read();
      if (!bytes || bytes->empty()) co_return;
      self->take(*bytes);
    }
  }

  Executor executor;
  Clock& clock;
  std::unique_ptr<FdStream> events;
  std::map<std::string, Watch> watches;  // by directory
  std::vector<Follower*> followers;
};

LogWatch::Follower::Follower(std::shared_ptr<Impl> all, const std::string& path)
    : all_(std::move(all)),
      directory_(path.substr(0, path.rfind('/'))),
      is_watched_(all_->add(directory_)),
      news_(all_->executor) {
  all_->followers.push_back(this);
}

LogWatch::Follower::~Follower() {
  std::erase(all_->followers, this);
  if (is_watched_) all_->remove(directory_);
}

void LogWatch::Follower::wake() {
  has_news_ = true;
  news_.notify_all();
}

Task<> LogWatch::Follower::wait_for_signal() {
  while (!has_news_) co_await news_.wait();
}

Task<> LogWatch::Follower::wait() {
  if (is_watched_) {
    co_await wait_for_signal();
  } else {
    co_await with_deadline(all_->clock, all_->clock.instant() + kPoll, wait_for_signal());
  }
  has_news_ = false;
}

LogWatch::LogWatch(Executor executor, Clock& clock)
    : impl_(std::make_shared<Impl>(std::move(executor), clock)) {}
LogWatch::~LogWatch() = default;

std::shared_ptr<LogWatch::Follower> LogWatch::follow(const std::string& path) {
  const bool is_new = impl_->events == nullptr;
  if (impl_->open() && is_new) reading_ = spawn(impl_->executor, Impl::read(impl_));
  return std::make_shared<Follower>(impl_, path);
}

void LogWatch::wake_all() {
  for (Follower* follower : impl_->followers) follower->wake();
}

}  // namespace grapnel::local::kubelet
