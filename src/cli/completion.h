// Completion scripts for shells, from the commands and options themselves.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace grapnel::cli {

struct CommandWords {
  std::string name;
  std::string help;
  std::vector<std::string> options;  // --name, -o …
};

std::vector<CommandWords> command_tree(const CLI::App& app);
// shell: bash, zsh or fish.
std::string completion_script(std::string_view shell, const std::vector<CommandWords>& commands);

}  // namespace grapnel::cli
