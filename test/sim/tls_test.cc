// The simulated TLS: that its records show what was done to them, and that its ends agree.
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "kernel_tls.h"
#include "sim_world.h"
#include "tls_end.h"
#include "tls_peer.h"
#include "tls_records.h"

namespace ringside::sim {
namespace {

using Event = TlsEnd::Event;

std::string record(std::string_view payload, RecordKeys& keys) {
  std::string out;
  append_record(out, RecordType::data, payload, keys);
  return out;
}

std::optional<std::string> opened(std::string_view bytes, RecordKeys& keys) {
  RecordReader reader;
  EXPECT_EQ(reader.feed(bytes), bytes.size());
  EXPECT_TRUE(reader.whole());
  const auto record = reader.take(keys);
  return record ? std::optional(record->payload) : std::nullopt;
}

TEST(SimRecords, come_back_as_they_were_however_they_are_split) {
  for (std::size_t step : {1U, 2U, 5U, 100U}) {
    RecordKeys tx{.secret = 7}, rx = tx;
    std::string wire;
    for (std::string_view payload : {"", "some text", "x"})
      wire += record(payload, tx);
    RecordReader reader;
    std::string got;
    for (std::size_t at = 0; at < wire.size();) {
      at += reader.feed(std::string_view(wire).substr(at, step));
      if (reader.whole()) got += reader.take(rx).value().payload + ";";
    }
    EXPECT_EQ(got, ";some text;x;");
    EXPECT_EQ(reader.missing(), 0U);
  }
}

TEST(SimRecords, do_not_show_what_they_carry) {
  RecordKeys keys{.secret = 7};
  EXPECT_EQ(record("some text", keys).find("text"), std::string::npos);
}

TEST(SimRecords, changed_lost_or_doubled_they_do_not_open) {
  RecordKeys tx{.secret = 7};
  const std::string one = record("one", tx), two = record("two", tx);
  for (std::size_t at = record_head_bytes; at < one.size(); ++at) {
    std::string changed = one;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    RecordKeys rx{.secret = 7};
    EXPECT_FALSE(opened(changed, rx)) << "byte " << at;
  }
  RecordKeys fresh{.secret = 7};
  EXPECT_FALSE(opened(two, fresh)) << "the first is missing";
  RecordKeys rx{.secret = 7};
  EXPECT_EQ(opened(one, rx), "one");
  EXPECT_FALSE(opened(one, rx)) << "it came twice";
  RecordKeys other{.secret = 8};
  EXPECT_FALSE(opened(one, other)) << "of another sender";
}

// What an end hears of `bytes`, given so many at a time.
struct Heard {
  std::string data;
  unsigned secured = 0;
  Event last = Event::none;
};
void hear(TlsEnd& end, std::string_view bytes, std::size_t step, Heard& out) {
  while (!bytes.empty() && !end.failed() && !end.ended()) {
    std::size_t taken = 0;
    const Event event = end.hear(bytes.substr(0, step), &taken);
    bytes.remove_prefix(taken);
    if (event == Event::data) out.data += end.data();
    if (event == Event::secured) ++out.secured;
    if (event != Event::none) out.last = event;
  }
}

class SimTlsEnds : public testing::Test {
 protected:
  void talk(std::size_t step = 100'000) {
    while (!client.own().empty() || !server.own().empty()) {
      hear(server, std::exchange(client.own(), {}), step, at_server);
      hear(client, std::exchange(server.own(), {}), step, at_client);
    }
  }
  static void say(TlsEnd& end, std::string_view data) {
    append_record(end.own(), RecordType::data, data, end.sending());
  }
  TlsEnd client{TlsEnd::Role::client, Random(1)};
  TlsEnd server{TlsEnd::Role::server, Random(2)};
  Heard at_client, at_server;
};

TEST_F(SimTlsEnds, shake_hands_however_the_bytes_are_split) {
  for (std::size_t step : {1U, 3U, 50U, 100'000U}) {
    TlsEnd one(TlsEnd::Role::client, Random(step)), two(TlsEnd::Role::server, Random(step));
    Heard at_one, at_two;
    one.begin();
    while (!one.own().empty() || !two.own().empty()) {
      hear(two, std::exchange(one.own(), {}), step, at_two);
      hear(one, std::exchange(two.own(), {}), step, at_one);
    }
    EXPECT_TRUE(one.established() && two.established());
    EXPECT_EQ(at_one.secured + at_two.secured, 2U);
    say(one, "up");
    say(two, "down");
    hear(two, std::exchange(one.own(), {}), step, at_two);
    hear(one, std::exchange(two.own(), {}), step, at_one);
    EXPECT_EQ(at_two.data + " " + at_one.data, "up down");
  }
}

TEST_F(SimTlsEnds, go_on_under_new_keys_and_answer_who_asks_for_them) {
  client.begin();
  talk();
  client.say_key_update(true);
  say(client, "new");
  talk();
  say(server, "too");
  server.say_ticket();
  talk();
  EXPECT_EQ(at_server.data + " " + at_client.data, "new too");
  EXPECT_EQ(client.receiving().secret, server.sending().secret);
  EXPECT_EQ(at_client.last, Event::data);
}

TEST_F(SimTlsEnds, an_end_is_only_one_that_was_announced) {
  client.begin();
  talk();
  say(server, "all");
  server.say_close();
  server.own() += "and what nobody reads";
  talk();
  EXPECT_EQ(at_client.last, Event::ended);
  EXPECT_TRUE(client.ended());
  EXPECT_FALSE(server.can_send());
  EXPECT_TRUE(client.can_send());
}

TEST_F(SimTlsEnds, data_before_the_handshake_are_refused) {
  client.begin();
  client.own().clear();
  say(client, "early");
  talk();
  EXPECT_EQ(at_server.last, Event::failed);
  EXPECT_EQ(at_client.last, Event::failed) << "it is told why";
  EXPECT_EQ(client.peer_alert(), TlsEnd::bad_record);
}

// A server that takes early data answers it before the client has ended its handshake.
TEST_F(SimTlsEnds, early_data_are_heard_before_the_end_of_the_handshake) {
  server.take_early([] { return true; });
  client.offer_early();
  client.begin();
  EXPECT_TRUE(client.early());
  say(client, "early");
  talk();
  EXPECT_EQ(at_server.data, "early");
  EXPECT_TRUE(server.early() && server.can_send());
  server.say_close();
  say(server, "answer");
  talk();
  EXPECT_EQ(at_client.data, "answer");
  EXPECT_FALSE(client.ended()) << "the end cannot be announced yet";
  say(client, " more");
  client.confirm();
  say(client, " late");
  talk();
  EXPECT_EQ(at_server.data, "early more late");
  EXPECT_TRUE(client.established() && server.established());
  EXPECT_FALSE(client.early() || server.early());
}

TEST_F(SimTlsEnds, early_data_that_are_not_taken_are_passed_over) {
  for (const bool offered : {false, true}) {
    TlsEnd one(TlsEnd::Role::client, Random(1)), two(TlsEnd::Role::server, Random(2));
    Heard at_one, at_two;
    if (offered) two.take_early([] { return false; });
    one.offer_early();
    one.begin();
    say(one, "early");
    while (!one.own().empty() || !two.own().empty()) {
      hear(two, std::exchange(one.own(), {}), 7, at_two);
      hear(one, std::exchange(two.own(), {}), 7, at_one);
    }
    EXPECT_TRUE(one.early_refused() && !one.must_confirm());
    EXPECT_TRUE(one.established() && two.established());
    say(one, "again");
    hear(two, one.own(), 7, at_two);
    EXPECT_EQ(at_two.data, "again");
  }
}

// Behind the end of early data comes the client's Finished, and nothing else.
TEST_F(SimTlsEnds, early_data_behind_their_end_are_refused) {
  server.take_early([] { return true; });
  client.offer_early();
  client.begin();
  RecordKeys early = client.sending();
  say(client, "early");
  talk();
  ++early.sequence;
  std::string behind;
  client.confirm();
  append_record(behind, RecordType::data, "behind", early);
  hear(server, client.own().substr(0, record_overhead + 4) + behind, 100, at_server);
  EXPECT_EQ(at_server.data, "early");
  EXPECT_TRUE(server.failed());
}

// What is refused has been sent again by the time that the handshake is over.
TEST(SimTlsPeer, sends_early_data_again_that_nobody_took) {
  SimWorld world(3);
  const TlsPeer::Early early{Random(1), std::make_shared<EarlyData>()};
  TlsPeer peer(world.core(), TlsEnd::Role::client, false, &early);
  TlsEnd end(TlsEnd::Role::server, Random(9));
  Heard out;
  EXPECT_EQ(peer.seal("early;"), 6U);
  EXPECT_EQ(early.state->bytes, 6U);
  for (int turn = 0; turn < 3; ++turn) {
    const std::string wire(peer.wire());
    peer.left(wire.size());
    hear(end, wire, 7, out);
    const std::string own = std::exchange(end.own(), {});
    for (std::size_t at = 0, taken = 1; at < own.size() && taken != 0; at += taken)
      peer.hear(std::string_view(own).substr(at), &taken);
  }
  EXPECT_TRUE(early.state->refused && early.state->confirmed);
  EXPECT_EQ(out.data, "early;");
}

// What comes of a handshake and of a message of a peer with that fault.
Heard with(Fault fault) {
  SimWorld world(3);
  world.faults().set(fault, 1);
  TlsPeer peer(world.core(), TlsEnd::Role::client);
  TlsEnd end(TlsEnd::Role::server, Random(9));
  Heard out;
  for (int turn = 0; turn < 40; ++turn) {
    const std::string wire(peer.wire());
    peer.left(wire.size());
    hear(end, wire, 7, out);
    const std::string own = std::exchange(end.own(), {});
    for (std::size_t at = 0, taken = 1; at < own.size() && taken != 0; at += taken)
      peer.hear(std::string_view(own).substr(at), &taken);
    if (peer.ready() && turn < 30) peer.seal("data;");
    if (peer.ready() && turn == 30) peer.finish();
  }
  return out;
}

TEST(SimTlsPeer, without_faults_says_what_it_has_to_and_announces_the_end) {
  const Heard heard = with(Fault::tls_small_records);
  EXPECT_TRUE(heard.data.starts_with("data;data;"));
  EXPECT_EQ(heard.last, Event::ended);
  EXPECT_EQ(with(Fault::tls_key_update).last, Event::ended);
  EXPECT_EQ(with(Fault::tls_bytes_after_close).last, Event::ended);
}

TEST(SimTlsPeer, misbehaves_as_the_fault_says) {
  for (Fault fault : {Fault::tls_handshake_stall, Fault::tls_handshake_cut,
                      Fault::tls_handshake_alert, Fault::tls_handshake_garbage}) {
    EXPECT_EQ(with(fault).secured, 0U) << to_string(fault);
  }
  for (Fault fault : {Fault::tls_garbage, Fault::tls_alert, Fault::tls_truncated}) {
    EXPECT_EQ(with(fault).secured, 1U) << to_string(fault);
    EXPECT_EQ(with(fault).data, "") << to_string(fault);
  }
  EXPECT_EQ(with(Fault::tls_alert).last, Event::failed);
  EXPECT_EQ(with(Fault::tls_truncated).last, Event::secured);
  EXPECT_NE(with(Fault::tls_no_close_notify).last, Event::ended);
}

// A socket whose records the kernel makes and opens, and its peer.
class SimKernelTlsTest : public testing::Test {
 protected:
  SimKernelTlsTest() {
    EXPECT_EQ(tls.install(true, {.secret = 1}), 0);
    EXPECT_EQ(tls.install(false, {.secret = 2}), 0);
  }
  void arrive(std::string_view wire) {
    EXPECT_EQ(pair.a->write_whole(wire), static_cast<int>(wire.size()));
    pass();
  }
  void pass() { world.clock().advance_to(world.clock().now_ns() + second_ns); }
  std::string sealed(RecordType type, std::string_view payload) {
    std::string out;
    append_record(out, type, payload, peer_tx);
    return out;
  }
  int read(std::size_t room = 100, bool peek = false) {
    return tls.read(*pair.b, bytes, room, peek);
  }

  SimWorld world{4};
  Stream::Pair pair = world.network().pair();
  KernelTls tls;
  RecordKeys peer_tx{.secret = 2};
  char bytes[200];
};

TEST_F(SimKernelTlsTest, gives_data_of_whole_records_alone) {
  const std::string record = sealed(RecordType::data, "hello");
  arrive(record.substr(0, record.size() - 1));
  EXPECT_FALSE(tls.readable(*pair.b));
  EXPECT_EQ(read(), -EAGAIN);
  arrive(record.substr(record.size() - 1));
  EXPECT_TRUE(tls.has_data(*pair.b));
  EXPECT_EQ(read(100, true), 5);
  EXPECT_EQ(read(2), 2);
  EXPECT_EQ(read(), 3);
  EXPECT_EQ(std::string_view(bytes, 3), "llo");
  EXPECT_EQ(read(), -EAGAIN);
}

TEST_F(SimKernelTlsTest, stops_at_a_record_that_is_no_data) {
  arrive(sealed(RecordType::alert, "\x01?"));
  arrive(sealed(RecordType::data, "on"));
  EXPECT_TRUE(tls.readable(*pair.b));
  EXPECT_FALSE(tls.has_data(*pair.b));
  EXPECT_EQ(read(), -EIO);
  EXPECT_EQ(read(), -EIO) << "it is still there";
  RecordType type{};
  EXPECT_EQ(tls.read_any(*pair.b, bytes, 100, &type), 2);
  EXPECT_EQ(type, RecordType::alert);
  EXPECT_EQ(read(), 2);
}

TEST_F(SimKernelTlsTest, does_not_get_over_a_record_that_does_not_open) {
  peer_tx.sequence = 7;
  arrive(sealed(RecordType::data, "hello"));
  EXPECT_TRUE(tls.readable(*pair.b));
  EXPECT_EQ(read(), -EBADMSG);
  EXPECT_EQ(read(), -EBADMSG);
}

TEST_F(SimKernelTlsTest, tells_of_an_error_that_a_look_has_found) {
  pair.a->reset();
  pass();
  EXPECT_TRUE(tls.readable(*pair.b));
  EXPECT_EQ(read(), -ECONNRESET);
  EXPECT_EQ(read(), 0);
}

TEST_F(SimKernelTlsTest, takes_keys_once_and_makes_whole_records_of_what_it_is_given) {
  EXPECT_EQ(tls.install(true, {}), -EBUSY);
  EXPECT_EQ(tls.write(*pair.b, RecordType::data, "some text", 9), 9);
  pass();
  char wire[100];
  const int count = pair.a->read(wire, sizeof wire);
  ASSERT_EQ(count, static_cast<int>(9 + record_overhead));
  RecordKeys rx{.secret = 1};
  EXPECT_EQ(opened({wire, static_cast<std::size_t>(count)}, rx), "some text");
}

}  // namespace
}  // namespace ringside::sim
