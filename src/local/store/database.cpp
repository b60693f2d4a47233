#include "local/store/database.h"

#include <sqlite3.h>

namespace grapnel::local {
namespace {

Failure sqlite_error(sqlite3* handle, std::string_view doing) {
  return fail(Reason::kSystem, "{}: {}", doing, sqlite3_errmsg(handle));
}

void bind_text(sqlite3_stmt* statement, int index, std::string_view text) {
  sqlite3_bind_text(statement, index, text.data(), static_cast<int>(text.size()), SQLITE_STATIC);
}

std::string column_text(sqlite3_stmt* statement, int index) {
  const void* bytes = sqlite3_column_blob(statement, index);
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement, index));
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), size);
}

// A row is known by the version that created its object, so a creation appends and no index is
// needed beside the table itself.
constexpr const char* kSchema = R"(
  CREATE TABLE IF NOT EXISTS objects(
    created INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL,
    version INTEGER NOT NULL, value BLOB NOT NULL);
  CREATE TABLE IF NOT EXISTS state(name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
  INSERT OR IGNORE INTO state VALUES('version', 0);
)";

}  // namespace

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
  sqlite3* handle = nullptr;
  const int code =
      sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  std::unique_ptr<Database> database(new Database(handle));
  if (code != SQLITE_OK) return sqlite_error(handle, "opening " + path);
  if (auto ready = database->prepare(); !ready) return fail_in(path, ready.error());
  return database;
}

Result<> Database::prepare() {
  // An exclusive lock keeps a second server off these files and saves the shared-memory index.
  // FULL: an answered write survives a power cut, not only a crash of the process.
  for (const char* sql :
       {"PRAGMA locking_mode=EXCLUSIVE", "PRAGMA journal_mode=WAL", "PRAGMA synchronous=FULL",
        "PRAGMA cache_size=-2048", "PRAGMA wal_autocheckpoint=2000", kSchema}) {
    if (auto done = execute(sql); !done) return done;
  }
  const std::pair<sqlite3_stmt**, const char*> statements[] = {
      {&put_,
       "INSERT INTO objects(created, resource, key, version, value) VALUES(?,?,?,?,?) "
       "ON CONFLICT(created) DO UPDATE SET version=excluded.version, value=excluded.value"},
      {&remove_, "DELETE FROM objects WHERE created=?"},
      {&version_, "UPDATE state SET value=? WHERE name='version'"},
  };
  for (const auto& [statement, sql] : statements) {
    if (sqlite3_prepare_v2(handle_, sql, -1, statement, nullptr) != SQLITE_OK) {
      return sqlite_error(handle_, "preparing a statement");
    }
  }
  return {};
}

Database::~Database() {
  sqlite3_finalize(put_);
  sqlite3_finalize(remove_);
  sqlite3_finalize(version_);
  sqlite3_close(handle_);
}

Result<> Database::execute(const char* sql) {
  if (sqlite3_exec(handle_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
    return sqlite_error(handle_, "the store's database");
  }
  return {};
}

Result<> Database::run(sqlite3_stmt* statement) {
  const int code = sqlite3_step(statement);
  sqlite3_reset(statement);
  sqlite3_clear_bindings(statement);
  if (code != SQLITE_DONE) return sqlite_error(handle_, "writing");
  return {};
}

Result<uint64_t> Database::load(
    const std::function<void(std::string resource, Object object)>& found) {
  sqlite3_stmt* rows = nullptr;
  if (sqlite3_prepare_v2(handle_, "SELECT created, resource, key, version, value FROM objects", -1,
                         &rows, nullptr) != SQLITE_OK) {
    return sqlite_error(handle_, "reading the objects");
  }
  int code = SQLITE_ROW;
  while ((code = sqlite3_step(rows)) == SQLITE_ROW) {
    Object object;
    object.created = static_cast<uint64_t>(sqlite3_column_int64(rows, 0));
    object.key = column_text(rows, 2);
    object.version = static_cast<uint64_t>(sqlite3_column_int64(rows, 3));
    object.json = column_text(rows, 4);
    found(column_text(rows, 1), std::move(object));
  }
  sqlite3_finalize(rows);
  if (code != SQLITE_DONE) return sqlite_error(handle_, "reading the objects");

  sqlite3_stmt* state = nullptr;
  if (sqlite3_prepare_v2(handle_, "SELECT value FROM state WHERE name='version'", -1, &state,
                         nullptr) != SQLITE_OK) {
    return sqlite_error(handle_, "reading the version");
  }
  uint64_t version = 0;
  if (sqlite3_step(state) == SQLITE_ROW) {
    version = static_cast<uint64_t>(sqlite3_column_int64(state, 0));
  }
  sqlite3_finalize(state);
  return version;
}

Result<> Database::write_one(const Write& write) {
  const auto created = static_cast<sqlite3_int64>(write.object->created);
  if (write.deleted) {
    sqlite3_bind_int64(remove_, 1, created);
    return run(remove_);
  }
  sqlite3_bind_int64(put_, 1, created);
  bind_text(put_, 2, write.resource);
  bind_text(put_, 3, write.object->key);
  sqlite3_bind_int64(put_, 4, static_cast<sqlite3_int64>(write.object->version));
  bind_text(put_, 5, write.object->json);
  return run(put_);
}

Result<> Database::commit(const std::vector<Write>& writes) {
  if (auto begun = execute("BEGIN IMMEDIATE"); !begun) return begun;
  Result<> done;
  uint64_t newest = 0;
  for (const Write& write : writes) {
    newest = std::max(newest, write.object->version);
    if (done = write_one(write); !done) break;
  }
  if (done) {
    sqlite3_bind_int64(version_, 1, static_cast<sqlite3_int64>(newest));
    done = run(version_);
  }
  if (done) done = execute("COMMIT");
  if (!done) (void)execute("ROLLBACK");
  return done;
}

}  // namespace grapnel::local
