// What grapnel and the shim say to each other. Shared by both programs, so: libc and views only.
//
// A shim listens on a SOCK_SEQPACKET unix socket, `shim.sock` in its pod's directory: one packet is
// one message. A message is its kind (two bytes) and then fields; a field is its name (two bytes),
// the length of its value (four bytes), the value, and a NUL that the length does not count, so
// that a text can be handed to the system as it lies there. Numbers are eight bytes. The byte order
// is the machine's own. Unknown fields are skipped: a shim outlives the grapnel that started it.
//
// Things of any size (what to run in a container) are the same fields in a memfd, passed along.
//
//   grapnel → shim                       shim → grapnel
//   kHello                               kContainer (one for each), kHelloEnd
//   kStart    + memfd                    kStarted or kStartFailed; later kExited
//   kStop     container, grace, signal   nothing; kExited comes in time
//   kSignal   container or exec id       nothing
//   kExec     + memfd [+ 0, 1, 2]        kExecStarted [+ the terminal] or kExecFailed;
//                                        later kExecExited
//   kResize   container                  nothing
//   kShutdown                            the shim kills what runs and ends
//
// A kStart for a container and attempt that the shim knows is answered with its state and starts
// nothing. kExited is sent only after the record `exit-<container>-<attempt>` is safe on disk; it
// holds the fields of kExited.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace grapnel::local::shim {

enum class Message : uint16_t {
  kNone = 0,
  kHello = 1,
  kStart = 2,
  kStop = 3,
  kSignal = 4,
  kExec = 5,
  kResize = 6,
  kAttach =
      7,  // pipes for its output come along; answered as kExec, with its input where it has one
  kShutdown = 8,
  kCloseInput = 9,

  kContainer = 32,
  kHelloEnd = 33,
  kStarted = 34,
  kStartFailed = 35,
  kExited = 36,
  kExecStarted = 37,
  kExecFailed = 38,
  kExecExited = 39,

  // To and from the anchor, which holds the cluster's own network (network.h).
  kAnchorNamespaces = 64,  // answered with the fds of the network and, if any, user namespace
  kAnchorSocket = 65,      // kDomain, kSocketType, kTransparent: answered with a socket of the
                           // cluster's network
  kAnchorDns = 66,         // answered with the bound UDP and TCP sockets
  kAnchorAddAddress = 67,  // kAddress on the bridge, for a service
  kAnchorRemoveAddress = 68,
  kAnchorReply = 69,  // kError when it failed
};

enum class Field : uint16_t {
  kContainer = 1,
  kAttempt = 2,
  kGrace = 3,   // milliseconds
  kSignal = 4,  // number
  kWholeGroup = 5,
  kExecId = 6,
  kRows = 7,
  kColumns = 8,
  kError = 9,
  kHostPid = 10,
  kState = 11,  // State
  kExitCode = 12,
  kExitSignal = 13,
  kOutOfMemory = 14,
  kStartedAt = 15,   // nanoseconds since 1970
  kFinishedAt = 16,  // likewise
  kNote = 17,        // what works less well than asked, for a person

  // What to run.
  kArgument = 32,
  kEnvironment = 33,
  kDirectory = 34,
  kLogPath = 35,
  kLogMaxBytes = 36,
  kLogMaxFiles = 37,
  kRoot = 38,        // where the container's root is put together; none: the host's own root
  kMount = 39,       // fields of a mount
  kCgroupJoin = 40,  // a cgroup.procs file
  kOomFile = 41,     // a file with a line "oom_kill N"
  kUser = 42,
  kGroup = 43,
  kExtraGroup = 44,
  kCapabilities = 45,  // mask of those kept
  kTerminal = 46,
  kStdin = 47,
  kNewPids = 48,  // a PID namespace of its own
  kNoNewPrivileges = 49,
  kProcessLimit = 50,
  kOpenFileLimit = 51,
  kOomScore = 52,

  // A mount.
  kMountKind = 64,  // MountKind
  kTarget = 65,     // inside the root
  kSource = 66,
  kType = 67,  // of the file system
  kOptions = 68,
  kFlags = 69,  // MS_…
  kMode = 70,
  kMayFail = 71,
  kLayerDirectory = 72,  // of an overlay: upper/ and work/ are made in it
  kMakeSource = 73,      // of a bind: a directory, where it is not there

  // A pod.
  kPodDirectory = 96,
  kHostname = 97,
  kShmBytes = 98,
  kUserNamespaceFd = 99,      // to join before all else
  kNetworkNamespaceFd = 100,  // the cluster's
  kNamespaces = 101,          // CLONE_… flags
  kReportFd = 102,
  kVethName = 103,
  kAddress = 104,  // "10.244.0.5"
  kPrefixLength = 105,
  kGateway = 106,
  kDomainName = 107,
  kBridge = 108,
  kDomain = 109,  // AF_…
  kSocketType = 110,
  kOuterUser = 111,
  kOuterGroup = 112,
  kDnsAddress = 113,
  kMemoryBytes = 114,        // of the next kMemoryDirectory
  kMemoryDirectory = 115,    // below the pod's
  kTransparent = 116,        // may have any address
  kNoWayOut = 117,           // why pods cannot reach beyond the cluster
  kNoWayForDatagrams = 118,  // likewise, by UDP
};

// Where the way out of the cluster's network begins (shim/redirect.h): a port of the bridge.
inline constexpr uint16_t kOutboundPort = 15001;

enum class State : uint64_t { kStarting = 0, kRunning = 1, kExited = 2, kFailedToStart = 3 };

enum class MountKind : uint64_t {
  kFileSystem = 0,  // type, options; a source that is a path is bound where the type is forbidden
  kBind = 1,        // flags may hold MS_REC, MS_RDONLY
  kOverlay = 2,     // source is the lower one; falls back as its fields allow
  kDirectory = 3,   // mkdir -p
  kSymlink = 4,     // source is its text
  kFile = 5,        // an empty one, where there is none
  kReadOnly = 6,    // no more writing to the mount at target
};

// Appends to anything with append(const char*, size_t).
template <class Buffer>
class Writer {
 public:
  explicit Writer(Buffer& out) : out_(out) {}
  void message(Message m) { raw(static_cast<uint16_t>(m)); }
  void text(Field f, std::string_view value) {
    raw(static_cast<uint16_t>(f));
    raw(static_cast<uint32_t>(value.size()));
    out_.append(value.data(), value.size());
    out_.append("", 1);
  }
  void number(Field f, uint64_t value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    text(f, std::string_view(bytes, sizeof bytes));
  }

 private:
  template <class T>
  void raw(T value) {
    char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    out_.append(bytes, sizeof bytes);
  }
  Buffer& out_;
};

struct FieldValue {
  Field field{};
  std::string_view text;  // NUL follows
  uint64_t number() const {
    uint64_t value = 0;
    if (text.size() == sizeof value) std::memcpy(&value, text.data(), sizeof value);
    return value;
  }
};

// Walks over fields; ends at the first that is cut short.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}
  // Takes the kind of a message off its front.
  Message message() {
    uint16_t kind = 0;
    if (rest_.size() < sizeof kind) return Message::kNone;
    std::memcpy(&kind, rest_.data(), sizeof kind);
    rest_.remove_prefix(sizeof kind);
    return static_cast<Message>(kind);
  }
  bool next(FieldValue& value) {
    constexpr size_t kHead = sizeof(uint16_t) + sizeof(uint32_t);
    if (rest_.size() < kHead + 1) return false;
    uint16_t field = 0;
    uint32_t size = 0;
    std::memcpy(&field, rest_.data(), sizeof field);
    std::memcpy(&size, rest_.data() + sizeof field, sizeof size);
    if (size > rest_.size() - kHead - 1 || rest_[kHead + size] != '\0') return false;
    value = {.field = static_cast<Field>(field), .text = rest_.substr(kHead, size)};
    rest_.remove_prefix(kHead + size + 1);
    return true;
  }

 private:
  std::string_view rest_;
};

inline constexpr size_t kLargestMessage = 32 * 1024;
inline constexpr size_t kMostFds = 4;
inline constexpr char kSocketName[] = "shim.sock";

}  // namespace grapnel::local::shim
