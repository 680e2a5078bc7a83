// Syntax, environment variables, includes and files.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "loading.h"

namespace ringside::config {
namespace {

// A folder of its own for each test, removed at the end.
class ConfigFiles : public testing::Test {
 protected:
  ConfigFiles() {
    std::string pattern = testing::TempDir() + "/ringside-config-XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~ConfigFiles() override { std::filesystem::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string write(const std::string& name, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path(name)).parent_path());
    std::ofstream(path(name)) << text;
    return path(name);
  }
  // Lines without the folder, so that they can be compared.
  Lines plain(const std::vector<Problem>& problems) const {
    Lines out = lines(problems);
    for (std::string& line : out) {
      for (std::size_t at; (at = line.find(folder_ + "/")) != std::string::npos;) {
        line.erase(at, folder_.size() + 1);
      }
    }
    return out;
  }

  std::string folder_;
};

TEST(ConfigSyntax, ErrorsHaveTheirPlace) {
  const Loaded loaded = load("[server]\nrings = \n");
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(loaded.problems[0].file, "t.toml");
  EXPECT_EQ(loaded.problems[0].line, 2U);
  EXPECT_GT(loaded.problems[0].column, 0U);
  EXPECT_FALSE(loaded.problems[0].message.empty());
  EXPECT_EQ(loaded.snapshot, nullptr);
}

std::string utf8(unsigned code) {
  if (code < 0x800) return {char(0xC0 | code >> 6), char(0x80 | (code & 63))};
  return {char(0xE0 | code >> 12), char(0x80 | (code >> 6 & 63)), char(0x80 | (code & 63))};
}

// toml++ 3.3 decides about non-ASCII blanks in a function that declares what is neither to be
// unreachable, which is wrong for most letters. What the library's build makes of that is seen
// here.
TEST(ConfigSyntax, NonAsciiOutsideStringsIsAnError) {
  for (unsigned code = 0x80; code < 0xFF00; code += code < 0x500 ? 5 : 97) {
    if (code >= 0xD800 && code < 0xE000) continue;  // surrogates are not UTF-8
    for (const char* before : {"", "x", "x = 1", "x = ", "["}) {
      const Loaded loaded = load(before + utf8(code) + "y = 1\n");
      ASSERT_FALSE(loaded.problems.empty()) << before << code;
      EXPECT_EQ(loaded.problems[0].line, 1U) << before << code;
    }
    const Loaded quoted = load(complete("log.file = '" + utf8(code) + "' # " + utf8(code) + "\n"));
    // A comment may hold any text, a string too; C1 control characters are left to the library.
    if (code >= 0xA0) {
      EXPECT_EQ(lines(quoted.problems), Lines{}) << code;
    }
  }
}

TEST(ConfigSyntax, KeyTwiceInAFile) {
  const Loaded loaded = load("server.rings = 1\nserver.rings = 2\n");
  ASSERT_EQ(loaded.problems.size(), 1U);
  EXPECT_EQ(loaded.problems[0].line, 2U);
}

TEST(ConfigEnvironment, VariablesInStrings) {
  const auto snapshot = good(
      complete(
          "[log]\nfile = \"${DIR}/a-${X:-y}-$${Z}-$5-${EMPTY:-e}.log\"\nlevel = \"${L:-warn}\"\n"),
      {{"DIR", "/var"}, {"EMPTY", ""}});
  EXPECT_EQ(snapshot->log.file, "/var/a-y-${Z}-$5-e.log");
  EXPECT_EQ(snapshot->log.level, Log::Level::warn);
}

TEST(ConfigEnvironment, NumbersAndFlagsInVariables) {
  const auto snapshot = good(
      complete("[server]\nrings = \"${N:-auto}\"\nbuffers = \"${B}\"\nbatch_wait = \"${W}\"\n"),
      {{"N", "4"}, {"B", "64"}, {"W", "false"}});
  EXPECT_EQ(snapshot->server.rings, 4U);
  EXPECT_EQ(snapshot->server.buffers, 64U);
  EXPECT_FALSE(snapshot->server.batch_wait);
}

TEST(ConfigEnvironment, Mistakes) {
  EXPECT_EQ(
      problems(complete("log.file = \"${NOPE}\"\n")),
      Lines{"t.toml:1:12: \"file\" uses ${NOPE}, which is not set in the environment (set it, or "
            "write \"${NOPE:-default}\")"});
  for (const char* text : {"${", "${}", "${A", "${A:-x", "${A-x}", "${1A}", "${A B}"}) {
    const auto found =
        problems(complete(std::string("log.file = \"") + text + "\"\n"), {{"A", "1"}});
    ASSERT_EQ(found.size(), 1U) << text;
    EXPECT_NE(found[0].find("has a broken \"${\""), std::string::npos) << found[0];
  }
}

TEST(ConfigEnvironment, ProcessEnvironmentIsTheDefault) {
  ASSERT_EQ(setenv("RINGSIDE_TEST_LEVEL", "error", 1), 0);
  const Loaded loaded = load_text(complete("log.level = \"${RINGSIDE_TEST_LEVEL}\"\n"), "t.toml");
  ASSERT_NE(loaded.snapshot, nullptr);
  EXPECT_EQ(loaded.snapshot->log.level, Log::Level::error);
}

TEST_F(ConfigFiles, MissingAndUnreadableFiles) {
  const Loaded missing = load_file(path("none.toml"));
  ASSERT_EQ(missing.problems.size(), 1U);
  EXPECT_EQ(missing.problems[0].line, 0U);
  EXPECT_EQ(plain(missing.problems), Lines{"none.toml: cannot be read: No such file or directory"});
  EXPECT_EQ(load_file(folder_).problems.at(0).message, "cannot be read: it is a directory");
}

TEST_F(ConfigFiles, IncludesMergeInOrder) {
  write("conf.d/b.toml", "[upstream.b]\nservers = [\"127.0.0.1:2\"]\n[timeouts]\nqueue = \"9s\"\n");
  write("conf.d/a.toml", "[upstream.a]\nservers = [\"127.0.0.1:3\"]\n");
  write("conf.d/ignored.txt", "nonsense");
  const auto main = write("main.toml", complete(R"(include = ["conf.d/*.toml", "none.d/*.toml"]
timeouts.connect = "1s"
)"));
  const Loaded loaded = load_file(main);
  EXPECT_EQ(plain(loaded.problems), Lines{});
  ASSERT_NE(loaded.snapshot, nullptr);
  ASSERT_EQ(loaded.snapshot->upstreams.size(), 3U);
  EXPECT_EQ(loaded.snapshot->upstreams[0].name, "u");
  EXPECT_EQ(loaded.snapshot->upstreams[1].name, "a");
  EXPECT_EQ(loaded.snapshot->upstreams[2].name, "b");
  EXPECT_EQ(loaded.snapshot->timeouts.connect_ms, 1'000U);
  EXPECT_EQ(loaded.snapshot->timeouts.queue_ms, 9'000U);
}

TEST_F(ConfigFiles, ASiteMayUseWhatAnIncludedFileHas) {
  write("up.toml", "[upstream.x]\nservers = [\"127.0.0.1:2\"]\n");
  const auto main = write(
      "main.toml", "include = \"up.toml\"\n" + with_route("path = \"/x\"\nupstream = \"x\"\n"));
  EXPECT_EQ(plain(load_file(main).problems), Lines{});
}

TEST_F(ConfigFiles, RepeatsAcrossFilesNameBothPlaces) {
  write("a.toml",
        "[upstream.u]\nservers = [\"127.0.0.1:2\"]\n[listen.w]\naddress = \"127.0.0.1:0\"\n"
        "[timeouts]\nqueue = \"1s\"\n");
  const auto main =
      write("main.toml", complete("include = \"a.toml\"\n[timeouts]\nqueue = \"2s\"\n"));
  EXPECT_EQ(plain(load_file(main).problems),
            (Lines{"a.toml:1:1: [upstream.u] is there already, at main.toml:7",
                   "a.toml:3:1: [listen.w] is there already, at main.toml:5",
                   "a.toml:6:1: \"queue\" in [timeouts] is set already at main.toml:3"}));
}

TEST_F(ConfigFiles, CyclesAndRepeatedIncludes) {
  write("a.toml", "include = \"b.toml\"\n");
  write("b.toml", "include = \"main.toml\"\n");
  const auto main = write("main.toml", complete("include = [\"a.toml\", \"./a.toml\"]\n"));
  EXPECT_EQ(
      plain(load_file(main).problems),
      (Lines{
          "main.toml:1:22: \"include\" names \"./a.toml\", which is included already",
          "b.toml:1:11: \"include\" goes round in a circle: \"main.toml\" is being read already"}));
}

TEST_F(ConfigFiles, MissingIncludeIsOneProblem) {
  // The site refers to an upstream of the missing file: nothing is said about hosts or listeners.
  const auto main = write("main.toml", "include = \"gone.toml\"\n");
  EXPECT_EQ(plain(load_file(main).problems),
            Lines{"main.toml:1:11: \"include\" names \"gone.toml\", which does not exist"});
}

TEST_F(ConfigFiles, SyntaxErrorsOfAllFilesAreReported) {
  write("a.toml", "x = \n");
  write("b.toml", "y = \n");
  const auto main = write("main.toml", "include = [\"a.toml\", \"b.toml\"]\n[server]\nrings = 0\n");
  const auto found = load_file(main).problems;
  ASSERT_EQ(found.size(), 3U);
  EXPECT_TRUE(found[0].file.ends_with("main.toml"));
  EXPECT_TRUE(found[1].file.ends_with("a.toml"));
  EXPECT_TRUE(found[2].file.ends_with("b.toml"));
}

TEST(ConfigInclude, TextFromNowhereIncludesNothing) {
  const Loaded loaded = load_text("include = [\"/etc/passwd\", \"*\"]\n", "<text>");
  ASSERT_GE(loaded.problems.size(), 2U);
  EXPECT_EQ(to_string(loaded.problems[1]),
            "<text>:1:12: \"include\" is not possible here, since the text is in no file");
}

// The files that are installed, and the default one with every commented key switched on.
TEST(ConfigExamples, ShippedFilesAreGood) {
  for (const char* name : {"demo.toml", "ringside.toml"}) {
    const Loaded loaded =
        load_file(std::string(RINGSIDE_CONF_DIR) + "/" + name, environment_of({}));
    EXPECT_EQ(lines(loaded.problems), Lines{});
    EXPECT_EQ(lines(loaded.warnings), Lines{});
  }
}

TEST(ConfigExamples, EveryKeyOfTheDefaultFileIsGood) {
  std::ifstream file(std::string(RINGSIDE_CONF_DIR) + "/ringside.toml");
  std::string text;
  int switched_on = 0;
  for (std::string line; std::getline(file, line);) {
    const bool key = line.starts_with("# ") &&
                     (line.find(" = ") != std::string::npos || line.starts_with("# [")) &&
                     line.find("access = \"json\"") == std::string::npos;
    switched_on += key ? 1 : 0;
    text += (key ? line.substr(2) : line) + '\n';
  }
  EXPECT_GT(switched_on, 55);
  EXPECT_EQ(problems(text), Lines{});
}

}  // namespace
}  // namespace ringside::config
