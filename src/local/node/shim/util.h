// The few things that the shim needs beyond libc. To stay small, it is linked without the C++
// library.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "local/node/shim_protocol.h"

namespace grapnel::local::shim {

// Notes "<text>: <what errno says>" for the person who asked, and returns false.
[[gnu::format(printf, 1, 2)]] bool failed(const char* format, ...);
// The same without errno.
[[gnu::format(printf, 1, 2)]] bool refused(const char* format, ...);
const char* failure();

// Grows, never shrinks; running out of memory ends the program.
class Buffer {
 public:
  Buffer() = default;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { std::free(data_); }
  void append(const char* bytes, size_t count);
  char* grow(size_t count);  // room for `count` more, counted as used
  void clear() { size_ = 0; }
  char* data() { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {data_, size_}; }

 private:
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

char* copy_text(std::string_view text);
int64_t now_ns();  // since 1970
int64_t monotonic_ms();
bool write_all(int fd, const char* bytes, size_t count);
// The whole of an fd from its start.
bool read_all(int fd, Buffer& into);
// A small file's text, cut at `capacity - 1`; the number of bytes or -1.
ssize_t read_small(const char* path, char* into, size_t capacity);
bool write_small(const char* path, const char* text);
// Our PID as the host sees it; needs the host's /proc.
int host_pid();

// One packet with fds. send: false when the other side is gone or does not read.
bool send_packet(int socket, std::string_view bytes, const int* fds, size_t fd_count);
// -1 with errno; 0 at the end. Received fds are close-on-exec and fill fds[0..fd_count).
ssize_t receive_packet(int socket, char* into, size_t capacity, int* fds, size_t* fd_count);
// A listening packet socket under this name in the current directory.
int listen_here(const char* name);

}  // namespace grapnel::local::shim
