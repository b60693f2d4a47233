// What Grapnel must know of one of its kinds beside the fields (api/) and the rules of its planner
// (operators/). There is one of these for each kind, in a file of its own, and table.h lists them
// all; everything that serves every kind iterates over that list: CRDs, reference pages, `grapnel
// validate`, admission, RBAC, --controllers, metrics and the simulator.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "api/codec.h"
#include "api/schema.h"
#include "base/error.h"
#include "document/json.h"
#include "kube/kind.h"
#include "runtime/admission.h"

namespace grapnel::controllers {

class Wiring;

// What a controller does to a kind, for the RBAC roles that we install.
struct Permission {
  kube::Kind kind;
  std::string_view subresource = "";
  std::vector<std::string_view> verbs;
};

// The kind itself. described<T>() makes one from T's description.
struct KindType {
  kube::Kind kind;
  Json (*crd)() = nullptr;
  std::string (*reference_page)() = nullptr;
};

template <class T>
KindType described() {
  return {.kind = api::Resource<T>::info().kind,
          .crd = api::crd_of<T>,
          .reference_page = api::reference_page_of<T>};
}

using Causes = std::vector<Cause>;

struct Judging {
  api::Unknown unknown = api::Unknown::kIgnore;
  bool strict = false;  // as the original controller
};

// What an object of the kind may say, whatever asks: the webhooks, the laptop's API server and
// `grapnel validate`.
struct Rules {
  // The object as sent, with what it means where it says nothing. Empty: the CRD's defaults will
  // do.
  std::function<Json(Json)> defaulted;
  // Faults of its fields and of what they say together.
  std::function<Causes(const Json& object, Judging how)> faults;
  // Faults of a change, of objects that decode. Empty: a change is judged as a new object is.
  std::function<Causes(const Json& before, const Json& after, bool strict)> faults_of_change;
};

// A function that takes part in the admission of somebody else's kind: JobSets' of pods.
struct AdmissionHook {
  std::string_view path;
  kube::Kind kind;
  Json selector;          // objectSelector: no other object waits for us
  std::string condition;  // CEL, and its name; "": none
  std::string_view condition_name;
  runtime::Review review;
};

struct OurKind {
  std::string_view controller;  // "jobset": in --controllers, metrics and logs
  KindType type;
  Rules rules;
  // What its plans write. What they watch, the informers know.
  std::vector<Permission> writes;
  std::vector<AdmissionHook> mutates = {};
  void (*add)(Wiring& wiring) = nullptr;
};

// The causes of an error that a decoder or a rule gave.
Causes causes_of(const Error& error);

template <class T>
struct TypedRules {
  Result<T> (*decode)(JsonView object, api::Unknown unknown) = api::decode_resource<T>;
  Json (*defaulted)(Json object) = nullptr;
  Causes (*validate)(const T& object) = nullptr;
  Causes (*validate_update)(const T& before, const T& after) = nullptr;
  // As the original controller does, where that differs.
  Causes (*validate_strictly)(const T& object) = nullptr;
  Causes (*validate_update_strictly)(const T& before, const T& after) = nullptr;

  Causes judge(const T& object, bool strict) const {
    if (strict && validate_strictly != nullptr) return validate_strictly(object);
    return validate == nullptr ? Causes() : validate(object);
  }
  Causes judge_change(const T& before, const T& after, bool strict) const {
    if (strict && validate_update_strictly != nullptr) {
      return validate_update_strictly(before, after);
    }
    return validate_update(before, after);
  }
};

template <class T>
Rules rules(TypedRules<T> typed) {
  Rules out;
  if (typed.defaulted != nullptr) out.defaulted = typed.defaulted;
  // A field that is not known hides no other fault.
  out.faults = [typed](const Json& object, Judging how) {
    const auto decoded = typed.decode(object, api::Unknown::kIgnore);
    if (!decoded && how.unknown == api::Unknown::kIgnore) return causes_of(decoded.error());
    Causes causes;
    if (how.unknown == api::Unknown::kRefuse) {
      if (const auto strictly = typed.decode(object, how.unknown); !strictly) {
        causes = causes_of(strictly.error());
      }
    }
    if (decoded) std::ranges::move(typed.judge(*decoded, how.strict), std::back_inserter(causes));
    return causes;
  };
  if (typed.validate_update == nullptr) return out;
  out.faults_of_change = [typed](const Json& before, const Json& after, bool strict) {
    const auto now = typed.decode(after, api::Unknown::kIgnore);
    if (!now) return causes_of(now.error());
    // What was stored under older rules may be mended.
    const auto then = typed.decode(before, api::Unknown::kIgnore);
    return then ? typed.judge_change(*then, *now, strict) : typed.judge(*now, strict);
  };
  return out;
}

}  // namespace grapnel::controllers
