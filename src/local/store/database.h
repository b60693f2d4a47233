// The file below the store: SQLite with a write-ahead log, one row for each object that exists.
//
// Blocking: the store calls commit() on a thread of its own, one batch at a time.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "local/store/object.h"

struct sqlite3;
struct sqlite3_stmt;

namespace grapnel::local {

// One change of one object: its new state, or its end.
struct Write {
  std::string resource;  // "pods", "jobs.batch"
  ObjectPtr object;      // as it is afterwards; for a deletion, as it was, with the new version
  ObjectPtr previous;    // nothing for a creation
  bool deleted = false;
};

class Database {
 public:
  // Makes the file where there is none. It is an error when another process has it open.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  // Every object there is, in no order, and then the newest version ever committed.
  Result<uint64_t> load(const std::function<void(std::string resource, Object object)>& found);
  // Commits all of them or none. They are on disk when it returns.
  Result<> commit(const std::vector<Write>& writes);

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  Result<> prepare();
  Result<> run(sqlite3_stmt* statement);
  Result<> execute(const char* sql);
  Result<> write_one(const Write& write);

  sqlite3* handle_;
  sqlite3_stmt* put_ = nullptr;
  sqlite3_stmt* remove_ = nullptr;
  sqlite3_stmt* version_ = nullptr;
};

}  // namespace grapnel::local
