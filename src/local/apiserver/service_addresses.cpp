#include "local/apiserver/service_addresses.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>

namespace grapnel::local {
namespace {

constexpr int64_t kFirstPort = 30000;
constexpr int64_t kLastPort = 32767;
// The lower part of the range is for addresses that users choose.
constexpr uint32_t kStaticPart = 16;

std::string text_of(uint32_t address) {
  return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255,
                     address & 255);
}

std::optional<uint32_t> address_of(std::string_view text) {
  in_addr parsed{};
  if (inet_pton(AF_INET, std::string(text).c_str(), &parsed) != 1) return std::nullopt;
  return ntohl(parsed.s_addr);
}

std::string_view cluster_ip(const Json& service) {
  return string_or(at(service, "spec", "clusterIP"));
}

bool wants_address(const JsonObject& spec) {
  const Json* type = spec.if_contains("type");
  return string_or(type, "ClusterIP") != "ExternalName";
}

bool wants_ports(const JsonObject& spec) {
  const std::string_view type = string_or(spec.if_contains("type"));
  return type == "NodePort" || type == "LoadBalancer";
}

}  // namespace

Result<> ServiceAddresses::set_range(std::string_view range) {
  const size_t slash = range.find('/');
  const auto base = address_of(range.substr(0, slash));
  int bits = 0;
  if (slash != std::string_view::npos) {
    std::from_chars(range.data() + slash + 1, range.data() + range.size(), bits);
  }
  if (!base || bits < 8 || bits > 28) {
    return fail(Reason::kUsage, "'{}' is not a range of addresses like 10.96.0.0/16", range);
  }
  base_ = *base;
  size_ = 1U << (32 - bits);
  return {};
}

std::string ServiceAddresses::api_address() const {
  return text_of(base_ + 1);
}

std::optional<std::string> ServiceAddresses::next_address() {
  const uint32_t usable = size_ - kStaticPart - 2;
  for (uint32_t tried = 0; tried < usable; ++tried) {
    const uint32_t candidate = base_ + kStaticPart + 1 + (cursor_++ % usable);
    if (addresses_.insert(candidate).second) return text_of(candidate);
  }
  return std::nullopt;
}

std::optional<int64_t> ServiceAddresses::next_port() {
  const int64_t count = kLastPort - kFirstPort + 1;
  for (int64_t tried = 0; tried < count; ++tried) {
    const int64_t candidate = kFirstPort + (port_cursor_++ % count);
    if (ports_.insert(candidate).second) return candidate;
  }
  return std::nullopt;
}

void ServiceAddresses::allocate(JsonObject& service, const Json* old, FieldErrors& errors) {
  JsonObject& spec = ensure_object(service, "spec");
  const Json* old_spec = old == nullptr ? nullptr : find(*old, "spec");
  if (!wants_address(spec)) {
    spec.erase("clusterIP");
    spec.erase("clusterIPs");
    return;
  }
  std::string address(string_or(spec.if_contains("clusterIP")));
  const std::string before(old_spec == nullptr ? "" : string_or(find(*old_spec, "clusterIP")));
  if (address.empty()) address = before;
  if (address.empty()) {
    auto fresh = next_address();
    if (!fresh) {
      errors.invalid("spec.clusterIPs", "", "failed to allocate IP: range is full");
      return;
    }
    address = *fresh;
  } else if (address != "None" && address != before) {
    const auto number = address_of(address);
    if (!number) {
      errors.invalid("spec.clusterIPs[0]", address,
                     "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)");
      return;
    }
    if (*number <= base_ || *number >= base_ + size_ - 1) {
      errors.invalid("spec.clusterIPs", fmt::format("[]string{{{}}}", in_quotes(address)),
                     fmt::format("failed to allocate IP {}: the provided IP ({}) is not in the "
                                 "valid range.",
                                 address, address));
      return;
    }
    if (!addresses_.insert(*number).second) {
      errors.invalid(
          "spec.clusterIPs", fmt::format("[]string{{{}}}", in_quotes(address)),
          fmt::format("failed to allocate IP {}: provided IP is already allocated", address));
      return;
    }
  }
  spec["clusterIP"] = address;
  spec["clusterIPs"] = JsonArray{Json(address)};
  if (!wants_ports(spec)) return;
  Json* ports = spec.if_contains("ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (Json& port : ports->as_array()) {
    if (!port.is_object()) continue;
    const int64_t wanted = int_or(find(port, "nodePort"));
    if (wanted > 0) {
      ports_.insert(wanted);
    } else if (auto fresh = next_port()) {
      port.as_object()["nodePort"] = *fresh;
    }
  }
}

void ServiceAddresses::occupy(const Json& service) {
  if (const auto number = address_of(cluster_ip(service))) addresses_.insert(*number);
  const Json* ports = at(service, "spec", "ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (const Json& port : ports->as_array()) {
    if (const int64_t number = int_or(find(port, "nodePort")); number > 0) ports_.insert(number);
  }
}

void ServiceAddresses::release(const Json& service) {
  if (const auto number = address_of(cluster_ip(service))) addresses_.erase(*number);
  const Json* ports = at(service, "spec", "ports");
  if (ports == nullptr || !ports->is_array()) return;
  for (const Json& port : ports->as_array()) ports_.erase(int_or(find(port, "nodePort")));
}

}  // namespace grapnel::local
