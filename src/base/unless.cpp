#include "base/unless.h"

#include <boost/asio/experimental/awaitable_operators.hpp>

namespace grapnel {

Task<bool> unless(Task<> interruption, Task<> task) {
  using namespace boost::asio::experimental::awaitable_operators;
  const auto first = co_await (std::move(task) || std::move(interruption));
  co_return first.index() == 0;
}

}  // namespace grapnel
