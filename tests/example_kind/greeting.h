// A made-up kind, whole: docs/add-a-kind.md shows these files, and a test runs them.
#pragma once

#include "api/codec.h"
#include "api/describe.h"
#include "kube/meta.h"

namespace example {

struct GreetingSpec {
  std::string text;
  int32_t copies = 1;
};

struct GreetingStatus {
  int32_t cards = 0;
};

struct Greeting {
  grapnel::kube::Meta meta;
  GreetingSpec spec;
  GreetingStatus status;
  bool operator==(const Greeting& other) const;
};

inline constexpr grapnel::kube::Kind kGreeting{"example.grapnel.dev", "v1", "Greeting",
                                               "greetings"};

}  // namespace example

namespace grapnel::api {

template <>
struct Description<example::GreetingSpec> {
  static constexpr std::string_view kDoc = "What is to be said, and how often.";
  static auto fields() {
    using T = example::GreetingSpec;
    return std::tuple{
        field("text", &T::text, "The words on each card.").required().max_length(80),
        field("copies", &T::copies, "How many cards.").defaulted().minimum(0).maximum(10),
    };
  }
};

template <>
struct Description<example::GreetingStatus> {
  static constexpr std::string_view kDoc = "What has been written.";
  static auto fields() {
    using T = example::GreetingStatus;
    return std::tuple{field("cards", &T::cards, "Cards that exist.").defaulted()};
  }
};

template <>
struct Resource<example::Greeting> {
  static ResourceInfo info() {
    return {.kind = example::kGreeting,
            .singular = "greeting",
            .columns = {{"Cards", "integer", ".status.cards"}}};
  }
};

}  // namespace grapnel::api
