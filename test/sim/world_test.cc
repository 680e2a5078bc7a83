// Clock, streams, faults and the peers' reader; and that a seed is a run.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <set>
#include <string>
#include <vector>

#include "marks.h"
#include "message_reader.h"
#include "script.h"
#include "simulation.h"

namespace ringside::sim {
namespace {

TEST(SimClock, events_run_in_order_of_time_then_of_planning) {
  Clock clock;
  std::string order;
  clock.after(20, [&] { order += "c"; });
  clock.after(10, [&] { order += "a"; });
  clock.after(10, [&] { order += "b"; });
  clock.advance_to(clock.now_ns() + 15);
  EXPECT_EQ(order, "ab");
  clock.leap(second_ns);
  clock.advance_to(clock.now_ns());
  EXPECT_EQ(order, "abc");
}

TEST(SimClock, an_event_may_plan_another_for_the_same_time) {
  Clock clock;
  int runs = 0;
  clock.after(5, [&] { clock.after(0, [&] { ++runs; }); });
  clock.advance_to(clock.now_ns() + 5);
  EXPECT_EQ(runs, 1);
}

class SimStream : public testing::Test {
 protected:
  std::string read_all(Stream& stream) {
    std::string out;
    char buffer[100];
    for (int n = stream.read(buffer, sizeof buffer); n > 0; n = stream.read(buffer, sizeof buffer))
      out.append(buffer, static_cast<std::size_t>(n));
    return out;
  }
  void pass() { core_.clock.advance_to(core_.clock.now_ns() + second_ns); }

  Core core_{3};
  Stream::Pair pair_ = core_.network.pair();
};

TEST_F(SimStream, bytes_arrive_after_a_while_and_in_order) {
  EXPECT_EQ(pair_.a->write("hello ", 6), 6);
  EXPECT_EQ(pair_.a->write("world", 5), 5);
  char byte;
  EXPECT_EQ(pair_.b->read(&byte, 1), -EAGAIN);
  pass();
  EXPECT_EQ(read_all(*pair_.b), "hello world");
}

TEST_F(SimStream, what_is_split_on_the_way_stays_whole) {
  core_.faults.set(Fault::split_segments, 1);
  pair_.a->write("0123456789", 10);
  pass();
  EXPECT_EQ(read_all(*pair_.b), "0123456789");
}

TEST_F(SimStream, a_full_pipe_takes_no_more_until_it_is_read) {
  core_.faults.set(Fault::tiny_socket_buffers, 1);
  Stream::Pair tiny = core_.network.pair();
  const std::string text(100'000, 'x');
  const int first = tiny.a->write(text.data(), text.size());
  ASSERT_GT(first, 0);
  ASSERT_LT(first, 20'000);
  EXPECT_EQ(tiny.a->write("y", 1), -EAGAIN);
  pass();
  EXPECT_EQ(read_all(*tiny.b).size(), static_cast<std::size_t>(first));
  EXPECT_EQ(tiny.a->write("y", 1), 1);
}

TEST_F(SimStream, the_end_comes_behind_the_data) {
  pair_.a->write("last", 4);
  pair_.a->release();
  pass();
  EXPECT_EQ(read_all(*pair_.b), "last");
  char byte;
  EXPECT_EQ(pair_.b->read(&byte, 1), 0);
  EXPECT_EQ(pair_.b->write("x", 1), 1);
  pass();
  EXPECT_EQ(pair_.b->write("x", 1), -EPIPE);
}

TEST_F(SimStream, closing_with_unread_bytes_resets) {
  pair_.a->write("unread", 6);
  pass();
  pair_.b->release();
  pass();
  char byte;
  EXPECT_EQ(pair_.a->read(&byte, 1), -ECONNRESET);
  EXPECT_EQ(pair_.a->read(&byte, 1), 0);
}

TEST_F(SimStream, a_cut_hits_both_ends) {
  pair_.a->cut();
  char byte;
  EXPECT_EQ(pair_.a->read(&byte, 1), -ECONNRESET);
  EXPECT_EQ(pair_.b->read(&byte, 1), -ECONNRESET);
}

TEST_F(SimStream, a_stalled_direction_delivers_when_the_stall_is_over) {
  pair_.b->stall_until(core_.clock.now_ns() + 3 * second_ns);
  pair_.a->write("x", 1);
  pass();
  EXPECT_EQ(pair_.b->readable_bytes(), 0U);
  pass();
  pass();
  EXPECT_EQ(pair_.b->readable_bytes(), 1U);
}

TEST(SimNetwork, a_full_backlog_delays_and_a_missing_listener_refuses) {
  Core core(5);
  net::Address address = make_ipv4(0x0a000001, 80);
  auto refused = core.network.dial(core.network.ephemeral(AF_INET), address);
  core.clock.advance_to(core.clock.now_ns() + second_ns);
  EXPECT_TRUE(refused->done);
  EXPECT_EQ(refused->result, -ECONNREFUSED);
  ASSERT_EQ(core.network.bind(address, {}), 0);
  EXPECT_EQ(core.network.bind(address, {}), -EADDRINUSE);
  auto listener = core.network.listen(address, 1);
  auto first = core.network.dial(core.network.ephemeral(AF_INET), address);
  core.clock.advance_to(core.clock.now_ns() + 100 * millisecond_ns);
  auto second = core.network.dial(core.network.ephemeral(AF_INET), address);
  core.clock.advance_to(core.clock.now_ns() + 100 * millisecond_ns);
  EXPECT_TRUE(first->done);
  EXPECT_FALSE(second->done);
  EXPECT_NE(listener->accept(), nullptr);
  core.clock.advance_to(core.clock.now_ns() + 10 * second_ns);
  EXPECT_TRUE(second->done);
  EXPECT_EQ(second->result, 0);
  core.network.stop(listener);
}

TEST(SimFaults, every_fault_has_a_name_of_its_own) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < fault_count; ++i) {
    const auto fault = static_cast<Fault>(i);
    EXPECT_TRUE(names.insert(to_string(fault)).second);
    EXPECT_EQ(fault_named(to_string(fault)), fault);
  }
  EXPECT_EQ(fault_named("no such fault"), Fault::count);
}

TEST(SimFaults, every_fault_is_drawn_by_some_seed) {
  std::set<std::size_t> seen;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    Faults faults(seed);
    faults.draw(true, true, true);
    for (std::size_t i = 0; i < fault_count; ++i) {
      if (faults.enabled(static_cast<Fault>(i))) seen.insert(i);
    }
  }
  EXPECT_EQ(seen.size(), fault_count);
}

TEST(SimMarks, a_byte_tells_exchange_lane_and_place) {
  const std::string body = marked(3, Lane::request, 0, 100);
  EXPECT_EQ(first_wrong(3, Lane::request, 0, body), std::string::npos);
  EXPECT_EQ(first_wrong(3, Lane::request, 40, std::string_view(body).substr(40)),
            std::string::npos);
  EXPECT_NE(first_wrong(4, Lane::request, 0, body), std::string::npos);
  EXPECT_NE(first_wrong(3, Lane::response, 0, body), std::string::npos);
  EXPECT_NE(first_wrong(3, Lane::request, 1, body), std::string::npos);
}

// Reads `text` in pieces of `step` bytes; returns the body.
std::string read_message(MessageReader& reader, std::string_view text, std::size_t step) {
  std::string body;
  while (!text.empty() && reader.state() != MessageReader::State::done &&
         reader.state() != MessageReader::State::failed) {
    const std::size_t used = reader.feed(text.substr(0, step));
    body += reader.piece();
    text.remove_prefix(used);
  }
  return body;
}

TEST(SimMessageReader, a_scripted_response_comes_back_whole_however_it_is_split) {
  Script script;
  script.id = 9;
  script.answer = Answer::chunked;
  script.response_bytes = 2'000;
  script.trailers = true;
  const std::string wire = script.response_head() + script.response_body();
  for (std::size_t step : {1U, 2U, 3U, 7U, 64U, 10'000U}) {
    MessageReader reader(MessageReader::Side::response);
    EXPECT_EQ(read_message(reader, wire, step), marked(9, Lane::response, 0, 2'000));
    EXPECT_EQ(reader.state(), MessageReader::State::done);
    EXPECT_EQ(reader.status(), 200);
    EXPECT_EQ(reader.trailer_count(), 1U);
  }
}

TEST(SimMessageReader, what_is_not_a_message_fails) {
  for (std::string_view text :
       {"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 2x0 OK\r\n\r\n", "HTTP/1.1 200 OK\nA: b\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n"}) {
    MessageReader reader(MessageReader::Side::response);
    read_message(reader, text, 1000);
    EXPECT_EQ(reader.state(), MessageReader::State::failed) << text;
  }
}

TEST(SimMessageReader, a_body_until_close_ends_with_the_stream) {
  MessageReader reader(MessageReader::Side::response);
  EXPECT_EQ(read_message(reader, "HTTP/1.1 200 OK\r\n\r\nabc", 1000), "abc");
  EXPECT_EQ(reader.state(), MessageReader::State::body);
  reader.end_of_stream();
  EXPECT_EQ(reader.state(), MessageReader::State::done);
}

SimulationResult run(std::uint64_t seed) {
  SimulationOptions options;
  options.seed = seed;
  options.exchanges = 12;
  Simulation simulation(options);
  return simulation.run();
}

TEST(Simulation, the_same_seed_is_the_same_run) {
  std::set<std::uint64_t> digests;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const SimulationResult first = run(seed);
    const SimulationResult second = run(seed);
    EXPECT_EQ(first.violation, "");
    EXPECT_EQ(first.digest, second.digest) << "seed " << seed;
    EXPECT_EQ(first.faults, second.faults) << "seed " << seed;
    digests.insert(first.digest);
  }
  EXPECT_EQ(digests.size(), 12U);
}

}  // namespace
}  // namespace ringside::sim
