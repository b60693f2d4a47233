#include "document/selector.h"

#include <algorithm>
#include <charconv>

#include "base/strings.h"

namespace grapnel {
namespace {

using Operator = Requirement::Operator;

std::optional<int64_t> parse_int(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

Result<> check_label(const Requirement& requirement) {
  if (auto why = why_not_qualified_name(requirement.key); !why.empty()) {
    return fail(Reason::kBadRequest, "<nil>: Invalid value: \"{}\": {}", requirement.key, why);
  }
  const bool compares =
      requirement.op == Operator::kGreaterThan || requirement.op == Operator::kLessThan;
  for (size_t i = 0; i < requirement.values.size(); ++i) {
    const std::string& value = requirement.values[i];
    if (compares && !parse_int(value)) {
      return fail(
          Reason::kBadRequest,
          "values[0]: Invalid value: \"{}\": for 'Gt', 'Lt' operators, the value must be an "
          "integer",
          value);
    }
    if (auto why = why_not_label_value(value); !why.empty()) {
      return fail(Reason::kBadRequest, "values[{}][{}]: Invalid value: \"{}\": {}", i,
                  requirement.key, value, why);
    }
  }
  return {};
}

enum class Token { kEnd, kWord, kComma, kOpen, kClose, kEqual, kNotEqual, kNot, kGreater, kLess };

// The grammar of label selectors: requirements with commas between them.
class LabelParser {
 public:
  explicit LabelParser(std::string_view text) : rest_(text) { advance(); }

  Result<std::vector<Requirement>> parse() {
    std::vector<Requirement> requirements;
    if (token_ == Token::kEnd) return requirements;
    for (;;) {
      if (token_ != Token::kWord && token_ != Token::kNot) {
        return unexpected(", expected: !, identifier, or 'end of string'");
      }
      auto requirement = parse_requirement();
      if (!requirement) return in_requirement(std::move(requirement.error()));
      if (auto ok = check_label(*requirement); !ok) return in_requirement(std::move(ok.error()));
      requirements.push_back(std::move(*requirement));
      if (token_ == Token::kEnd) return requirements;
      if (token_ != Token::kComma) return unexpected(", expected: ',' or 'end of string'");
      advance();
      if (token_ != Token::kWord && token_ != Token::kNot) {
        return unexpected(", expected: identifier after ','");
      }
    }
  }

 private:
  static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }
  static bool is_special(char c) {
    return std::string_view("=!(),><").find(c) != std::string_view::npos;
  }

  void advance() {
    while (!rest_.empty() && is_space(rest_.front())) rest_.remove_prefix(1);
    if (rest_.empty()) return set(Token::kEnd, 0);
    if (rest_.starts_with("==")) return set(Token::kEqual, 2);
    if (rest_.starts_with("!=")) return set(Token::kNotEqual, 2);
    switch (rest_.front()) {
      case '=':
        return set(Token::kEqual, 1);
      case '!':
        return set(Token::kNot, 1);
      case ',':
        return set(Token::kComma, 1);
      case '(':
        return set(Token::kOpen, 1);
      case ')':
        return set(Token::kClose, 1);
      case '>':
        return set(Token::kGreater, 1);
      case '<':
        return set(Token::kLess, 1);
      default:
        break;
    }
    const auto end =
        std::ranges::find_if(rest_, [](char c) { return is_space(c) || is_special(c); });
    set(Token::kWord, static_cast<size_t>(end - rest_.begin()));
  }

  void set(Token token, size_t length) {
    token_ = token;
    word_ = rest_.substr(0, length);
    rest_.remove_prefix(length);
  }

  std::string take_word() {
    std::string word(word_);
    advance();
    return word;
  }

  Result<Requirement> parse_requirement() {
    if (token_ == Token::kNot) {
      advance();
      if (token_ != Token::kWord) return unexpected(", expected: identifier");
      Requirement absent{.key = take_word(), .op = Operator::kDoesNotExist, .values = {}};
      return absent;
    }
    Requirement requirement{.key = take_word(), .op = Operator::kExists, .values = {}};
    switch (token_) {
      case Token::kEnd:
      case Token::kComma:
        return requirement;
      case Token::kEqual:
        return with_value(std::move(requirement), Operator::kIn);
      case Token::kNotEqual:
        return with_value(std::move(requirement), Operator::kNotIn);
      case Token::kGreater:
        return with_value(std::move(requirement), Operator::kGreaterThan);
      case Token::kLess:
        return with_value(std::move(requirement), Operator::kLessThan);
      default:
        break;
    }
    if (word_ == "in") return with_list(std::move(requirement), Operator::kIn);
    if (word_ == "notin") return with_list(std::move(requirement), Operator::kNotIn);
    return unexpected(", expected: in, notin, =, ==, !=, gt, lt");
  }

  Result<Requirement> with_value(Requirement requirement, Operator op) {
    advance();
    requirement.op = op;
    if (token_ == Token::kEnd || token_ == Token::kComma) {
      requirement.values = {""};
    } else if (token_ == Token::kWord) {
      requirement.values = {take_word()};
    } else {
      return unexpected(", expected: identifier");
    }
    return requirement;
  }

  Result<Requirement> with_list(Requirement requirement, Operator op) {
    advance();
    requirement.op = op;
    if (token_ != Token::kOpen) return unexpected(" expected: '('");
    advance();
    if (token_ == Token::kEnd) return unexpected(", expected: ',', ')' or identifier");
    // Nothing between two commas, or next to a bracket, is the empty value.
    for (bool more = true; more;) {
      requirement.values.push_back(token_ == Token::kWord ? take_word() : "");
      more = token_ == Token::kComma;
      if (more) advance();
    }
    if (token_ != Token::kClose) return unexpected(", expected: ',' or ')'");
    advance();
    std::ranges::sort(requirement.values);
    const auto repeated = std::ranges::unique(requirement.values);
    requirement.values.erase(repeated.begin(), repeated.end());
    return requirement;
  }

  // In Kubernetes' own words, commas included: people search for them.
  Failure unexpected(std::string_view expected) const {
    return fail(Reason::kBadRequest, "found '{}'{}", word_, expected);
  }
  static Failure in_requirement(Error error) {
    error.message = "unable to parse requirement: " + error.message;
    return fail(std::move(error));
  }

  std::string_view rest_;
  std::string_view word_;
  Token token_ = Token::kEnd;
};

std::optional<std::string> unescape_field(std::string_view text) {
  std::string value;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      if (++i == text.size() || std::string_view("\\,=").find(text[i]) == std::string_view::npos)
        return std::nullopt;
    } else if (text[i] == '=') {
      return std::nullopt;
    }
    value += text[i];
  }
  return value;
}

std::string escape_field(std::string_view text) {
  std::string value;
  for (const char c : text) {
    if (c == '\\' || c == ',' || c == '=') value += '\\';
    value += c;
  }
  return value;
}

std::vector<std::string_view> split_fields(std::string_view text) {
  std::vector<std::string_view> terms;
  size_t start = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == ',') {
      terms.push_back(text.substr(start, i - start));
      start = i + 1;
    }
  }
  terms.push_back(text.substr(start));
  return terms;
}

Result<Requirement> parse_field_term(std::string_view term) {
  const size_t at = term.find('=');
  if (at == std::string_view::npos) {
    return fail(Reason::kBadRequest, "can't understand '{}'", term);
  }
  const bool negated = at > 0 && term[at - 1] == '!';
  const size_t value_at = !negated && term.substr(at + 1).starts_with('=') ? at + 2 : at + 1;
  const std::string_view key = term.substr(0, negated ? at - 1 : at);
  auto value = unescape_field(term.substr(value_at));
  if (key.empty() || !value) {
    return fail(Reason::kBadRequest, "can't understand '{}'", term);
  }
  return Requirement{.key = std::string(key),
                     .op = negated ? Operator::kNotIn : Operator::kIn,
                     .values = {std::move(*value)}};
}

Result<Requirement> expression_of(const Json& expression, size_t index) {
  static constexpr std::pair<std::string_view, Operator> kNames[] = {
      {"In", Operator::kIn},
      {"NotIn", Operator::kNotIn},
      {"Exists", Operator::kExists},
      {"DoesNotExist", Operator::kDoesNotExist},
  };
  const std::string where = fmt::format("matchExpressions[{}]", index);
  const std::string_view op = string_or(find(expression, "operator"));
  const auto* name = std::ranges::find(kNames, op, &std::pair<std::string_view, Operator>::first);
  if (name == std::end(kNames)) {
    return fail(Reason::kInvalid, "{}.operator: \"{}\" is not a valid label selector operator",
                where, op);
  }
  Requirement requirement{
      .key = std::string(string_or(find(expression, "key"))), .op = name->second, .values = {}};
  if (const Json* values = find(expression, "values"); values != nullptr && !values->is_null()) {
    if (!values->is_array()) return fail(Reason::kInvalid, "{}.values: must be an array", where);
    for (const Json& value : values->get_array()) {
      if (!value.is_string()) return fail(Reason::kInvalid, "{}.values: must be strings", where);
      requirement.values.emplace_back(string_or(&value));
    }
  }
  const bool takes_values = name->second == Operator::kIn || name->second == Operator::kNotIn;
  if (takes_values == requirement.values.empty()) {
    return fail(Reason::kInvalid, "{}.values: {} for operator {}", where,
                takes_values ? "must be specified" : "may not be specified", op);
  }
  if (auto ok = check_label(requirement); !ok) return fail_in(where, std::move(ok.error()));
  return requirement;
}

bool satisfies(const Requirement& requirement, std::optional<std::string_view> value) {
  switch (requirement.op) {
    case Operator::kIn:
      return value && std::ranges::count(requirement.values, *value) > 0;
    case Operator::kNotIn:
      return !value || std::ranges::count(requirement.values, *value) == 0;
    case Operator::kExists:
      return value.has_value();
    case Operator::kDoesNotExist:
      return !value;
    case Operator::kGreaterThan:
    case Operator::kLessThan:
      break;
  }
  const auto number = value ? parse_int(*value) : std::nullopt;
  const auto bound =
      requirement.values.empty() ? std::nullopt : parse_int(requirement.values.front());
  if (!number || !bound) return false;
  return requirement.op == Operator::kGreaterThan ? *number > *bound : *number < *bound;
}

std::string text_of(const Requirement& requirement, bool of_field) {
  const auto& [key, op, values] = requirement;
  const bool list = op == Operator::kIn || op == Operator::kNotIn;
  if (list && values.size() == 1) {
    return fmt::format("{}{}{}", key, op == Operator::kIn ? "=" : "!=",
                       of_field ? escape_field(values[0]) : values[0]);
  }
  switch (op) {
    case Operator::kIn:
      return fmt::format("{} in ({})", key, join(values, ","));
    case Operator::kNotIn:
      return fmt::format("{} notin ({})", key, join(values, ","));
    case Operator::kExists:
      return key;
    case Operator::kDoesNotExist:
      return "!" + key;
    case Operator::kGreaterThan:
      return fmt::format("{}>{}", key, join(values, ","));
    case Operator::kLessThan:
      return fmt::format("{}<{}", key, join(values, ","));
  }
  return "";
}

}  // namespace

Result<Selector> Selector::parse_labels(std::string_view text) {
  auto requirements = LabelParser(text).parse();
  if (!requirements) return fail(std::move(requirements.error()));
  Selector selector;
  selector.requirements_ = std::move(*requirements);
  return selector;
}

Result<Selector> Selector::parse_fields(std::string_view text) {
  Selector selector;
  selector.of_fields_ = true;
  for (const std::string_view term : split_fields(text)) {
    if (term.empty()) continue;
    auto requirement = parse_field_term(term);
    if (!requirement) {
      return fail(Reason::kBadRequest, "invalid selector: '{}'; {}", text,
                  requirement.error().message);
    }
    selector.requirements_.push_back(std::move(*requirement));
  }
  return selector;
}

Result<Selector> Selector::from_label_selector(const Json& selector) {
  if (selector.is_null()) return nothing();
  if (!selector.is_object()) return fail(Reason::kInvalid, "a label selector must be an object");
  Selector result;
  if (const Json* labels = find(selector, "matchLabels"); labels != nullptr && !labels->is_null()) {
    if (!labels->is_object()) return fail(Reason::kInvalid, "matchLabels: must be an object");
    for (const auto& [key, value] : labels->get_object()) {
      if (!value.is_string()) {
        return fail(Reason::kInvalid, "matchLabels[{}]: must be a string", std::string_view(key));
      }
    }
    result = from_map(labels->get_object());
    for (const Requirement& requirement : result.requirements_) {
      if (auto ok = check_label(requirement); !ok) {
        return fail_in("matchLabels", std::move(ok.error()));
      }
    }
  }
  const Json* expressions = find(selector, "matchExpressions");
  if (expressions == nullptr || expressions->is_null()) return result;
  if (!expressions->is_array()) return fail(Reason::kInvalid, "matchExpressions: must be an array");
  size_t index = 0;
  for (const Json& expression : expressions->get_array()) {
    auto requirement = expression_of(expression, index++);
    if (!requirement) return fail(std::move(requirement.error()));
    result.requirements_.push_back(std::move(*requirement));
  }
  return result;
}

Selector Selector::from_map(const JsonObject& labels) {
  Selector selector;
  for (const auto& [key, value] : labels) {
    selector.requirements_.push_back(
        {.key = std::string(key), .op = Operator::kIn, .values = {std::string(string_or(&value))}});
  }
  std::ranges::sort(selector.requirements_, {}, &Requirement::key);
  return selector;
}

Selector Selector::nothing() {
  Selector selector;
  selector.requirements_.push_back({.key = "", .op = Operator::kIn, .values = {}});
  return selector;
}

bool Selector::matches(const Lookup& lookup) const {
  return std::ranges::all_of(requirements_, [&](const Requirement& requirement) {
    auto value = lookup(requirement.key);
    if (of_fields_ && !value) value = "";
    return satisfies(requirement, value);
  });
}

bool Selector::matches(const JsonObject* labels) const {
  return matches([labels](std::string_view key) -> std::optional<std::string_view> {
    const Json* value = labels == nullptr ? nullptr : labels->if_contains(key);
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return string_or(value);
  });
}

std::string Selector::text() const {
  std::vector<std::string> parts;
  for (const Requirement& requirement : requirements_) {
    parts.push_back(text_of(requirement, of_fields_));
  }
  return join(parts, ",");
}

}  // namespace grapnel
