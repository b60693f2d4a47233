// What a list or a watch asks for: a namespace, labels and fields, in the syntax of the API. Of it
// what our informers use: "key", "!key", "key=value" and "key!=value", joined by commas.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/json.h"

namespace grapnel::simulation {

class Selection {
 public:
  Selection(std::string_view ns, std::string_view labels, std::string_view fields);
  bool matches(const Json& object) const;

 private:
  struct Requirement {
    std::vector<std::string> path;
    enum class Form { kExists, kMissing, kIs, kIsNot } form;
    std::string value;
    bool holds(const Json& object) const;
  };
  static std::vector<Requirement> parse(std::string_view text, bool labels);

  std::string ns_;
  std::vector<Requirement> requirements_;
};

}  // namespace grapnel::simulation
