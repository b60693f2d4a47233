// Asks the questions and makes the calls of plans (external.h), for all controllers. Each has a
// coroutine of its own; over all at most `at_once` are under way, and none for longer than its
// executor's time-out.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/async.h"
#include "base/random.h"
#include "kube/meta.h"
#include "runtime/external.h"

namespace grapnel::runtime {

// Answers and acts of one kind. An error without `ambiguous` means that nothing was done.
struct ExternalExecutor {
  std::function<Task<Result<Json>>(Json what)> ask = {};
  std::function<Task<Result<Json>>(Json what, std::string id)> call = {};
  Duration timeout = seconds(10);
};

struct ExternalOptions {
  // Asked before each call: false once we are no longer the leader.
  std::function<bool()> may_call = {};
  size_t at_once = 64;
  Duration first_pause = seconds(1);  // after a call that failed; doubled each time
  Duration longest_pause = minutes(1);
  Duration slowest_question = seconds(10);  // of one that gets no answers, and is asked less often
};

class ExternalRunner {
 public:
  using Wake = std::function<void(size_t lane, const kube::Key& key)>;

  ExternalRunner(Executor executor, Clock& clock, Random& random, ExternalOptions options = {});
  ExternalRunner(const ExternalRunner&) = delete;
  ExternalRunner& operator=(const ExternalRunner&) = delete;
  ~ExternalRunner();

  void add(std::string name, ExternalExecutor executor);
  void on_change(Wake wake) { wake_ = std::move(wake); }

  // What is known for this object. The uid says which: a later one of the same name knows nothing.
  const External& known(size_t lane, const kube::Key& key, const kube::Uid& uid);
  // What its last plan asks and calls for, instead of what the one before did.
  void ask(size_t lane, const kube::Key& key, const kube::Uid& uid,
           std::vector<Question> questions);
  void make(size_t lane, const kube::Key& key, const kube::Uid& uid, std::vector<Call> calls);
  void forget(size_t lane, const kube::Key& key);

  // Ends all that is under way.
  Task<> stop();
  size_t objects() const { return objects_.size(); }

 private:
  using Id = std::pair<size_t, kube::Key>;
  struct Asking {
    Question question;
    Spawned task;
  };
  struct Object {
    kube::Uid uid;
    External known;
    std::map<std::string, Asking> asking;
    std::map<std::string, Spawned> calling;
    std::map<std::string, Call> wanted;  // calls of the last plan
  };

  Object& object(size_t lane, const kube::Key& key, const kube::Uid& uid);
  Object* find(const Id& id, const kube::Uid& uid);
  Task<> keep_asking(Id id, kube::Uid uid, Question question);
  Task<> keep_calling(Id id, kube::Uid uid, Call call);
  Task<Result<Json>> in_time(std::string executor, Task<Result<Json>> task, bool is_call);
  bool note(Fact& fact, Result<Json> answer);
  Duration jittered(Duration length);
  void retire(Spawned task);

  Executor executor_;
  Clock& clock_;
  Random& random_;
  ExternalOptions options_;
  Semaphore permits_;
  std::map<std::string, ExternalExecutor> executors_;
  std::map<Id, Object> objects_;
  std::vector<Spawned> retired_;  // cut off, and not yet ended
  Wake wake_;
};

}  // namespace grapnel::runtime
