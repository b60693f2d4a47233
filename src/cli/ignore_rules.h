// What to leave out of a packed directory: the rules of .gitignore files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "document/pattern.h"

namespace grapnel::cli {

class IgnoreRules {
 public:
  // The text of an ignore file that stands in `folder`, "" for the root: "a/b". A rule that makes
  // no sense is passed over, as git does. Those of folders further down are added later.
  void add(std::string_view text, std::string_view folder);
  // The last rule that fits decides. Whoever walks the tree leaves out a folder with all that is in
  // it.
  bool ignores(std::string_view path, bool is_folder) const;

 private:
  struct Rule {
    Pattern pattern;
    bool takes_back = false;
    bool folders_only = false;
  };
  std::vector<Rule> rules_;
};

}  // namespace grapnel::cli
