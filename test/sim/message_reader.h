// The peers' own reading of HTTP/1.1: strict, simple, and without any of the product's code.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ringside::sim {

class MessageReader {
 public:
  enum class State : std::uint8_t { head, body, done, failed };
  enum class Side : std::uint8_t { request, response };
  enum class Framing : std::uint8_t { none, length, chunked, until_close };

  explicit MessageReader(Side side) : side_(side) {}

  // Begins a message. `to_head`: it answers a HEAD request.
  void begin(bool to_head = false);
  // Consumes what belongs to this message, at most up to the end of the head or of a piece of body;
  // call again with the rest. Body bytes are in piece() until the next call.
  std::size_t feed(std::string_view data);
  // The peer has ended the stream: a body that lasts until then is complete.
  void end_of_stream();

  State state() const { return state_; }
  bool started() const { return started_; }
  std::string_view piece() const { return piece_; }
  std::size_t body_bytes() const { return body_bytes_; }
  Framing framing() const { return framing_; }
  const std::string& why() const { return why_; }

  const std::string& start_line() const { return start_line_; }
  int status() const { return status_; }
  bool has(std::string_view name) const { return !value(name).empty(); }
  // Of the first field of that name (lower-case), empty when there is none.
  std::string_view value(std::string_view name) const;
  bool value_is(std::string_view name, std::string_view lower) const;
  std::size_t trailer_count() const { return trailers_; }

 private:
  enum class Part : std::uint8_t { lines, data, chunk_size, chunk_end, trailer, to_close };
  bool take_line(std::string_view data, std::size_t* used);
  void head_line();
  void head_over();
  void choose_framing();
  void read_status();
  void chunk_size_line();
  std::size_t take_data(std::string_view data);
  void fail(std::string why);

  Side side_;
  State state_ = State::head;
  Part part_ = Part::lines;
  Framing framing_ = Framing::none;
  bool to_head_ = false;
  bool started_ = false;
  std::string line_;
  std::string start_line_;
  std::vector<std::pair<std::string, std::string>> fields_;
  std::string_view piece_;
  std::size_t left_ = 0;
  std::size_t body_bytes_ = 0;
  std::size_t trailers_ = 0;
  int status_ = 0;
  std::string why_;
};

}  // namespace ringside::sim
