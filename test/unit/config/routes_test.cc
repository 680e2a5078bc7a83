#include "loading.h"

namespace ringside::config {
namespace {

Route route(const std::string& text) {
  const auto snapshot = good(with_route(text));
  if (snapshot->sites.empty() || snapshot->sites[0].routes.size() < 2) {
    ADD_FAILURE() << text;
    return {};
  }
  return snapshot->sites[0].routes[1];
}

// The only problem of a route with this text (a target is added), without its place.
std::string problem(const std::string& text, const std::string& target = "upstream = \"u\"\n") {
  const auto found = problems(with_route(text + "\n" + target));
  if (found.size() != 1) return "found " + std::to_string(found.size());
  return found[0].substr(found[0].find(": ") + 2);
}

TEST(ConfigRoute, EveryKeyIsRead) {
  const Route got = route(R"(path = "/api/*"
methods = ["GET", "PURGE"]
upstream = "u"
strip_prefix = "/api/"
add_prefix = "/v1"
preserve_host = false
request_headers = { set = { "X-A" = "v{client_address}:{client_port}" }, add = { b = ["1", "2"] }, remove = ["C-*", "d"] }
response_headers = { set = { "x-b" = "{{{header.X-Q}}" } }
)");
  EXPECT_EQ(got.path, "/api/*");
  EXPECT_EQ(got.methods, (Lines{"GET", "PURGE"}));
  EXPECT_EQ(got.upstream, 0U);
  EXPECT_EQ(got.strip_prefix, "/api");
  EXPECT_EQ(got.add_prefix, "/v1");
  EXPECT_FALSE(got.preserve_host);
  EXPECT_EQ(got.source, "t.toml:11");
  ASSERT_EQ(got.request_headers.set.size(), 1U);
  EXPECT_EQ(got.request_headers.set[0].first, "x-a");
  const Template& text = got.request_headers.set[0].second;
  ASSERT_EQ(text.size(), 4U);
  EXPECT_EQ(text[0].literal, "v");
  EXPECT_EQ(text[1].variable, Variable::client_address);
  EXPECT_EQ(text[2].literal, ":");
  EXPECT_EQ(text[3].variable, Variable::client_port);
  ASSERT_EQ(got.request_headers.add.size(), 2U);
  EXPECT_EQ(got.request_headers.add[1].first, "b");
  EXPECT_EQ(got.request_headers.remove, (Lines{"c-*", "d"}));
  ASSERT_EQ(got.response_headers.set.size(), 1U);
  const Template& braces = got.response_headers.set[0].second;
  ASSERT_EQ(braces.size(), 3U);
  EXPECT_EQ(braces[0].literal, "{");
  EXPECT_EQ(braces[1].variable, Variable::request_header);
  EXPECT_EQ(braces[1].argument, "x-q");
  EXPECT_EQ(braces[2].literal, "}");
}

TEST(ConfigRoute, AllVariables) {
  const Route got = route(
      "path = \"/x\"\nredirect = \"{scheme}{host}{hostname}{path}{query}{uri}{method}{request_id}"
      "{server_name}{listener}{client_address}{client_port}{header.a}\"\n");
  ASSERT_TRUE(got.redirect);
  EXPECT_EQ(got.redirect->status, 308);
  ASSERT_EQ(got.redirect->location.size(), 13U);
  EXPECT_EQ(got.redirect->location[2].variable, Variable::hostname);
  EXPECT_EQ(got.redirect->location[5].variable, Variable::uri);
}

TEST(ConfigRoute, PathsAreNormalised) {
  auto path = [](const std::string& text) {
    return route("path = '" + text + "'\nrespond = {}\n").path;
  };
  EXPECT_EQ(path("/a/./b/../c"), "/a/c");
  EXPECT_EQ(path("/../x"), "/x");
  EXPECT_EQ(path("/a/.."), "/");
  EXPECT_EQ(path("/a/b/."), "/a/b/");
  EXPECT_EQ(path("/%7euser/%2f/%41/*"), "/~user/%2F/A/*");
  EXPECT_EQ(path("/%2e%2e/x"), "/x");
  EXPECT_EQ(path("//x"), "//x");
  EXPECT_EQ(path("/a b/\u00e4"), "/a%20b/%C3%A4");
}

TEST(ConfigRoute, BadPaths) {
  EXPECT_EQ(problem("path = \"api/*\""),
            "\"path\" must begin with \"/\", unlike \"api/*\" (did you mean \"/api/*\"?)");
  EXPECT_EQ(problem("path = \"\""),
            "\"path\" must begin with \"/\", unlike \"\" (did you mean \"/\"?)");
  EXPECT_EQ(problem("path = \"/a*\""),
            "\"path\" may have \"*\" only at its end, behind a \"/\", unlike "
            "\"/a*\" (did you mean \"/a/*\"?)");
  EXPECT_EQ(problem("path = \"/a/*/b\""),
            "\"path\" may have \"*\" only at its end, behind a \"/\", unlike "
            "\"/a/*/b\" (like \"/images/*\")");
  EXPECT_EQ(problem("path = \"/a?x\""),
            "\"path\" has a \"?\" in \"/a?x\" (routes match the path only, without a query)");
  EXPECT_EQ(problem("path = \"/a%2\""),
            "\"path\" has a broken \"%\" in \"/a%2\" (a percent sign itself is %25)");
  EXPECT_EQ(problem("path = \"/a%zz\"").substr(0, 22), "\"path\" has a broken \"%");
  EXPECT_EQ(problem("path = \"/a%00\"").substr(0, 22), "\"path\" has a broken \"%");
  EXPECT_EQ(problem("path = \"/a\\u0001\""), "\"path\" has a control character in \"/a\\x01\"");
}

TEST(ConfigRoute, BadMethods) {
  EXPECT_EQ(
      problem("path = \"/x\" \nmethods = [\"get\"]", "upstream = \"u\""),
      "\"methods\" names the method \"get\", but methods are written in capitals (did you mean "
      "\"GET\"?)");
  EXPECT_EQ(problem("methods = [\"G T\"]"),
            "\"methods\" must name methods, but \"G T\" cannot be one (like \"GET\" or \"POST\")");
  EXPECT_EQ(problem("methods = \"CONNECT\""), "\"methods\" names CONNECT, which is always refused");
  EXPECT_EQ(problem("path = \"/x\"\nmethods = [\"GET\", \"GET\"]"), "\"methods\" names GET twice");
  EXPECT_EQ(problem("methods = []"), "\"methods\" is an empty list");
}

TEST(ConfigRoute, ExactlyOneTarget) {
  EXPECT_EQ(
      problems(with_route("path = \"/x\"\n")),
      Lines{"t.toml:11:1: [[site.route]] does not say what to do (add one of upstream, respond and "
            "redirect)"});
  EXPECT_EQ(problem("path = \"/x\"\nrespond = {}"),
            "\"respond\" cannot be beside another target (a route has one of upstream, respond and "
            "redirect)");
  EXPECT_EQ(
      problem("path = \"/x\"\nredirect = \"/y\""),
      "\"redirect\" cannot be beside another target (a route has one of upstream, respond and "
      "redirect)");
  EXPECT_EQ(problem("path = \"/x\"\nupstream = \"v\"", ""),
            "\"upstream\" names \"v\", but there is no such upstream (only \"u\")");
  EXPECT_EQ(
      problems(
          "[listen.w]\naddress=\"127.0.0.1:0\"\n[[site]]\nhosts=\"*\"\nroute=[{upstream=\"x\"}]\n"),
      Lines{"t.toml:5:18: \"upstream\" names \"x\", but there is no such upstream (add "
            "[upstream.x])"});
}

TEST(ConfigRoute, Respond) {
  const Route got = route(
      "path = \"/x\"\nrespond = { status = 404, body = \"no {host}\", headers = { \"X-A\" = \"b\" "
      "} }\n");
  ASSERT_TRUE(got.respond);
  EXPECT_EQ(got.respond->status, 404);
  EXPECT_EQ(got.respond->body, "no {host}");
  EXPECT_EQ(got.respond->headers, (std::vector<std::pair<std::string, std::string>>{{"x-a", "b"}}));
  auto of = [](const std::string& text) { return problem("path = \"/x\"\nrespond = " + text, ""); };
  EXPECT_EQ(of("{ status = 199 }"), "\"status\" must be from 200 to 599, not 199");
  EXPECT_EQ(of("{ status = 600 }"), "\"status\" must be from 200 to 599, not 600");
  EXPECT_EQ(of("{ status = 204, body = \"x\" }"),
            "\"body\" cannot go with status 204, whose responses have no body (RFC 9110 §6.4.1)");
  EXPECT_EQ(of("{ status = 304, body = \"x\" }").substr(0, 28), "\"body\" cannot go with status");
  EXPECT_EQ(of("{ headers = { Content-Length = \"1\" } }"),
            "\"Content-Length\" cannot change \"content-length\" (ringside writes the fields that "
            "frame a "
            "message itself)");
  EXPECT_EQ(of("{ headers = { a = \"x\\r\\nb: c\" } }"),
            "\"a\" has a control character in a header value (header values are one line)");
  EXPECT_EQ(of("404"),
            "\"respond\" must be a table like { status = 200, body = \"hello\" }, not a number");
  EXPECT_EQ(of("{ statsu = 200 }"), "unknown key \"statsu\" in respond (did you mean \"status\"?)");
}

TEST(ConfigRoute, Redirect) {
  const Route got =
      route("path = \"/x\"\nredirect = { to = \"https://a.test{path}\", status = 301 }\n");
  ASSERT_TRUE(got.redirect);
  EXPECT_EQ(got.redirect->status, 301);
  ASSERT_EQ(got.redirect->location.size(), 2U);
  auto of = [](const std::string& text) {
    return problem("path = \"/x\"\nredirect = " + text, "");
  };
  EXPECT_EQ(of("{ to = \"/\", status = 300 }"),
            "\"status\" cannot be 300 (one of 301, 302, 303, 307, 308)");
  EXPECT_EQ(of("{ to = \"/\", status = 200 }"), "\"status\" must be from 300 to 399, not 200");
  EXPECT_EQ(of("{ status = 301 }"),
            "\"redirect\" does not say where to (like { to = \"https://{hostname}{uri}\" })");
  EXPECT_EQ(of("\"{hots}\""),
            "\"redirect\" has an unknown variable \"{hots}\" (did you mean \"host\"?)");
  EXPECT_EQ(of("\"/{\""),
            "\"redirect\" has a \"{\" without \"}\" in \"/{\" (write \"{{\" for a brace)");
  EXPECT_EQ(of("\"\""), "\"redirect\" is empty");
  EXPECT_EQ(of("\"/a\\nb\"").substr(0, 34), "\"redirect\" has a control character");
}

TEST(ConfigRoute, RedirectsThatBeginWithThePathAreWarnings) {
  EXPECT_EQ(
      warnings(with_route("path = \"/x\"\nredirect = \"{uri}/\"\n")),
      Lines{
          "t.toml:13:12: \"redirect\" begins with the client's path, so \"//other.example\" leads "
          "to another site (begin with \"{scheme}://{host}\")"});
}

TEST(ConfigRoute, HeaderEdits) {
  auto of = [](const std::string& text) {
    return problem("path = \"/x\"\nrequest_headers = { " + text + " }");
  };
  EXPECT_EQ(of("set = { \"x y\" = \"1\" }"), "\"x y\" has \"x y\", which is not a header name");
  EXPECT_EQ(of("set = { \"x:\" = \"1\" }"),
            "\"x:\" has \"x:\", which is not a header name (did you mean \"x\"?)");
  EXPECT_EQ(of("set = { x-a = \"1\", X-A = \"2\" }").substr(6),
            "is set twice; header names do not differ by case");
  EXPECT_EQ(of("set = { x = \"{header.a b}\" }"), "\"x\" has \"a b\", which is not a header name");
  EXPECT_EQ(of("set = { x = \" a\" }"), "\"x\" has blanks around a header value (\"a\")");
  EXPECT_EQ(of("set = { x = 5 }"), "\"x\" must be a string, not a number");
  EXPECT_EQ(of("add = { Host = \"x\" }"),
            "\"Host\" cannot be added: a request has one Host (use set)");
  EXPECT_EQ(of("remove = [\"host\"]"), "\"remove\" cannot remove Host, which every request has");
  EXPECT_EQ(of("remove = [\"*\"]"),
            "\"remove\" cannot remove every header (like \"x-internal-*\")");
  EXPECT_EQ(of("remove = [\"x-*-y\", \"a\"]"), "found 0");
  for (const char* name : {"Content-Length", "transfer-encoding", "Connection", "Upgrade", "TE",
                           "Trailer", "Keep-Alive", "Proxy-Connection"}) {
    const std::string quoted = std::string("\"") + name + "\"";
    EXPECT_EQ(of("set = { " + quoted + " = \"1\" }").substr(quoted.size(), 14), " cannot change");
    EXPECT_EQ(of("remove = [" + quoted + "]").substr(0, 22), "\"remove\" cannot change");
  }
  const Route host =
      route("path = \"/x\"\nupstream = \"u\"\nrequest_headers.set.Host = \"a.test\"\n");
  EXPECT_EQ(host.request_headers.set.at(0).first, "host");
  EXPECT_EQ(problem("path = \"/x\"\nresponse_headers.set.Host = \"a\""),
            "\"Host\" is a field of requests");
}

TEST(ConfigRoute, ARedirectKeepsItsLocation) {
  auto of = [](std::string_view edits) {
    return problems(
        with_route("path = \"/x\"\nredirect = \"https://a.test\"\nresponse_headers = { " +
                   std::string(edits) + " }\n"));
  };
  auto at = [](std::string_view column, std::string_view name) {
    return Lines{"t.toml:14:" + std::string(column) + ": \"" + std::string(name) +
                 "\" cannot change \"location\" of a redirect (redirect says where to)"};
  };
  EXPECT_EQ(of("set = { Location = \"/\" }"), at("41", "Location"));
  EXPECT_EQ(of("add = { location = [\"/\", \"/a\"] }"), at("41", "location"));
  EXPECT_EQ(of("remove = [\"x\", \"location\"]"), at("37", "remove"));
  EXPECT_EQ(of("remove = [\"loc*\"]"), at("32", "remove"));
  EXPECT_EQ(of("set.x = \"1\", add.Locations = \"2\", remove = [\"x-*\", \"locations*\", \"loc\"]"),
            Lines());
  EXPECT_EQ(warnings(with_route("path = \"/x\"\nrespond = { status = 201 }\n"
                                "response_headers.set.Location = \"/y\"\n")),
            Lines());
}

TEST(ConfigRoute, Prefixes) {
  EXPECT_EQ(problem("path = \"/x\"\nstrip_prefix = \"x\""),
            "\"strip_prefix\" must begin with \"/\", unlike \"x\" (did you mean \"/x\"?)");
  EXPECT_EQ(problem("path = \"/x\"\nadd_prefix = \"/x/*\""),
            "\"add_prefix\" has a \"*\" in \"/x/*\" (a prefix is written without \"*\")");
  EXPECT_EQ(warnings(with_route("path = \"/a/*\"\nupstream = \"u\"\nstrip_prefix = \"/b\"\n")),
            Lines{"t.toml:14:16: \"strip_prefix\" \"/b\" is not at the start of \"/a/*\", so most "
                  "paths will "
                  "not change"});
  EXPECT_EQ(warnings(with_route("path = \"/a/*\"\nupstream = \"u\"\nstrip_prefix = \"/a\"\n")),
            Lines{});
  EXPECT_EQ(warnings(with_route("path = \"/a/b\"\nupstream = \"u\"\nstrip_prefix = \"/a/\"\n")),
            Lines{});
}

TEST(ConfigRoute, DuplicatesNameTheFirst) {
  EXPECT_EQ(problems(with_route("path = \"/./*\"\nrespond = {}\n")),
            Lines{"t.toml:11:1: this site has a route for \"/*\" already, at t.toml:8"});
  EXPECT_EQ(problems(with_route(
                "path = \"/x\"\nmethods = [\"GET\", \"PUT\"]\nrespond = {}\n[[site.route]]\n"
                "path = \"/x\"\nmethods = [\"POST\", \"PUT\"]\nrespond = {}\n")),
            Lines{"t.toml:15:1: this site has a route for PUT \"/x\" already, at t.toml:11"});
  EXPECT_EQ(problems(with_route("methods = \"GET\"\nrespond = {}\n")), Lines{});
}

TEST(ConfigRoute, KeysWithoutEffectAreWarnings) {
  EXPECT_EQ(warnings(with_route("path = \"/x\"\nrespond = {}\npreserve_host = true\n")),
            Lines{"t.toml:14:17: \"preserve_host\" does nothing in a route without upstream"});
  EXPECT_EQ(
      warnings(with_route(
          "methods = [\"GET\",\"POST\",\"PUT\",\"DELETE\",\"OPTIONS\",\"PATCH\"]\nrespond={}\n")),
      Lines{"t.toml:8:1: other routes for \"/*\" take every usual method, so this one hardly ever "
            "runs"});
}

TEST(ConfigRoute, UnknownKeys) {
  EXPECT_EQ(problem("path = \"/x\"\nmethod = \"GET\""),
            "unknown key \"method\" in [[site.route]] (did you mean \"methods\"?)");
  EXPECT_EQ(problem("path = \"/x\"\nrequest_headers = { sett = {} }"),
            "unknown key \"sett\" in request_headers (did you mean \"set\"?)");
}

}  // namespace
}  // namespace ringside::config
