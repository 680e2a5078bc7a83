// One access record as one line of text.
#pragma once

#include <string>

#include "ringside/proxy/access_record.h"

#include "timestamp.h"

namespace ringside::control {

// Not thread-safe; the control thread has one. Each call appends exactly one line that ends in
// '\n', whatever the bytes of the record.
class AccessFormat {
 public:
  // An object of fixed keys, documented in docs/logging.md. A time that never came is null.
  void append_json(std::string& out, const proxy::AccessRecord& record);

  // nginx's `combined`. A request that was not answered because the client left has status 499, as
  // there; any other that was not answered has 000.
  void append_combined(std::string& out, const proxy::AccessRecord& record);

 private:
  Timestamp timestamp_;
};

}  // namespace ringside::control
