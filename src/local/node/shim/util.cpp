#include "local/node/shim/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

namespace grapnel::local::shim {
namespace {
char g_failure[1024];
}  // namespace

bool failed(const char* format, ...) {
  const int error = errno;
  va_list arguments;
  va_start(arguments, format);
  int used = vsnprintf(g_failure, sizeof g_failure, format, arguments);
  va_end(arguments);
  if (used > 0 && static_cast<size_t>(used) < sizeof g_failure) {
    snprintf(g_failure + used, sizeof g_failure - static_cast<size_t>(used), ": %s",
             strerror(error));
  }
  errno = error;
  return false;
}

bool refused(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(g_failure, sizeof g_failure, format, arguments);
  va_end(arguments);
  return false;
}

const char* failure() {
  return g_failure;
}

char* Buffer::grow(size_t count) {
  if (size_ + count > capacity_) {
    size_t larger = capacity_ == 0 ? 256 : capacity_ * 2;
    while (larger < size_ + count) larger *= 2;
    data_ = static_cast<char*>(realloc(data_, larger));
    if (data_ == nullptr) _exit(70);
    capacity_ = larger;
  }
  char* place = data_ + size_;
  size_ += count;
  return place;
}

void Buffer::append(const char* bytes, size_t count) {
  if (count != 0) memcpy(grow(count), bytes, count);
}

char* copy_text(std::string_view text) {
  char* copy = static_cast<char*>(malloc(text.size() + 1));
  if (copy == nullptr) _exit(70);
  memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

int64_t monotonic_ms() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

bool write_all(int fd, const char* bytes, size_t count) {
  while (count != 0) {
    const ssize_t done = write(fd, bytes, count);
    if (done < 0) {
      if (errno == EINTR) continue;
      return false;
    }
    bytes += done;
    count -= static_cast<size_t>(done);
  }
  return true;
}

bool read_all(int fd, Buffer& into) {
  struct stat info{};
  if (fstat(fd, &info) != 0) return false;
  into.clear();
  const size_t size = static_cast<size_t>(info.st_size);
  char* place = into.grow(size + 1);
  size_t got = 0;
  while (got < size) {
    const ssize_t n = pread(fd, place + got, size - got, static_cast<off_t>(got));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    got += static_cast<size_t>(n);
  }
  place[size] = '\0';
  return true;
}

ssize_t read_small(const char* path, char* into, size_t capacity) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return -1;
  size_t got = 0;
  while (got < capacity - 1) {
    const ssize_t n = read(fd, into + got, capacity - 1 - got);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    got += static_cast<size_t>(n);
  }
  close(fd);
  into[got] = '\0';
  return static_cast<ssize_t>(got);
}

bool write_small(const char* path, const char* text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return failed("opening %s", path);
  const bool ok = write_all(fd, text, strlen(text));
  if (!ok) failed("writing %s", path);
  close(fd);
  return ok;
}

int host_pid() {
  char link[32];
  const ssize_t size = readlink("/proc/self", link, sizeof link - 1);
  if (size <= 0) return getpid();
  link[size] = '\0';
  return atoi(link);
}

bool send_packet(int socket, std::string_view bytes, const int* fds, size_t fd_count) {
  iovec part{.iov_base = const_cast<char*>(bytes.data()), .iov_len = bytes.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds)] = {};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (fd_count != 0) {
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
    cmsghdr* head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int) * fd_count);
    memcpy(CMSG_DATA(head), fds, sizeof(int) * fd_count);
  }
  ssize_t sent = 0;
  do {
    sent = sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(bytes.size());
}

ssize_t receive_packet(int socket, char* into, size_t capacity, int* fds, size_t* fd_count) {
  *fd_count = 0;
  iovec part{.iov_base = into, .iov_len = capacity};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int) * kMostFds)];
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return got;
  for (cmsghdr* head = CMSG_FIRSTHDR(&message); head != nullptr;
       head = CMSG_NXTHDR(&message, head)) {
    if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    memcpy(fds, CMSG_DATA(head), count * sizeof(int));
    *fd_count = count;
  }
  return got;
}

int listen_here(const char* name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  snprintf(address.sun_path, sizeof address.sun_path, "%s", name);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  unlink(name);
  if (fd < 0 || bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd, 16) != 0) {
    failed("listening on %s", name);
    if (fd >= 0) close(fd);
    return -1;
  }
  return fd;
}

}  // namespace grapnel::local::shim
