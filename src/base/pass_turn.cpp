#include "base/pass_turn.h"

#include <boost/asio/post.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace grapnel {

Task<> pass_turn() {
  co_await boost::asio::post(boost::asio::use_awaitable);
}

}  // namespace grapnel
