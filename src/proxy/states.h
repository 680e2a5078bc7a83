// The two state tables of an exchange: one for the request, one for the response, since both
// directions run at the same time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace ringside::proxy {

enum class RequestState : std::uint8_t {
  reading_head,  // the head is not complete
  held,          // the body waits in the client's session until a server takes it
  relaying,      // body pieces go to the server as they come
  discarding,    // body pieces are dropped: the answer does not depend on them
  tunneling,     // bytes go to the server as they are
  complete,      // everything was read and handed on
  gone,          // the client, or its framing, broke
};
enum class RequestEvent : std::uint8_t {
  head,
  head_bodyless,
  relay,
  hold,
  discard,
  end,
  tunnel,
  lost
};

enum class ResponseState : std::uint8_t {
  none,     // no final head was sent to the client
  sending,  // the head was, the body is on its way
  tunneling,
  complete,  // everything was handed to the client's session
  lost,      // cannot be completed: what was sent stays cut
};
enum class ResponseEvent : std::uint8_t { interim, head, tunnel, end, lost };

template <typename State>
struct Step {
  bool legal;
  State to;
};

namespace detail {

constexpr std::size_t request_states = 7;
constexpr std::size_t request_events = 8;
constexpr std::size_t response_states = 5;
constexpr std::size_t response_events = 5;

using RequestRow = std::array<Step<RequestState>, request_events>;
using ResponseRow = std::array<Step<ResponseState>, response_events>;

constexpr Step<RequestState> request_no{false, RequestState::gone};
constexpr Step<ResponseState> response_no{false, ResponseState::lost};
constexpr Step<RequestState> go(RequestState to) {
  return {true, to};
}
constexpr Step<ResponseState> go(ResponseState to) {
  return {true, to};
}

// Columns: head, head_bodyless, relay, hold, discard, end, tunnel, lost.
constexpr std::array<RequestRow, request_states> request_table = {{
    /* reading_head */ {go(RequestState::held), go(RequestState::complete), request_no, request_no,
                        request_no, request_no, request_no, go(RequestState::gone)},
    /* held */
    {request_no, request_no, go(RequestState::relaying), go(RequestState::held),
     go(RequestState::discarding), request_no, request_no, go(RequestState::gone)},
    /* relaying */
    {request_no, request_no, request_no, go(RequestState::held), go(RequestState::discarding),
     go(RequestState::complete), request_no, go(RequestState::gone)},
    /* discarding */
    {request_no, request_no, request_no, request_no, go(RequestState::discarding),
     go(RequestState::complete), request_no, go(RequestState::gone)},
    /* tunneling */
    {request_no, request_no, request_no, request_no, go(RequestState::discarding),
     go(RequestState::complete), request_no, go(RequestState::gone)},
    /* complete */
    {request_no, request_no, go(RequestState::complete), go(RequestState::complete),
     go(RequestState::complete), request_no, go(RequestState::tunneling), go(RequestState::gone)},
    /* gone */
    {request_no, request_no, request_no, request_no, go(RequestState::gone), request_no, request_no,
     go(RequestState::gone)},
}};

// Columns: interim, head, tunnel, end, lost.
constexpr std::array<ResponseRow, response_states> response_table = {{
    /* none */ {go(ResponseState::none), go(ResponseState::sending), go(ResponseState::tunneling),
                response_no, go(ResponseState::lost)},
    /* sending */
    {response_no, response_no, response_no, go(ResponseState::complete), go(ResponseState::lost)},
    /* tunneling */
    {response_no, response_no, response_no, go(ResponseState::complete), go(ResponseState::lost)},
    /* complete */ {response_no, response_no, response_no, response_no, go(ResponseState::lost)},
    /* lost */ {response_no, response_no, response_no, response_no, go(ResponseState::lost)},
}};

}  // namespace detail

constexpr Step<RequestState> next(RequestState state, RequestEvent event) {
  return detail::request_table[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}
constexpr Step<ResponseState> next(ResponseState state, ResponseEvent event) {
  return detail::response_table[static_cast<std::size_t>(state)][static_cast<std::size_t>(event)];
}

}  // namespace ringside::proxy
