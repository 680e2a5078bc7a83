// Tries the TLS files that a configuration names.
#pragma once

#include "ringside/config/snapshot.h"

namespace ringside::app {

// Loads the certificates, keys and ticket keys of every [tls.NAME], and says on stderr what is
// wrong with them. False when some cannot be used.
bool check_tls_files(const config::Snapshot& snapshot);

}  // namespace ringside::app
