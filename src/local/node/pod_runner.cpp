#include "local/node/pod_runner.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/files.h"
#include "base/log.h"
#include "local/node/cgroup.h"
#include "local/node/container_encoding.h"
#include "local/node/launcher.h"
#include "local/node/mount_plan.h"
#include "local/node/pod_link.h"
#include "local/node/sandbox.h"
#include "local/node/shim_image.h"

namespace grapnel::local {
namespace asio = boost::asio;
namespace {

using shim::Field;
using shim::Message;

std::string about_container(Message kind, const std::string& container) {
  std::string bytes;
  shim::Writer writer(bytes);
  writer.message(kind);
  writer.text(Field::kContainer, container);
  return bytes;
}

// Kept beside the pod, for recover().
std::string encode_info(const PodStatus& pod, bool share_processes) {
  std::string bytes;
  shim::Writer writer(bytes);
  writer.text(Field::kAddress, pod.address);
  writer.text(Field::kNote, pod.note);
  writer.number(Field::kNewPids, share_processes ? 0 : 1);
  return bytes;
}

// It names a directory, so it must not lead anywhere else.
bool is_plain_name(const std::string& name) {
  return !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
         name.size() < 200;
}

std::string short_hash(std::string_view text) {
  uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return fmt::format("{:08x}", hash);
}

}  // namespace

struct PodRunner::Impl {
  PodRunnerOptions options;
  Isolation isolation = Isolation::kNone;
  std::vector<std::string> shortcomings;
  std::string shim;
  std::unique_ptr<ClusterNetwork> network;
  AddressPool loopback{0x7f580000, 16};  // 127.88.0.0: for pods without a network of their own
  Cgroups cgroups;
  std::map<std::string, std::shared_ptr<PodLink>> pods;
  uint64_t next_exec = 1;
  uint64_t next_trash = 1;

  std::string directory_of(const std::string& pod) const {
    return options.state_directory + "/pods/" + pod;
  }
  AddressPool& addresses() { return network ? network->addresses() : loopback; }
  Result<std::shared_ptr<PodLink>> find(const std::string& pod) const {
    const auto found = pods.find(pod);
    if (found == pods.end()) return fail(Reason::kNotFound, "no pod {}", pod);
    return found->second;
  }
  std::shared_ptr<PodLink> make_link(PodStatus status) {
    const std::string id = status.id;
    auto link = std::make_shared<PodLink>(options.executor, std::move(status), directory_of(id));
    link->on_status = [this, id](const ContainerStatus& now) {
      if (options.on_status) options.on_status(id, now);
    };
    link->on_lost = [this, id] {
      if (options.on_lost) options.on_lost(id);
    };
    return link;
  }
  Launch pod_launch(const PodSpec& pod, const std::string& address) const;
  Task<Result<>> sweep(std::string directory);
  Task<Result<PodStatus>> recover_one(std::string id);
};

Launch PodRunner::Impl::pod_launch(const PodSpec& pod, const std::string& address) const {
  Launch what{.program = shim, .role = "pod", .title = pod.id, .config = {}, .fds = {}};
  shim::Writer writer(what.config);
  writer.text(Field::kPodDirectory, directory_of(pod.id));
  writer.text(Field::kHostname, own_name(pod));
  writer.number(Field::kShmBytes, pod.shm_bytes);
  if (isolation == Isolation::kNone) return what;
  for (const MemoryDirectory& memory : pod.memory) {
    writer.number(Field::kMemoryBytes, memory.bytes);
    writer.text(Field::kMemoryDirectory, memory.path);
  }

  uint64_t namespaces = CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWUTS | CLONE_NEWIPC;
  if (!pod.host_network) namespaces |= CLONE_NEWNET;
  if (isolation == Isolation::kUser) namespaces |= CLONE_NEWUSER;
  writer.number(Field::kNamespaces, namespaces);
  if (network->user_fd() >= 0) {
    writer.number(Field::kUserNamespaceFd, kFirstLaunchFd + what.fds.size());
    what.fds.push_back(network->user_fd());
  }
  if (pod.host_network) return what;
  writer.number(Field::kNetworkNamespaceFd, kFirstLaunchFd + what.fds.size());
  what.fds.push_back(network->network_fd());
  writer.text(Field::kVethName, fmt::format("veth{:08x}", parse_address(address).value_or(0)));
  writer.text(Field::kBridge, kBridgeName);
  writer.text(Field::kAddress, address);
  writer.number(Field::kPrefixLength, network->addresses().prefix_length());
  writer.text(Field::kGateway, network->addresses().gateway());
  return what;
}

Task<Result<>> PodRunner::Impl::sweep(std::string directory) {
  std::string config;
  shim::Writer(config).text(Field::kPodDirectory, directory);
  auto done = co_await launch(
      {.program = shim, .role = "sweep", .title = directory, .config = config, .fds = {}});
  if (!done) co_return fail_in("removing " + directory, done.error());
  co_return Result<>();
}

PodRunner::PodRunner(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PodRunner::~PodRunner() = default;

Task<Result<std::unique_ptr<PodRunner>>> PodRunner::open(PodRunnerOptions options) {
  auto impl = std::make_unique<Impl>();
  const IsolationFound found =
      options.isolation ? IsolationFound{.isolation = *options.isolation, .why = "it was asked for"}
                        : find_isolation();
  impl->isolation = found.isolation;
  for (const char* name : {"/bin", "/pods", "/trash"}) {
    auto made = make_directory(options.state_directory + name, 0700);
    if (!made) co_return fail(made.error());
  }
  auto installed = install_shim(options.state_directory + "/bin");
  if (!installed) co_return fail(installed.error());
  impl->shim = *installed;
  if (impl->isolation == Isolation::kNone) {
    impl->shortcomings.push_back(
        "pods are not isolated: " + found.why +
        "; they run as plain processes on loopback addresses of their own");
  } else {
    auto network = co_await ClusterNetwork::open({.executor = options.executor,
                                                  .directory = options.state_directory + "/anchor",
                                                  .shim = impl->shim,
                                                  .isolation = impl->isolation,
                                                  .pod_network = options.pod_network,
                                                  .dns_address = options.dns_address});
    if (!network) co_return fail(network.error());
    impl->network = std::move(*network);
    if (const std::string& why = impl->network->no_way_out(); !why.empty()) {
      impl->shortcomings.push_back("pods reach nothing beyond the cluster: " + why);
    }
    if (const std::string& why = impl->network->no_way_for_datagrams(); !why.empty()) {
      impl->shortcomings.push_back("UDP of pods does not leave the cluster: " + why);
    }
  }
  impl->cgroups = Cgroups::find("grapnel-" + short_hash(options.state_directory));
  for (const char* what : {"cpu", "memory", "pids"}) {
    if (!impl->cgroups.can_limit(what)) {
      impl->shortcomings.push_back(
          fmt::format("limits on {} are not enforced: no cgroup for it can be written here", what));
    }
  }
  impl->options = std::move(options);
  co_return std::unique_ptr<PodRunner>(new PodRunner(std::move(impl)));
}

Isolation PodRunner::isolation() const {
  return impl_->isolation;
}
std::vector<std::string> PodRunner::shortcomings() const {
  return impl_->shortcomings;
}
ClusterNetwork* PodRunner::network() {
  return impl_->network.get();
}
std::string PodRunner::pod_directory(const std::string& pod) const {
  return impl_->directory_of(pod);
}

Task<Result<PodStatus>> PodRunner::start(PodSpec pod) {
  if (const auto known = impl_->find(pod.id)) co_return (*known)->status;
  if (!is_plain_name(pod.id)) co_return fail(Reason::kUsage, "'{}' names no pod", pod.id);
  PodStatus status{
      .id = pod.id, .address = {}, .note = pod.note, .is_lost = false, .containers = {}};
  const auto address = impl_->addresses().take();
  if (!address) co_return fail(Reason::kSystem, "all addresses of the pod network are in use");
  status.address = *address;

  auto link = impl_->make_link(status);
  link->share_processes = pod.share_processes;
  impl_->pods[pod.id] = link;
  const std::string dns = impl_->options.dns_address;
  Result<> done = prepare_pod_directory(link->directory, pod, *address, dns);
  if (done) {
    done = write_file(link->directory + "/pod", encode_info(status, pod.share_processes), 0600);
  }
  if (done) {
    auto launched = co_await launch(impl_->pod_launch(pod, *address));
    if (!launched) done = fail(launched.error());
  }
  if (done) done = co_await link->connect();
  if (!done) {
    const Error error = done.error();
    co_await remove(pod.id);
    co_return fail_in("starting the pod", error);
  }
  co_return link->status;
}

Task<Result<ContainerStatus>> PodRunner::start_container(std::string pod, ContainerSpec container) {
  auto found = impl_->find(pod);
  if (!found) co_return fail(found.error());
  const auto link = *found;
  if (!is_plain_name(container.name)) {
    co_return fail(Reason::kUsage, "'{}' names no container", container.name);
  }
  ContainerSurroundings around{.isolation = impl_->isolation,
                               .share_processes = link->share_processes,
                               .root = {},
                               .cgroup = {}};
  auto cgroup = impl_->cgroups.create(pod, container.name, container.limits);
  if (!cgroup) co_return fail(cgroup.error());
  around.cgroup = std::move(*cgroup);
  const std::string own =
      fmt::format("{}/c/{}/{}", link->directory, container.name, container.attempt);
  if (auto made = make_directory(own, 0755); !made) co_return fail(made.error());
  if (impl_->isolation != Isolation::kNone) {
    around.root = plan_root({.isolation = impl_->isolation,
                             .container_directory = own,
                             .pod_directory = link->directory,
                             .state_directory = impl_->options.state_directory,
                             .cgroup_directories = around.cgroup.directories},
                            container, host_files());
    for (const NewDirectory& directory : around.root.directories) {
      auto made = make_directory(directory.path, directory.mode);
      if (!made) co_return fail(made.error());
    }
  }
  auto spec = bytes_as_fd(encode_container(container, around));
  if (!spec) co_return fail(spec.error());
  const Fd spec_fd(*spec);
  std::string message = about_container(Message::kStart, container.name);
  shim::Writer(message).number(Field::kAttempt, container.attempt);
  if (auto sent = link->send(message, {spec_fd.get()}); !sent) co_return fail(sent.error());
  co_return co_await link->wait_for_start(container.name, container.attempt);
}

Result<> PodRunner::stop_container(const std::string& pod, const std::string& container,
                                   StopOptions how) {
  auto link = impl_->find(pod);
  if (!link) return fail(link.error());
  std::string message = about_container(Message::kStop, container);
  shim::Writer writer(message);
  writer.number(Field::kGrace,
                static_cast<uint64_t>(duration_cast<milliseconds>(how.grace).count()));
  writer.number(Field::kSignal, static_cast<uint64_t>(how.signal));
  writer.number(Field::kWholeGroup, how.whole_group ? 1 : 0);
  return (*link)->send(message);
}

Result<> PodRunner::signal_container(const std::string& pod, const std::string& container,
                                     int signal) {
  auto link = impl_->find(pod);
  if (!link) return fail(link.error());
  std::string message = about_container(Message::kSignal, container);
  shim::Writer(message).number(Field::kSignal, static_cast<uint64_t>(signal));
  return (*link)->send(message);
}

Task<Result<ContainerStatus>> PodRunner::wait_for_end(std::string pod, std::string container) {
  auto link = impl_->find(pod);
  if (!link) co_return fail(link.error());
  const auto held = *link;
  co_return co_await held->wait_for_end(std::move(container));
}

Task<Result<ExecProcess>> PodRunner::exec(std::string pod, ExecSpec what) {
  auto found = impl_->find(pod);
  if (!found) co_return fail(found.error());
  const auto link = *found;
  auto cgroup = impl_->cgroups.create(pod, what.container, {});
  if (!cgroup) co_return fail(cgroup.error());
  auto spec = bytes_as_fd(encode_exec(what, *cgroup, impl_->isolation));
  if (!spec) co_return fail(spec.error());
  const Fd spec_fd(*spec);

  ExecProcess process{.id = impl_->next_exec++, .input = {}, .output = {}, .error = {}};
  std::vector<Fd> theirs;
  std::vector<int> fds = {spec_fd.get()};
  if (!what.terminal) {
    for (Fd* ours : {&process.input, &process.output, &process.error}) {
      int ends[2];
      if (pipe2(ends, O_CLOEXEC) != 0) co_return fail(Reason::kSystem, "pipe: {}", strerror(errno));
      const bool is_input = ours == &process.input;
      *ours = Fd(ends[is_input ? 1 : 0]);
      theirs.emplace_back(ends[is_input ? 0 : 1]);
      fds.push_back(theirs.back().get());
    }
    if (!what.with_stdin) process.input.reset();
  }
  std::string message = about_container(Message::kExec, what.container);
  shim::Writer(message).number(Field::kExecId, process.id);
  link->execs[process.id];
  if (auto sent = link->send(message, fds); !sent) co_return fail(sent.error());
  theirs.clear();
  if (auto started = co_await link->wait_for_exec_start(process.id); !started) {
    link->execs.erase(process.id);
    co_return fail(started.error());
  }
  if (what.terminal) process.input = std::move(link->execs[process.id].terminal);
  co_return process;
}

Task<Result<ExecProcess>> PodRunner::attach(std::string pod, std::string container) {
  auto found = impl_->find(pod);
  if (!found) co_return fail(found.error());
  const auto link = *found;
  ExecProcess process{.id = impl_->next_exec++, .input = {}, .output = {}, .error = {}};
  std::vector<Fd> theirs;
  std::vector<int> fds;
  for (Fd* ours : {&process.output, &process.error}) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) co_return fail(Reason::kSystem, "pipe: {}", strerror(errno));
    *ours = Fd(ends[0]);
    theirs.emplace_back(ends[1]);
    fds.push_back(ends[1]);
  }
  std::string message = about_container(Message::kAttach, container);
  shim::Writer(message).number(Field::kExecId, process.id);
  link->execs[process.id];
  if (auto sent = link->send(message, fds); !sent) co_return fail(sent.error());
  theirs.clear();
  auto started = co_await link->wait_for_exec_start(process.id);
  if (started) process.input = std::move(link->execs[process.id].terminal);
  link->execs.erase(process.id);
  if (!started) co_return fail(started.error());
  co_return process;
}

Result<> PodRunner::close_input(const std::string& pod, const std::string& container) {
  auto link = impl_->find(pod);
  if (!link) return fail(link.error());
  return (*link)->send(about_container(Message::kCloseInput, container));
}

Task<Result<ExecResult>> PodRunner::wait_for_exec(std::string pod, uint64_t id) {
  auto link = impl_->find(pod);
  if (!link) co_return fail(link.error());
  const auto held = *link;
  co_return co_await held->wait_for_exec_end(id);
}

Result<> PodRunner::signal_exec(const std::string& pod, uint64_t id, int signal) {
  auto link = impl_->find(pod);
  if (!link) return fail(link.error());
  std::string message;
  shim::Writer writer(message);
  writer.message(Message::kSignal);
  writer.number(Field::kExecId, id);
  writer.number(Field::kSignal, static_cast<uint64_t>(signal));
  return (*link)->send(message);
}

Task<Result<>> PodRunner::remove(std::string pod) {
  auto found = impl_->find(pod);
  if (!found) co_return Result<>();
  const auto link = *found;
  link->is_ending = true;
  if (link->is_connected()) {
    std::string message;
    shim::Writer(message).message(Message::kShutdown);
    link->send(message);
    co_await link->wait_for_disconnect();
  }
  impl_->cgroups.remove(pod);
  auto swept = co_await discard(link->directory);
  impl_->addresses().give_back(link->status.address);
  impl_->pods.erase(pod);
  co_return swept;
}

Task<Result<>> PodRunner::discard(std::string path) {
  const std::string trash =
      fmt::format("{}/trash/{}-{}", impl_->options.state_directory, getpid(), impl_->next_trash++);
  if (rename(path.c_str(), trash.c_str()) != 0) co_return Result<>();  // it is gone
  co_return co_await impl_->sweep(trash);
}

Task<Result<PodStatus>> PodRunner::Impl::recover_one(std::string id) {
  auto info = read_file(directory_of(id) + "/pod");
  PodStatus status{.id = id, .address = {}, .note = {}, .is_lost = false, .containers = {}};
  bool share_processes = false;
  if (info) {
    shim::Reader reader(*info);
    shim::FieldValue value;
    while (reader.next(value)) {
      if (value.field == Field::kAddress) status.address = value.text;
      if (value.field == Field::kNote) status.note = value.text;
      if (value.field == Field::kNewPids) share_processes = value.number() == 0;
    }
  }
  addresses().take(status.address);
  auto link = make_link(std::move(status));
  link->share_processes = share_processes;
  pods[id] = link;
  if (auto connected = co_await link->connect(); !connected) {
    link->status.is_lost = true;
    link->read_records();
  }
  co_return link->status;
}

Task<Result<std::vector<PodStatus>>> PodRunner::recover() {
  for (const char* name : {"/trash"}) {
    auto swept = co_await impl_->sweep(impl_->options.state_directory + name);
    if (!swept) log_warning("old files stay behind", {{"why", swept.error().message}});
    auto made = make_directory(impl_->options.state_directory + name, 0700);
    if (!made) co_return fail(made.error());
  }
  std::vector<std::string> ids;
  const std::string directory = impl_->options.state_directory + "/pods";
  if (DIR* opened = opendir(directory.c_str())) {
    while (const dirent* entry = readdir(opened)) {
      if (entry->d_name[0] != '.') ids.emplace_back(entry->d_name);
    }
    closedir(opened);
  }
  std::vector<PodStatus> found;
  for (const std::string& id : ids) {
    auto pod = co_await impl_->recover_one(id);
    if (pod) found.push_back(std::move(*pod));
  }
  co_return found;
}

std::vector<PodStatus> PodRunner::pods() const {
  std::vector<PodStatus> all;
  for (const auto& [id, link] : impl_->pods) all.push_back(link->status);
  return all;
}

Task<Result<Fd>> PodRunner::connect(std::string address, uint16_t port) {
  const auto number = parse_address(address);
  if (!number) co_return fail(Reason::kUsage, "'{}' is no IPv4 address", address);
  Fd fd;
  if (impl_->network) {
    auto given = co_await impl_->network->socket(AF_INET, SOCK_STREAM);
    if (!given) co_return fail(given.error());
    fd = std::move(*given);
  } else {
    fd = Fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  }
  fcntl(fd.get(), F_SETFL, O_NONBLOCK);
  constexpr int kTries = 2;  // seven seconds; a pod that has ended does not answer at all
  setsockopt(fd.get(), IPPROTO_TCP, TCP_SYNCNT, &kTries, sizeof kTries);
  const sockaddr_in where = socket_address(*number, port);
  if (::connect(fd.get(), generic(where), sizeof where) != 0) {
    int error = errno;
    if (error == EINPROGRESS) {
      asio::posix::stream_descriptor waiting(impl_->options.executor, dup(fd.get()));
      const auto [waited] = co_await waiting.async_wait(asio::posix::stream_descriptor::wait_write,
                                                        asio::as_tuple(asio::use_awaitable));
      if (waited) throw boost::system::system_error(waited);
      socklen_t size = sizeof error;
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &size);
    }
    if (error != 0) {
      co_return fail(Reason::kTransport, "connecting to {}:{}: {}", address, port, strerror(error));
    }
  }
  co_return fd;
}

Task<Result<>> PodRunner::shut_down() {
  Result<> first;
  while (!impl_->pods.empty()) {
    const std::string id = impl_->pods.begin()->first;
    auto removed = co_await remove(id);
    if (!removed && first) first = removed;
  }
  impl_->cgroups.remove_all();
  if (impl_->network) {
    auto ended = co_await impl_->network->shut_down();
    if (!ended && first) first = ended;
  }
  co_return first;
}

}  // namespace grapnel::local
