#include "h2_traffic.h"

#include <algorithm>

namespace ringside::budget {

namespace {
constexpr std::uint32_t stream_window_bytes = 1U << 22;
constexpr std::uint32_t connection_window_bytes = 1U << 24;
constexpr std::uint64_t framed_bytes_max = 256 * 1024;
}  // namespace

H2Client::H2Client(sim::Core& core, const Scenario& scenario, Tally& tally)
    : Client(core, scenario, tally),
      session_(*this,
               {.stream_window_bytes = stream_window_bytes,
                .connection_window_bytes = connection_window_bytes},
               core.random.fork()) {}

void H2Client::ask() {
  waiting_ = scenario_.depth;
  received_ = 0;
  const bool upload = scenario_.upload_bytes != 0;
  sim::H2FieldList fields = {{":method", upload ? "POST" : "GET"}, {":scheme", "http"},
                             {":authority", "budget.test"},        {":path", scenario_.path},
                             {"user-agent", "budget/1.0"},         {"accept", "*/*"}};
  if (upload) fields.emplace_back("content-length", std::to_string(scenario_.upload_bytes));
  for (unsigned i = 0; i < scenario_.depth; ++i)
    session_.request(fields, upload);
  connect();
  pump();
  wake_after(0);
}

void H2Client::pump() {
  while (bytes_queued() - bytes_sent() < framed_bytes_max) {
    const std::string_view bytes = session_.next();
    if (bytes.empty()) break;
    send(bytes);
  }
}

void H2Client::on_data(std::string_view data) {
  session_.receive(data);
  pump();
}

void H2Client::on_stream_head(std::int32_t, const sim::H2FieldList& fields) {
  if (fields.empty() || fields.front().second != "200") tally_.wrong = true;
}

void H2Client::on_stream_body(std::int32_t stream, std::string_view bytes) {
  received_ += bytes.size();
  session_.consume(stream, bytes.size());
}

void H2Client::on_stream_closed(std::int32_t stream, std::uint32_t code) {
  uploaded_.erase(stream);
  if (code != 0 || waiting_ == 0) tally_.wrong = true;
  ++tally_.answers;
  if (--waiting_ == 0 && received_ != scenario_.depth * scenario_.body_bytes) tally_.wrong = true;
}

sim::H2SessionListener::Piece H2Client::on_body_wanted(std::int32_t stream, std::span<char> room) {
  std::size_t& uploaded = uploaded_[stream];
  const std::size_t bytes = std::min(room.size(), scenario_.upload_bytes - uploaded);
  std::fill_n(room.data(), bytes, 'u');
  uploaded += bytes;
  return {.bytes = bytes, .last = uploaded == scenario_.upload_bytes};
}

}  // namespace ringside::budget
