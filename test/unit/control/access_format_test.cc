#include "access_format.h"

#include <gtest/gtest.h>
#include <simdjson.h>

#include <string>
#include <vector>

namespace ringside::control {
namespace {

using proxy::AccessRecord;

AccessRecord full_record() {
  AccessRecord record;
  record.start_realtime_ns = 1'796'040'000'123'456'789;  // 2026-11-30T12:00:00Z
  record.connected_ns = 1'234'567;
  record.first_byte_ns = 20'000'999;
  record.total_ns = 3'000'001'000;
  record.request_bytes = 11;
  record.response_bytes = 4'294'967'297;
  record.response_body_bytes = 4'294'967'000;
  record.mover = "splice";
  record.tls_version = "TLSv1.3";
  record.tls_cipher = "TLS_AES_128_GCM_SHA256";
  record.tls_client = "CN=me,O=\"x\"";
  record.spliced_bytes = 1'048'576;
  record.zero_copy_bytes = 4'096;
  record.status = 206;
  record.version = http::Version::http10;
  record.tries = 2;
  record.reused = true;
  record.end = {base::Origin::client, proxy::Stage::response_body, proxy::Cause::reset};
  record.client_address = "2001:db8::1";
  record.client_port = 65535;
  record.method = "GET";
  record.target = "/a?b=c";
  record.host = "example.org";
  record.user_agent = "curl/8";
  record.referer = "http://x.test/";
  record.request_id = "4f2c";
  record.listener = "web";
  record.upstream = "app";
  record.server = "10.0.0.1:8080";
  return record;
}

std::string json_line(const AccessRecord& record) {
  AccessFormat format;
  std::string out;
  format.append_json(out, record);
  return out;
}

std::string combined_line(const AccessRecord& record) {
  AccessFormat format;
  std::string out;
  format.append_combined(out, record);
  return out;
}

class Parsed {
 public:
  explicit Parsed(std::string line) : text_(std::move(line)) {
    EXPECT_EQ(parser_.parse(text_).get(root_), simdjson::SUCCESS) << text_;
  }
  std::string text(const char* key) const {
    std::string_view value;
    EXPECT_EQ(root_[key].get(value), simdjson::SUCCESS) << key;
    return std::string(value);
  }
  double number(const char* key) const {
    double value = -1;
    EXPECT_EQ(root_[key].get(value), simdjson::SUCCESS) << key;
    return value;
  }
  bool is_null(const char* key) const { return root_[key].is_null(); }
  bool truth(const char* key) const {
    bool value = false;
    EXPECT_EQ(root_[key].get(value), simdjson::SUCCESS) << key;
    return value;
  }
  std::vector<std::string> keys() const {
    std::vector<std::string> names;
    simdjson::dom::object object;
    EXPECT_EQ(root_.get(object), simdjson::SUCCESS);
    for (const auto field : object)
      names.emplace_back(field.key);
    return names;
  }

 private:
  simdjson::padded_string text_;
  simdjson::dom::parser parser_;
  simdjson::dom::element root_;
};

TEST(AccessFormatJson, HasEveryField) {
  const Parsed line(json_line(full_record()));
  EXPECT_EQ(line.text("time"), "2026-11-30T12:00:00.123Z");
  EXPECT_EQ(line.text("client"), "2001:db8::1");
  EXPECT_EQ(line.number("client_port"), 65535);
  EXPECT_EQ(line.text("method"), "GET");
  EXPECT_EQ(line.text("target"), "/a?b=c");
  EXPECT_EQ(line.text("protocol"), "HTTP/1.0");
  EXPECT_EQ(line.text("host"), "example.org");
  EXPECT_EQ(line.number("status"), 206);
  EXPECT_EQ(line.number("request_bytes"), 11);
  EXPECT_EQ(line.number("response_bytes"), 4294967297.0);
  EXPECT_EQ(line.number("body_bytes"), 4294967000.0);
  EXPECT_EQ(line.text("mover"), "splice");
  EXPECT_EQ(line.number("spliced_bytes"), 1048576.0);
  EXPECT_EQ(line.number("zero_copy_bytes"), 4096.0);
  EXPECT_EQ(line.text("upstream"), "app");
  EXPECT_EQ(line.text("server"), "10.0.0.1:8080");
  EXPECT_EQ(line.number("tries"), 2);
  EXPECT_TRUE(line.truth("reused"));
  EXPECT_DOUBLE_EQ(line.number("connect_ms"), 1.234);
  EXPECT_DOUBLE_EQ(line.number("first_byte_ms"), 20.0);
  EXPECT_DOUBLE_EQ(line.number("total_ms"), 3000.001);
  EXPECT_EQ(line.text("request_id"), "4f2c");
  EXPECT_EQ(line.text("user_agent"), "curl/8");
  EXPECT_EQ(line.text("referer"), "http://x.test/");
  EXPECT_EQ(line.text("tls"), "TLSv1.3");
  EXPECT_EQ(line.text("cipher"), "TLS_AES_128_GCM_SHA256");
  EXPECT_EQ(line.text("tls_client"), "CN=me,O=\"x\"");
  EXPECT_EQ(line.text("listener"), "web");
  EXPECT_EQ(line.text("end"), "client/response_body/reset");
}

TEST(AccessFormatJson, KeepsItsKeysAndTheirOrder) {
  const std::vector<std::string> expected = {"time",
                                             "client",
                                             "client_port",
                                             "method",
                                             "target",
                                             "protocol",
                                             "host",
                                             "status",
                                             "request_bytes",
                                             "response_bytes",
                                             "body_bytes",
                                             "mover",
                                             "spliced_bytes",
                                             "zero_copy_bytes",
                                             "upstream",
                                             "server",
                                             "tries",
                                             "reused",
                                             "connect_ms",
                                             "first_byte_ms",
                                             "total_ms",
                                             "request_id",
                                             "user_agent",
                                             "referer",
                                             "tls",
                                             "cipher",
                                             "tls_client",
                                             "listener",
                                             "end"};
  EXPECT_EQ(Parsed(json_line(full_record())).keys(), expected);
  EXPECT_EQ(Parsed(json_line(AccessRecord{})).keys(), expected);
}

TEST(AccessFormatJson, SaysNullForATimeThatNeverCame) {
  AccessRecord record = full_record();
  record.connected_ns = record.first_byte_ns = AccessRecord::never;
  record.end = {base::Origin::self, proxy::Stage::done, proxy::Cause::complete};
  record.reused = false;
  const Parsed line(json_line(record));
  EXPECT_TRUE(line.is_null("connect_ms"));
  EXPECT_TRUE(line.is_null("first_byte_ms"));
  EXPECT_FALSE(line.truth("reused"));
  EXPECT_EQ(line.text("end"), "complete");
}

TEST(AccessFormatJson, SaysTheStatusOfGrpcWhereThereIsOne) {
  AccessRecord record = full_record();
  EXPECT_EQ(json_line(record).find("grpc_status"), std::string::npos);
  record.grpc_status = "14";
  EXPECT_EQ(Parsed(json_line(record)).text("grpc_status"), "14");
}

// What a stranger may choose, in each field, with every byte: alone, before and after a letter, and
// all of them in one text. The record stays one line that a JSON parser takes.
TEST(AccessFormatJson, IsValidForEveryByteInEveryField) {
  constexpr std::string_view AccessRecord::* fields[] = {
      &AccessRecord::client_address, &AccessRecord::method,     &AccessRecord::target,
      &AccessRecord::host,           &AccessRecord::user_agent, &AccessRecord::referer,
      &AccessRecord::request_id,     &AccessRecord::listener,   &AccessRecord::upstream,
      &AccessRecord::server};
  constexpr const char* keys[] = {"client",  "method",     "target",   "host",     "user_agent",
                                  "referer", "request_id", "listener", "upstream", "server"};
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  for (std::size_t field = 0; field < std::size(fields); ++field) {
    for (int byte = 0; byte <= 256; ++byte) {
      const std::string text = byte == 256 ? all : std::string("a") + static_cast<char>(byte) + "b";
      AccessRecord record = full_record();
      record.*fields[field] = text;
      const std::string line = json_line(record);
      ASSERT_EQ(line.find('\n'), line.size() - 1) << keys[field] << ' ' << byte;
      const Parsed parsed(line);
      const std::string got = parsed.text(keys[field]);
      if (byte < 0x80) {
        EXPECT_EQ(got, text) << keys[field];
      }
      if (byte >= 0x80 && byte < 256) {
        // As the code point of that number.
        const std::string expected = {'a', static_cast<char>(0xC0 | byte >> 6),
                                      static_cast<char>(0x80 | (byte & 0x3F)), 'b'};
        EXPECT_EQ(got, expected) << keys[field] << ' ' << byte;
      }
    }
  }
}

TEST(AccessFormatCombined, LooksLikeNginx) {
  EXPECT_EQ(combined_line(full_record()),
            "2001:db8::1 - - [30/Nov/2026:12:00:00 +0000] \"GET /a?b=c HTTP/1.0\" 206 4294967000 "
            "\"http://x.test/\" \"curl/8\"\n");
}

TEST(AccessFormatCombined, HasDashesForWhatIsMissing) {
  AccessRecord record;
  record.client_address = "10.0.0.9";
  record.status = 400;
  EXPECT_EQ(combined_line(record),
            "10.0.0.9 - - [01/Jan/1970:00:00:00 +0000] \"-\" 400 0 \"-\" \"-\"\n");
}

TEST(AccessFormatCombined, HasAStatusForWhatWasNotAnswered) {
  AccessRecord record = full_record();
  record.status = 0;
  EXPECT_NE(combined_line(record).find("\" 499 "), std::string::npos);
  record.end.who = base::Origin::upstream;
  EXPECT_NE(combined_line(record).find("\" 000 "), std::string::npos);
}

TEST(AccessFormatCombined, IsOneLineOfPrintableAsciiForEveryByte) {
  std::string all;
  for (int byte = 0; byte < 256; ++byte)
    all += static_cast<char>(byte);
  AccessRecord record = full_record();
  record.method = record.target = record.referer = record.user_agent = record.client_address = all;
  const std::string line = combined_line(record);
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  for (std::size_t i = 0; i + 1 < line.size(); ++i) {
    ASSERT_TRUE(line[i] >= 0x20 && line[i] < 0x7f) << i;
  }
  EXPECT_EQ(std::count(line.begin(), line.end(), '"'), 6);
}

TEST(AccessFormat, FollowsTheClockBackAndForth) {
  AccessFormat format;
  std::string out;
  AccessRecord record = full_record();
  for (const std::uint64_t seconds :
       {951'782'399ULL, 951'782'400ULL, 951'868'800ULL, 951'782'399ULL}) {
    record.start_realtime_ns = seconds * 1'000'000'000 + 5'000'000;
    format.append_json(out, record);
    out = out.substr(out.rfind("{\"time"));
    const std::string expected = seconds == 951'782'399   ? "2000-02-28T23:59:59.005Z"
                                 : seconds == 951'782'400 ? "2000-02-29T00:00:00.005Z"
                                                          : "2000-03-01T00:00:00.005Z";
    EXPECT_EQ(out.substr(9, 24), expected);
  }
}

}  // namespace
}  // namespace ringside::control
