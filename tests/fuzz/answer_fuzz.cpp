// What servers and credential plugins may say: refusals become Errors with a message that is text,
// whatever the bytes; credentials are whole or refused.
#include "document/json.h"
#include "kube/exec_plugin.h"
#include "kube/meta.h"
#include "kube/status.h"
#include "tests/fuzz/fuzz.h"

using namespace grapnel;
using namespace grapnel::kube;

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const int code = 300 + data[0] * 2;
  const std::string text(fuzz::text_of(data + 1, size - 1));
  const Error error = error_of_answer(
      {.status = code, .headers = {{"Retry-After", text.substr(0, 20)}}, .body = text}, "GET /x");
  fuzz::require(error.code == code, "the code is the answer's");
  fuzz::require(!error.message.empty(), "an error says something");
  fuzz::require(!error.retry_after || *error.retry_after <= hours(1), "a wait has a limit");

  const auto credential = decode_plugin_answer(text, "client.authentication.k8s.io/v1");
  if (credential) {
    fuzz::require(credential->certificate_pem.empty() == credential->key_pem.empty(),
                  "a certificate comes with its key");
    fuzz::require(!credential->token.empty() || !credential->key_pem.empty(), "there is something");
  }
  if (const auto object = parse_json(text)) {
    const auto meta = decode_meta(*object, {.all_annotations = true});
    if (meta) fuzz::require(!meta->name().empty(), "what has no name is refused");
    (void)error_of_status(0, *object);
  }
  return 0;
}
