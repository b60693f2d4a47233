#include "local/apiserver/version.h"

#include "document/json.h"

namespace grapnel::local {

std::string version_text() {
  return to_text(JsonObject{{"major", "1"},
                            {"minor", "33"},
                            {"gitVersion", "v1.33.0+grapnel"},
                            {"gitCommit", ""},
                            {"gitTreeState", "clean"},
                            {"buildDate", "1970-01-01T00:00:00Z"},
                            {"goVersion", ""},
                            {"compiler", "clang"},
                            {"platform", "linux/amd64"}});
}

}  // namespace grapnel::local
