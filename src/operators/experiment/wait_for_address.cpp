#include "operators/experiment/wait_for_address.h"

#include <fmt/format.h>

namespace grapnel::experiment {
namespace {

// {0}: the name, {1}: the longest wait in seconds. Variables have our prefix, since one that the
// image exports would reach the command. busybox's nslookup does not complete names as programs do,
// so the search list is read for it. Where `date` or `sleep` is missing, tries are counted. As the
// first process of a container a shell does not die of SIGTERM by itself.
constexpr std::string_view kWait = R"sh(grapnel_name="{0}"
trap 'exit 143' TERM
grapnel_code='import socket, sys; socket.getaddrinfo(sys.argv[1], 1)'
if command -v getent; then resolves() {{ getent hosts "$grapnel_name"; }}
elif command -v python3; then resolves() {{ python3 -c "$grapnel_code" "$grapnel_name"; }}
elif command -v python; then resolves() {{ python -c "$grapnel_code" "$grapnel_name"; }}
elif command -v nslookup; then resolves() {{
  while read -r grapnel_word grapnel_domains; do
    [ "$grapnel_word" = search ] || continue
    for grapnel_domain in $grapnel_domains; do
      nslookup "$grapnel_name.$grapnel_domain" && return 0
    done
  done </etc/resolv.conf
  nslookup "$grapnel_name"; }}
else resolves() {{ :; }}
  echo "grapnel: not waiting for $grapnel_name:" \
    "the image has none of getent, python3, python, nslookup" >&2
fi >/dev/null
now() {{ date +%s 2>/dev/null || echo "$grapnel_tries"; }}
grapnel_tries=0
grapnel_start=$(now)
until resolves >/dev/null 2>&1; do
  [ "$grapnel_tries" -gt 0 ] || echo "grapnel: waiting until $grapnel_name resolves" >&2
  grapnel_tries=$((grapnel_tries + 1))
  if [ $(($(now) - grapnel_start)) -ge {1} ]; then
    echo "grapnel: $grapnel_name did not resolve within {1} seconds (spec.waitForAddress)" >&2
    exit 1
  fi
  sleep 1 2>/dev/null
done
exec /bin/sh -c "$1")sh";

constexpr int kLongestWait = 300;

// The kubelet would take $(NAME) for a variable of the container.
std::string for_the_kubelet(std::string_view script) {
  std::string out;
  for (size_t i = 0; i < script.size(); ++i) {
    if (script.substr(i, 2) == "$(") out += '$';
    out += script[i];
  }
  return out;
}

}  // namespace

JsonArray command_line(std::string command, std::string_view wait_for) {
  if (wait_for.empty()) return {"/bin/sh", "-c", std::move(command)};
  return {"/bin/sh", "-c", for_the_kubelet(fmt::format(kWait, wait_for, kLongestWait)), "sh",
          std::move(command)};
}

}  // namespace grapnel::experiment
