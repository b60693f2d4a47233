// The probe: a program through which Python tests use our own client and runtime. It reads one
// command on each line of standard input and writes answers to standard output:
//
//   {"id": 7, "do": "get", "kind": ["", "v1", "Pod", "pods", true], "namespace": "a", "name": "b"}
//   {"id": 7, "ok": {…}}                  the end of a command that went well
//   {"id": 7, "error": {"reason": …}}     the end of one that did not
//   {"id": 7, "event": {…}}               what came on the way, for streams
//
// Commands run side by side. {"do": "cancel", "id": 8, "target": 7} ends one early; the end of
// standard input ends all. To add commands, write a function like add_client_commands() in a file
// of its own and call it in main().
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/async.h"
#include "base/result.h"
#include "document/json.h"
#include "kube/connect.h"

namespace grapnel::probe {

// Where the answers to one command go.
class Reply {
 public:
  explicit Reply(int64_t id) : id_(id) {}
  void event(Json value) const;
  void ok(Json value) const;
  void error(const Error& error) const;
  // The one or the other.
  void result(Result<Json> result) const;

 private:
  void write(std::string_view key, Json value) const;
  int64_t id_;
};

// What all commands share.
struct Session {
  Executor executor;
  kube::Connection connection;
  kube::Client& client() const { return *connection.client; }
};

using Handler = std::function<Task<>(Session& session, Json command, Reply reply)>;
using Commands = std::map<std::string, Handler, std::less<>>;

void add_client_commands(Commands& commands);
void add_runtime_commands(Commands& commands);

// Of a command: ["", "v1", "Pod", "pods", true].
kube::Kind kind_of(const Json& command);
// The member as text, "" when it is missing.
std::string text_of(const Json& command, std::string_view key);

}  // namespace grapnel::probe
