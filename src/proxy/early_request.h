// Which requests may be served while their connection is early (RFC 8470): what came with a first
// flight can be sent again by anybody who has seen it.
#pragma once

#include "ringside/http/message.h"

namespace ringside::proxy {

// It does no harm twice, and nothing follows it that could: GET, HEAD or OPTIONS, without a body,
// not the beginning of a tunnel.
bool may_be_early(const http::RequestHead& head);

// Somebody before us has passed it on from early data (RFC 8470 §5.1), so our own handshake does
// not make it certain. Any value says so.
bool was_early_before(const http::RequestHead& head);

}  // namespace ringside::proxy
