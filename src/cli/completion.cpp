#include "cli/completion.h"

#include <fmt/format.h>

#include <CLI/App.hpp>

#include "base/strings.h"

namespace grapnel::cli {
namespace {

std::string names_of(const std::vector<CommandWords>& commands) {
  std::string names;
  for (const auto& command : commands) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string bash(const std::vector<CommandWords>& commands) {
  std::string cases;
  for (const auto& command : commands) {
    cases += fmt::format("    {}) words='{}' ;;\n", command.name, join(command.options, " "));
  }
  return fmt::format(R"(# Completion of grapnel for bash: source <(grapnel completion bash)
_grapnel() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" words=''
  case "${{COMP_WORDS[1]}}" in
{}    *) [ "$COMP_CWORD" -eq 1 ] && words='{}' ;;
  esac
  [ "$COMP_CWORD" -eq 1 ] && words='{}'
  mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  [ ${{#COMPREPLY[@]}} -eq 0 ] && compopt -o default
}}
complete -F _grapnel grapnel
)",
                     cases, names_of(commands), names_of(commands));
}

std::string fish(const std::vector<CommandWords>& commands) {
  std::string script = "# Completion of grapnel for fish: grapnel completion fish | source\n";
  for (const auto& command : commands) {
    script += fmt::format("complete -c grapnel -n __fish_use_subcommand -a {} -d '{}'\n",
                          command.name, command.help);
    for (const auto& option : command.options) {
      const bool is_long = option.starts_with("--");
      script += fmt::format("complete -c grapnel -n '__fish_seen_subcommand_from {}' {} {}\n",
                            command.name, is_long ? "-l" : "-s", option.substr(is_long ? 2 : 1));
    }
  }
  return script;
}

}  // namespace

std::vector<CommandWords> command_tree(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const auto* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandWords words{.name = command->get_name(), .help = command->get_description()};
    for (const auto* option : command->get_options()) {
      if (option->get_group().empty()) continue;  // not for people
      for (const auto& name : option->get_lnames()) words.options.push_back("--" + name);
      for (const auto& name : option->get_snames()) words.options.push_back("-" + name);
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

std::string completion_script(std::string_view shell, const std::vector<CommandWords>& commands) {
  if (shell == "fish") return fish(commands);
  // zsh runs bash's completion functions as they are.
  if (shell == "zsh") {
    return "#compdef grapnel\nautoload -U +X bashcompinit && bashcompinit\n" + bash(commands);
  }
  return bash(commands);
}

}  // namespace grapnel::cli
