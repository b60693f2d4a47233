// jobset_tool: our rules for JobSets as a program, for tests that compare them with others'.
//
//   jobset_tool check [--strict] < objects   one JobSet in JSON a line; answers each with a line:
//                                            its faults as a JSON list of {field, message}
//   jobset_tool update < pairs               the same for [before, after]
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>

#include "operators/jobset/defaults.h"
#include "operators/jobset/validate.h"

namespace grapnel {
namespace {

Json to_json(const std::vector<Cause>& causes) {
  JsonArray list;
  for (const auto& cause : causes) {
    list.push_back(JsonObject{{"field", cause.field}, {"message", cause.message}});
  }
  return list;
}

Json faults_of(const Error& error) {
  if (!error.causes.empty()) return to_json(error.causes);
  return JsonArray{JsonObject{{"field", ""}, {"message", error.message}}};
}

Result<api::JobSet> read(const Json& object) {
  return api::decode_jobset(jobset::defaulted_object(object));
}

Json check(const Json& object) {
  const auto jobset = read(object);
  return jobset ? to_json(jobset::validate(*jobset)) : faults_of(jobset.error());
}

Json check_strictly(const Json& object) {
  const auto jobset = read(object);
  return jobset ? to_json(jobset::validate_strictly(*jobset)) : faults_of(jobset.error());
}

Json update(const Json& pair) {
  if (!pair.is_array() || pair.as_array().size() != 2) return "a pair is asked for";
  const auto before = read(pair.as_array()[0]);
  const auto after = read(pair.as_array()[1]);
  if (!before) return faults_of(before.error());
  if (!after) return faults_of(after.error());
  return to_json(jobset::validate_update(*before, *after));
}

int answer_lines(Json (*answer)(const Json&)) {
  for (std::string line; std::getline(std::cin, line);) {
    const auto value = parse_json(line);
    std::cout << to_text(value ? answer(*value) : faults_of(value.error())) << std::endl;
  }
  return 0;
}

int usage() {
  std::fputs("usage: jobset_tool check [--strict] | update\n", stderr);
  return 2;
}

}  // namespace
}  // namespace grapnel

int main(int argc, char** argv) {
  using namespace grapnel;
  const std::string_view command = argc >= 2 ? argv[1] : "";
  if (command == "check" && argc == 3 && std::string_view(argv[2]) == "--strict") {
    return answer_lines(check_strictly);
  }
  if (argc != 2) return usage();
  if (command == "check") return answer_lines(check);
  if (command == "update") return answer_lines(update);
  return usage();
}
