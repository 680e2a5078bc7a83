// Helpers of the configuration tests: text in, problems out as the lines that people would read.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ringside/config/load.h"

namespace ringside::config {

inline Environment environment_of(std::map<std::string, std::string> values) {
  return [values = std::move(values)](std::string_view name) -> std::optional<std::string> {
    const auto found = values.find(std::string(name));
    if (found == values.end()) return std::nullopt;
    return found->second;
  };
}

inline Loaded load(std::string_view text, std::map<std::string, std::string> environment = {}) {
  return load_text(text, "t.toml", environment_of(std::move(environment)));
}

inline std::vector<std::string> lines(const std::vector<Problem>& problems) {
  std::vector<std::string> out;
  for (const Problem& problem : problems)
    out.push_back(to_string(problem));
  return out;
}

inline std::vector<std::string> problems(std::string_view text,
                                         std::map<std::string, std::string> environment = {}) {
  Loaded loaded = load(text, std::move(environment));
  EXPECT_EQ(loaded.snapshot == nullptr, !loaded.problems.empty());
  return lines(loaded.problems);
}

inline std::vector<std::string> warnings(std::string_view text) {
  Loaded loaded = load(text);
  EXPECT_EQ(lines(loaded.problems), std::vector<std::string>());
  return lines(loaded.warnings);
}

inline SnapshotRef good(std::string_view text,
                        std::map<std::string, std::string> environment = {}) {
  Loaded loaded = load(text, std::move(environment));
  EXPECT_EQ(lines(loaded.problems), std::vector<std::string>());
  return loaded.snapshot ? loaded.snapshot : std::make_shared<const Snapshot>();
}

// A listener, an upstream and a site that uses both. Appended to a text, so that its line numbers
// stay.
inline std::string complete(std::string_view text) {
  return std::string(text) + R"(
[listen.w]
address = "127.0.0.1:0"
[upstream.u]
servers = ["127.0.0.1:1"]
[[site]]
hosts = ["base.test"]
[[site.route]]
path = "/*"
upstream = "u"
)";
}

// The same with the text of one more route inside the site, which begins at line 2.
inline std::string with_route(std::string_view text) {
  return complete("") + "[[site.route]]\n" + std::string(text);
}

using Lines = std::vector<std::string>;

}  // namespace ringside::config
