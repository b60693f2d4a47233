// The API server alone, for tests from outside: prints its URL, runs until it is told to end.
//
//   apiserver [--data DIR] [--port N] [--token TEXT] [--certificate FILE --key FILE]
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "local/apiserver/server.h"

namespace {

using namespace grapnel;

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

local::ApiServerOptions parse(int argc, char** argv) {
  local::ApiServerOptions options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string flag = argv[i];
    const std::string value = argv[i + 1];
    if (flag == "--data") options.data_dir = value;
    if (flag == "--port") options.port = static_cast<uint16_t>(std::atoi(value.c_str()));
    if (flag == "--token") options.token = value;
    if (flag == "--certificate") options.certificate_pem = read_file(value);
    if (flag == "--key") options.key_pem = read_file(value);
  }
  return options;
}

Task<> run(local::ApiServer& server, Executor executor, local::ApiServerOptions options,
           boost::asio::signal_set& signals, int& code) {
  auto url = co_await server.start(executor, system_clock(), std::move(options));
  if (!url) {
    std::fprintf(stderr, "%s\n", url.error().message.c_str());
    code = 1;
    signals.cancel();
    co_return;
  }
  std::printf("%s\n", url->c_str());
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  boost::asio::io_context loop;
  boost::asio::signal_set signals(loop, SIGINT, SIGTERM);
  local::ApiServer server;
  int code = 0;
  auto starting = spawn(loop.get_executor(),
                        run(server, loop.get_executor(), parse(argc, argv), signals, code));
  Spawned stopping;
  signals.async_wait([&](const boost::system::error_code& error, int) {
    if (!error) stopping = spawn(loop.get_executor(), server.stop());
  });
  loop.run();
  return code;
}
