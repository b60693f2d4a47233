// Small text functions that the standard library lacks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace grapnel {

std::vector<std::string_view> split(std::string_view text, char separator);
std::string join(std::span<const std::string> parts, std::string_view separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);

// The candidate closest to `word` by edit distance, whatever its case, or "" when none is near
// enough to be meant.
std::string_view nearest(std::string_view word, std::span<const std::string_view> candidates);

// Kubernetes' names: empty when the text is valid, otherwise what is wrong with it, in its words.
std::string why_not_dns1123_label(std::string_view text);
std::string why_not_dns1123_subdomain(std::string_view text);
std::string why_not_dns1035_label(std::string_view text);
std::string why_not_label_value(std::string_view text);
std::string why_not_qualified_name(std::string_view text);

std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);
std::string percent_encode(std::string_view text);
std::string percent_decode(std::string_view text);

}  // namespace grapnel
