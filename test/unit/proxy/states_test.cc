#include "states.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

namespace ringside::proxy {
namespace {

using Q = RequestState;
using QE = RequestEvent;
using S = ResponseState;
using SE = ResponseEvent;

const std::vector<Q> request_states = {Q::reading_head, Q::held,     Q::relaying, Q::discarding,
                                       Q::tunneling,    Q::complete, Q::gone};
const std::vector<QE> request_events = {QE::head,    QE::head_bodyless, QE::relay,  QE::hold,
                                        QE::discard, QE::end,           QE::tunnel, QE::lost};
const std::vector<S> response_states = {S::none, S::sending, S::tunneling, S::complete, S::lost};
const std::vector<SE> response_events = {SE::interim, SE::head, SE::tunnel, SE::end, SE::lost};

// Written from the meaning of the states, not from the table: what is not here is illegal.
const std::map<std::pair<Q, QE>, Q> request_rules = {
    {{Q::reading_head, QE::head}, Q::held},
    {{Q::reading_head, QE::head_bodyless}, Q::complete},
    {{Q::held, QE::relay}, Q::relaying},
    {{Q::held, QE::hold}, Q::held},
    {{Q::held, QE::discard}, Q::discarding},
    {{Q::relaying, QE::hold}, Q::held},
    {{Q::relaying, QE::discard}, Q::discarding},
    {{Q::relaying, QE::end}, Q::complete},
    {{Q::discarding, QE::discard}, Q::discarding},
    {{Q::discarding, QE::end}, Q::complete},
    {{Q::tunneling, QE::discard}, Q::discarding},
    {{Q::tunneling, QE::end}, Q::complete},
    {{Q::complete, QE::relay}, Q::complete},
    {{Q::complete, QE::hold}, Q::complete},
    {{Q::complete, QE::discard}, Q::complete},
    {{Q::complete, QE::tunnel}, Q::tunneling},
    {{Q::gone, QE::discard}, Q::gone},
};

const std::map<std::pair<S, SE>, S> response_rules = {
    {{S::none, SE::interim}, S::none},      {{S::none, SE::head}, S::sending},
    {{S::none, SE::tunnel}, S::tunneling},  {{S::sending, SE::end}, S::complete},
    {{S::tunneling, SE::end}, S::complete},
};

TEST(States, every_pair_of_the_request) {
  for (Q state : request_states) {
    for (QE event : request_events) {
      Step<Q> step = next(state, event);
      auto where = testing::Message() << "state " << int(state) << ", event " << int(event);
      if (event == QE::lost) {  // whatever the state, the client may go
        EXPECT_TRUE(step.legal) << where;
        EXPECT_EQ(step.to, Q::gone) << where;
        continue;
      }
      auto rule = request_rules.find({state, event});
      EXPECT_EQ(step.legal, rule != request_rules.end()) << where;
      if (rule != request_rules.end()) {
        EXPECT_EQ(step.to, rule->second) << where;
      }
    }
  }
}

TEST(States, every_pair_of_the_response) {
  for (S state : response_states) {
    for (SE event : response_events) {
      Step<S> step = next(state, event);
      auto where = testing::Message() << "state " << int(state) << ", event " << int(event);
      if (event == SE::lost) {
        EXPECT_TRUE(step.legal) << where;
        EXPECT_EQ(step.to, S::lost) << where;
        continue;
      }
      auto rule = response_rules.find({state, event});
      EXPECT_EQ(step.legal, rule != response_rules.end()) << where;
      if (rule != response_rules.end()) {
        EXPECT_EQ(step.to, rule->second) << where;
      }
    }
  }
}

template <typename State, typename Event>
std::set<State> reachable(State from, const std::vector<Event>& events) {
  std::set<State> found = {from};
  std::vector<State> todo = {from};
  while (!todo.empty()) {
    State state = todo.back();
    todo.pop_back();
    for (Event event : events) {
      Step<State> step = next(state, event);
      if (step.legal && found.insert(step.to).second) todo.push_back(step.to);
    }
  }
  return found;
}

TEST(States, every_state_is_reached) {
  EXPECT_EQ(reachable(Q::reading_head, request_events).size(), request_states.size());
  EXPECT_EQ(reachable(S::none, response_events).size(), response_states.size());
}

TEST(States, nothing_leads_out_of_the_end) {
  EXPECT_EQ(reachable(Q::gone, request_events), std::set<Q>{Q::gone});
  EXPECT_EQ(reachable(S::lost, response_events), std::set<S>{S::lost});
  EXPECT_FALSE(reachable(S::complete, response_events).contains(S::sending));
}

}  // namespace
}  // namespace ringside::proxy
