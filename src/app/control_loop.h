// What the main thread does while the rings serve.
#pragma once

#include <vector>

#include "ringside/control/log_writer.h"

#include "chores.h"
#include "ring_threads.h"

namespace ringside::app {

// Signals that the main thread takes by a descriptor. Block them before any thread is started, so
// that every thread inherits that; and before clients can take the last descriptor. Returns the
// descriptor, or -1 with errno.
int block_signals();

// Waits for signals, writes logs and does chores, until all rings have finished. True: they did
// because they were told to.
// Closes `signals`.
bool control_loop(RingThreads& rings, control::LogWriter& log, int signals,
                  std::vector<Chore> chores);

}  // namespace ringside::app
