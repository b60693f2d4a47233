// What all ways of sending a request have in common. Inside http/ only.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/async.h"
#include "base/result.h"
#include "http/message.h"

namespace grapnel::http {

bool is_safe(std::string_view method);  // to repeat
// Whether a field is one field, and does not end early and begin another.
bool is_field(std::string_view name, std::string_view value);
bool is_one_line(std::string_view text);
bool is_sendable(const Request& request);

// "https://host:port" and the rest of a URL, at least "/".
std::pair<std::string_view, std::string> split_url(std::string_view url);

// "POST /path: what". It is ambiguous when the request may have taken effect.
Error failure_of(const Request& request, Reason reason, std::string_view what,
                 bool may_have_been_sent);
// When an answer has to be there at the latest, and what to say when it is not.
Instant deadline_of(const Request& request);
Error late(const Request& request, bool may_have_been_sent);
std::string in_seconds(Duration length);
// Until the timer is cancelled, which tells of news, or the deadline. Throws who is cancelled.
Task<> wait_until(boost::asio::steady_timer& timer, std::optional<Instant> deadline);

}  // namespace grapnel::http
