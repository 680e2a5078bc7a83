#include "arguments.h"

#include <gtest/gtest.h>

#include "help.h"

namespace ringside::app {
namespace {

Arguments good(const std::vector<std::string_view>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_TRUE(arguments) << arguments.error();
  return arguments.value_or(Arguments{});
}

std::string bad(const std::vector<std::string_view>& words) {
  const auto arguments = parse_arguments(words);
  EXPECT_FALSE(arguments);
  return arguments ? "" : arguments.error();
}

TEST(Arguments, KnowsTheCommands) {
  EXPECT_EQ(good({"run"}).command, Command::run);
  EXPECT_EQ(good({"check"}).command, Command::check);
  EXPECT_EQ(good({"version"}).command, Command::version);
  EXPECT_EQ(good({"help"}).command, Command::help);
  EXPECT_EQ(good({"-V"}).command, Command::version);
  EXPECT_EQ(good({"--version"}).command, Command::version);
  EXPECT_EQ(good({"-h"}).command, Command::help);
  EXPECT_EQ(good({"--help"}).command, Command::help);
}

TEST(Arguments, HasADefaultFile) {
  EXPECT_EQ(good({"run"}).config, "/etc/ringside/ringside.toml");
}

TEST(Arguments, TakesTheFileInEverySpelling) {
  EXPECT_EQ(good({"run", "-c", "a.toml"}).config, "a.toml");
  EXPECT_EQ(good({"run", "-ca.toml"}).config, "a.toml");
  EXPECT_EQ(good({"check", "--config", "a.toml"}).config, "a.toml");
  EXPECT_EQ(good({"check", "--config=a.toml"}).config, "a.toml");
  EXPECT_EQ(good({"run", "-c", "--odd-name"}).config, "--odd-name");
  EXPECT_EQ(good({"check", "a.toml"}).config, "a.toml");
}

TEST(Arguments, WantsAFileBehindConfig) {
  EXPECT_EQ(bad({"run", "-c"}), "-c needs a file");
  EXPECT_EQ(bad({"run", "--config"}), "--config needs a file");
  EXPECT_EQ(bad({"run", "--config="}), "--config needs a file");
  EXPECT_EQ(bad({"run", "--config", ""}), "--config needs a file");
}

TEST(Arguments, GivesHelpForACommand) {
  for (const auto& words : {std::vector<std::string_view>{"check", "--help"},
                            std::vector<std::string_view>{"check", "-c", "x", "-h"},
                            std::vector<std::string_view>{"help", "check"}}) {
    EXPECT_EQ(good(words).command, Command::check);
    EXPECT_TRUE(good(words).help);
  }
}

TEST(Arguments, KnowsVerbose) {
  EXPECT_TRUE(good({"version", "--verbose"}).verbose);
  EXPECT_TRUE(good({"version", "-v"}).verbose);
  EXPECT_FALSE(good({"version"}).verbose);
}

TEST(Arguments, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(bad({}), "a command is missing");
  EXPECT_EQ(bad({"chekc"}), "there is no command 'chekc' (did you mean 'check'?)");
  EXPECT_EQ(bad({"chec"}), "there is no command 'chec' (did you mean 'check'?)");
  EXPECT_EQ(bad({"runn"}), "there is no command 'runn' (did you mean 'run'?)");
  EXPECT_EQ(bad({"--versoin"}), "there is no option '--versoin' (did you mean '--version'?)");
  EXPECT_EQ(bad({"run", "--conf=x"}), "'run' has no option '--conf' (did you mean '--config'?)");
  EXPECT_EQ(bad({"run", "--verbose"}), "'run' has no option '--verbose'");
  EXPECT_EQ(bad({"version", "-c", "x"}), "'version' has no option '-c'");
  EXPECT_EQ(bad({"check", "a.toml", "b.toml"}), "'check' takes no argument 'b.toml'");
  EXPECT_EQ(bad({"run", "-c", "a.toml", "b.toml"}), "'run' takes no argument 'b.toml'");
  EXPECT_EQ(bad({"version", "a.toml"}), "'version' takes no argument 'a.toml'");
  EXPECT_EQ(bad({"help", "rum"}), "there is no command 'rum' (did you mean 'run'?)");
}

TEST(Nearest, PrefersTheNearestAndKnowsWhenNoneIsNear) {
  EXPECT_EQ(nearest("--confg", {"--help", "--config"}), "--config");
  EXPECT_EQ(nearest("--hlep", {"--help", "--config"}), "--help");
  EXPECT_EQ(nearest("serve", {"run", "check"}), "");
  EXPECT_EQ(nearest("", {"run"}), "");
}

TEST(HelpText, NamesEveryCommandAndOption) {
  const std::string_view overview = help_text(Command::help);
  for (const char* word : {"run", "check", "version", "help", "--version", "78"}) {
    EXPECT_NE(overview.find(word), std::string_view::npos) << word;
  }
  EXPECT_NE(help_text(Command::run).find("--config"), std::string_view::npos);
  EXPECT_NE(help_text(Command::check).find("--config"), std::string_view::npos);
  EXPECT_NE(help_text(Command::version).find("--verbose"), std::string_view::npos);
}

}  // namespace
}  // namespace ringside::app
