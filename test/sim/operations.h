// What each kind of operation does.
#pragma once

#include <liburing.h>

#include "core.h"
#include "op.h"

namespace ringside::sim {

// Copies what the entry points to. 0 or a negative errno.
int prepare(SimRing& ring, Op& op);
// Tries once: completes the operation, or lets it wait for its file.
void attempt(SimRing& ring, Op& op);
// What goes wrong with the next connection of a listener, if one waits: 0 or a negative errno.
int accept_fault(Core& core, SocketFile& listener);

}  // namespace ringside::sim
