// Subresources that are not simply a part of their object, and the kinds that are questions
// (reviews).
#pragma once

#include "http/server.h"
#include "local/apiserver/api.h"

namespace grapnel::local {

// SelfSubjectAccessReview and its relatives: asked, answered, not stored.
Answer<Reply> answer_question(Api& api, Call& call, Json object);

Task<Answer<Reply>> get_scale(Api& api, Call& call);
Task<Answer<Reply>> write_scale(Api& api, Call& call);  // update and patch
Task<Answer<Reply>> bind_pod(Api& api, Call& call);
Task<Answer<Reply>> evict_pod(Api& api, Call& call);
Task<Answer<Reply>> request_token(Api& api, Call& call);

// logs, exec, attach, port-forward, proxy: answered through the exchange itself.
bool is_stream(const Call& call);
Task<> serve_stream(Api& api, Call& call, http::Exchange& exchange);

}  // namespace grapnel::local
