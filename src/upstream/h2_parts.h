// What HTTP/2 connections to servers need of a ring.
#pragma once

#include <cstdint>

#include "ringside/base/slab.h"
#include "ringside/http/h2_connection.h"
#include "ringside/net/frame_output.h"

#include "h2_session.h"
#include "h2_stream.h"

namespace ringside::upstream {

// Owner: Pools; outlives the sessions.
struct H2Parts {
  H2Parts(std::uint32_t sessions_max, std::uint32_t streams_max)
      : blocks(std::size_t{sessions_max} + streams_max),
        streams(streams_max),
        sessions(sessions_max) {}
  http::H2Shared shared;
  net::FrameBlocks blocks;
  base::Slab<H2Stream> streams;
  base::Slab<H2Session> sessions;
};

}  // namespace ringside::upstream
