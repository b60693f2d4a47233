#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "api/codec.h"
#include "api/schema.h"

namespace grapnel::api {

// A small kind that uses every shape a description can have.
BOOST_DEFINE_ENUM_CLASS(Colour, Red, Green)

struct Part {
  std::string name;
  int32_t count = 1;
};
template <>
struct Description<Part> {
  static constexpr std::string_view kDoc = "A part of the whole.";
  static auto fields() {
    return std::tuple{
        field("name", &Part::name, "Its name.").required().max_length(8).pattern("^[a-z]+$"),
        field("count", &Part::count, "How many.").defaulted().minimum(0).maximum(10),
    };
  }
};

struct SampleSpec {
  std::vector<Part> parts;
  std::optional<bool> suspend;
  Colour colour = Colour::Red;
  std::map<std::string, std::string> labels;
  std::optional<Time> since;
  Json pod;
};
template <>
struct Description<SampleSpec> {
  static constexpr std::string_view kDoc = "What is asked for.";
  static auto fields() {
    return std::tuple{
        field("parts", &SampleSpec::parts, "The parts.").map_by("name").max_items(2),
        field("suspend", &SampleSpec::suspend, "Hold it."),
        field("colour", &SampleSpec::colour, "Its colour.").defaulted().immutable(),
        field("labels", &SampleSpec::labels, "Labels."),
        field("since", &SampleSpec::since, "From when on."),
        field("pod", &SampleSpec::pod, "A pod template."),
    };
  }
  static std::vector<Rule> rules() { return {{"size(self.parts) > 0", "parts are needed"}}; }
};

struct SampleStatus {
  int64_t ready = 0;
};
template <>
struct Description<SampleStatus> {
  static constexpr std::string_view kDoc = "What was seen.";
  static auto fields() {
    return std::tuple{field("ready", &SampleStatus::ready, "Ready parts.").required()};
  }
};

struct Sample {
  kube::Meta meta;
  SampleSpec spec;
  SampleStatus status;
};
template <>
struct Resource<Sample> {
  static ResourceInfo info() {
    return {.kind = {"test.grapnel.dev", "v1", "Sample", "samples"},
            .singular = "sample",
            .short_names = {"sa"},
            .columns = {{"Ready", "integer", ".status.ready"}}};
  }
};

namespace {

Json json(std::string_view text) {
  return parse_json(text).value();
}

TEST(Describe, DecodesWhatItEncodes) {
  const Json text = json(R"({"parts":[{"name":"a","count":3}],"suspend":true,"colour":"Green",
      "labels":{"x":"y"},"since":"2026-01-02T03:04:05Z","pod":{"spec":{"unknown":[1,2]}}})");
  const auto spec = decode<SampleSpec>(text);
  ASSERT_TRUE(spec) << spec.error().message;
  EXPECT_EQ(spec->parts[0].count, 3);
  EXPECT_EQ(spec->colour, Colour::Green);
  EXPECT_TRUE(equal(encode(*spec), text)) << to_text(encode(*spec));
}

TEST(Describe, FillsDefaultsAndLeavesOutWhatIsUnset) {
  const auto spec = decode<SampleSpec>(json(R"({"parts":[{"name":"a"}],"suspend":null})"));
  ASSERT_TRUE(spec);
  EXPECT_EQ(to_text(encode(*spec)), R"({"parts":[{"name":"a","count":1}],"colour":"Red"})");
}

struct FaultCase {
  std::string_view input;
  std::string_view field;
  std::string_view message;
};

class DescribeFaults : public testing::TestWithParam<FaultCase> {};

TEST_P(DescribeFaults, NamesTheFieldAndTheCure) {
  const auto spec = decode<SampleSpec>(json(GetParam().input), Unknown::kRefuse, "spec");
  ASSERT_FALSE(spec);
  ASSERT_EQ(spec.error().causes.size(), 1U) << spec.error().message;
  EXPECT_EQ(spec.error().causes[0].field, GetParam().field);
  EXPECT_EQ(spec.error().causes[0].message, GetParam().message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, DescribeFaults,
    testing::Values(
        FaultCase{R"({"parts":3})", "spec.parts", "Invalid value: 3: must be a list"},
        FaultCase{R"({"parts":[{"count":1}]})", "spec.parts[0].name", "Required value"},
        FaultCase{R"({"parts":[{"name":"A"}]})", "spec.parts[0].name",
                  R"(Invalid value: "A": must match ^[a-z]+$)"},
        FaultCase{R"({"parts":[{"name":"a","count":11}]})", "spec.parts[0].count",
                  R"(Invalid value: "11": must be less than or equal to 10)"},
        FaultCase{R"({"parts":[{"name":"a","count":"1"}]})", "spec.parts[0].count",
                  R"(Invalid value: "1": must be an integer)"},
        FaultCase{R"({"parts":[{"name":"a","count":99999999999}]})", "spec.parts[0].count",
                  R"(Invalid value: 99999999999: must be an integer)"},
        FaultCase{R"({"colour":"Blue"})", "spec.colour",
                  R"(Unsupported value: "Blue": supported values: "Red", "Green")"},
        FaultCase{R"({"colur":"Red"})", "spec.colur",
                  R"(unknown field "colur", did you mean "colour"?)"},
        FaultCase{R"({"since":"yesterday"})", "spec.since",
                  R"(Invalid value: "yesterday": must be a time such as 2026-01-31T12:00:00Z)"},
        FaultCase{R"({"parts":[{"name":"a"},{"name":"b"},{"name":"c"}]})", "spec.parts",
                  R"(Invalid value: "3": must have at most 2 items)"}));

TEST(Describe, ReportsAllFaultsAtOnce) {
  const auto spec = decode<SampleSpec>(json(R"({"parts":[{}],"colour":1,"suspend":"no"})"));
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().causes.size(), 3U);
}

TEST(Describe, OfItsMetadataAWholeResourceKeepsTheIdentity) {
  const auto sample = decode_resource<Sample>(json(
      R"({"metadata":{"name":"s","namespace":"n","uid":"u","annotations":{"a":"b"}},"spec":{}})"));
  ASSERT_TRUE(sample);
  EXPECT_EQ(sample->meta.key.text(), "n/s");
  EXPECT_TRUE(sample->meta.annotations.empty()) << "kept_metadata() names none";
}

TEST(Describe, CrdCarriesDefaultsLimitsRulesAndColumns) {
  const Json crd = crd_of<Sample>();
  EXPECT_EQ(string_or(at(crd, "metadata", "name")), "samples.test.grapnel.dev");
  const Json& version = at(crd, "spec", "versions")->as_array()[0];
  EXPECT_EQ(to_text(*at(version, "additionalPrinterColumns")),
            R"([{"name":"Ready","type":"integer","jsonPath":".status.ready"}])");
  const Json* spec = at(version, "schema", "openAPIV3Schema", "properties", "spec");
  ASSERT_NE(spec, nullptr);
  EXPECT_EQ(to_text(*at(*spec, "x-kubernetes-validations")),
            R"([{"rule":"size(self.parts) > 0","message":"parts are needed"}])");
  EXPECT_EQ(
      to_text(*at(*spec, "properties", "colour")),
      R"({"type":"string","enum":["Red","Green"],"description":"Its colour.",)"
      R"("x-kubernetes-validations":[{"rule":"self == oldSelf","message":"field is immutable"}],)"
      R"("default":"Red"})");
  const Json* count = at(*spec, "properties", "parts", "items", "properties", "count");
  EXPECT_EQ(to_text(*count),
            R"({"type":"integer","format":"int32","description":"How many.","minimum":0,)"
            R"("maximum":10,"default":1})");
  EXPECT_EQ(to_text(*at(*spec, "properties", "pod")),
            R"({"type":"object","x-kubernetes-preserve-unknown-fields":true,)"
            R"("description":"A pod template."})");
}

TEST(Describe, ReferencePageListsEveryField) {
  const std::string page = reference_page_of<Sample>();
  EXPECT_THAT(page, testing::HasSubstr("| `spec.parts[].count` | integer | How many. Default 1."));
  EXPECT_THAT(page, testing::HasSubstr("| `status.ready` | integer | Ready parts. |"));
}

}  // namespace
}  // namespace grapnel::api
