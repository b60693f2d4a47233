#include <arpa/inet.h>

#include <algorithm>
#include <charconv>

#include "base/strings.h"
#include "local/node/dns.h"

namespace grapnel::local::dns {
namespace {

constexpr std::string_view kZone = "cluster.local";
constexpr std::string_view kReverse = "in-addr.arpa";
constexpr uint32_t kTtl = 5;

bool is_in(std::string_view name, std::string_view zone) {
  return name == zone || (name.size() > zone.size() && name.ends_with(zone) &&
                          name[name.size() - zone.size() - 1] == '.');
}

// Four numbers parted by `separator`.
std::optional<uint32_t> four_numbers(std::string_view text, char separator, bool reversed) {
  auto parts = split(text, separator);
  if (parts.size() != 4) return std::nullopt;
  if (reversed) std::ranges::reverse(parts);
  uint32_t address = 0;
  for (const std::string_view part : parts) {
    unsigned value = 256;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), value);
    if (error != std::errc() || end != part.data() + part.size() || value > 255) {
      return std::nullopt;
    }
    address = address << 8 | value;
  }
  return address;
}

std::optional<uint32_t> reverse_address(std::string_view name) {
  if (!is_in(name, kReverse) || name == kReverse) return std::nullopt;
  return four_numbers(name.substr(0, name.size() - kReverse.size() - 1), '.', true);
}

bool is_private(uint32_t address) {
  return address >> 24 == 10 || address >> 20 == 0xac1 || address >> 16 == 0xc0a8;
}

// "10-244-0-5.default.pod.cluster.local" says its address itself.
std::optional<uint32_t> pod_address(std::string_view name) {
  constexpr std::string_view kPods = "pod.cluster.local";
  if (!is_in(name, kPods) || name == kPods) return std::nullopt;
  const auto parts = split(name.substr(0, name.size() - kPods.size() - 1), '.');
  if (parts.size() != 2) return std::nullopt;
  return four_numbers(parts[0], '-', false);
}

bool wants(const Query& query, Type type) {
  return query.type == static_cast<uint16_t>(type) ||
         query.type == static_cast<uint16_t>(Type::kAny);
}

}  // namespace

void Table::note(std::string_view name) {
  while (is_in(name, kZone)) {
    known_.emplace(name);
    const size_t dot = name.find('.');
    if (dot == std::string_view::npos) break;
    name.remove_prefix(dot + 1);
  }
}

void Table::add_address(std::string_view name, uint32_t address) {
  auto& all = addresses_[std::string(name)];
  if (std::ranges::find(all, address) == all.end()) all.push_back(address);
  // The longest name of an address is the most telling one: a pod's, not its service's.
  std::string& reverse = names_[address];
  if (reverse.size() < name.size()) reverse = name;
  note(name);
}

void Table::add_service(std::string_view name, Service service) {
  services_[std::string(name)].push_back(std::move(service));
  note(name);
}

void Table::add_alias(std::string_view name, std::string_view target) {
  aliases_[std::string(name)] = target;
  note(name);
}

void Table::await(std::string_view name) {
  awaited_.emplace(name);
}

void Table::await_below(std::string_view zone, Instant until) {
  awaited_below_[std::string(zone)] = until;
}

void Table::deny(std::string_view name) {
  denied_.emplace(name);
}

bool Table::is_awaited(std::string_view name, Instant now) const {
  if (addresses_.contains(name)) return false;
  if (awaited_.contains(name)) return true;
  if (knows(name) || denied_.contains(name)) return false;
  const size_t dot = name.find('.');
  if (dot == std::string_view::npos || dot == 0) return false;
  const auto group = awaited_below_.find(name.substr(dot + 1));
  return group != awaited_below_.end() && now < group->second;
}

bool Table::knows(std::string_view name) const {
  return name == kZone || known_.contains(name);
}

bool is_ours(std::string_view name) {
  if (is_in(name, kZone)) return true;
  const auto address = reverse_address(name);
  return address && is_private(*address);
}

Response answer(const Table& table, const Query& query, size_t turn) {
  Response response;
  const std::string& name = query.name;
  const auto add_addresses = [&](const std::string& of, std::vector<Record>& to) {
    const auto found = table.addresses_.find(of);
    if (found == table.addresses_.end()) return;
    const auto& all = found->second;
    for (size_t i = 0; i < all.size(); ++i) {
      to.push_back({.name = of,
                    .type = Type::kA,
                    .ttl = kTtl,
                    .data = address_data(all[(i + turn) % all.size()])});
    }
  };
  if (const auto address = reverse_address(name)) {
    const auto found = table.names_.find(*address);
    if (found == table.names_.end()) {
      response.code = Code::kNoSuchName;
    } else if (wants(query, Type::kPtr)) {
      response.answers.push_back(
          {.name = name, .type = Type::kPtr, .ttl = kTtl, .data = name_data(found->second)});
    }
    return response;
  }
  std::string target = name;
  if (const auto alias = table.aliases_.find(name); alias != table.aliases_.end()) {
    response.answers.push_back(
        {.name = name, .type = Type::kCname, .ttl = kTtl, .data = name_data(alias->second)});
    target = alias->second;
  }
  if (wants(query, Type::kA)) {
    add_addresses(target, response.answers);
    if (const auto address = pod_address(name)) {
      response.answers.push_back({.name = name, .ttl = kTtl, .data = address_data(*address)});
    }
  }
  if (wants(query, Type::kSrv)) {
    if (const auto found = table.services_.find(name); found != table.services_.end()) {
      const auto weight = static_cast<uint16_t>(100 / found->second.size());
      for (const Table::Service& service : found->second) {
        response.answers.push_back({.name = name,
                                    .type = Type::kSrv,
                                    .ttl = kTtl,
                                    .data = service_data(0, weight, service.port, service.target)});
        add_addresses(service.target, response.additional);
      }
    }
  }
  if (!response.answers.empty()) return response;
  if (!table.knows(name) && !pod_address(name)) response.code = Code::kNoSuchName;
  response.authority.push_back({.name = std::string(kZone),
                                .type = Type::kSoa,
                                .ttl = kTtl,
                                .data = authority_data(kZone, 1, kTtl)});
  return response;
}

std::vector<Upstream> parse_upstreams(std::string_view resolv_conf) {
  std::vector<Upstream> found;
  for (std::string_view line : split(resolv_conf, '\n')) {
    line = trim(line);
    if (!line.starts_with("nameserver")) continue;
    const std::string address(trim(line.substr(10)));
    in_addr parsed{};
    if (inet_pton(AF_INET, address.c_str(), &parsed) == 1) found.push_back({.address = address});
  }
  return found;
}

}  // namespace grapnel::local::dns
