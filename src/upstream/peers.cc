#include "ringside/upstream/peers.h"

#include <algorithm>
#include <utility>

namespace ringside::upstream {

void Peers::join(unsigned ring, ring::Mailbox& mailbox) {
  std::lock_guard lock(mailboxes_[ring].mutex);
  mailboxes_[ring].mailbox = &mailbox;
}

void Peers::leave(unsigned ring) {
  std::lock_guard lock(mailboxes_[ring].mutex);
  mailboxes_[ring].mailbox = nullptr;
}

bool Peers::post(ring::Ring* from, unsigned ring, const ring::Message& message) {
  std::lock_guard lock(mailboxes_[ring].mutex);
  ring::Mailbox* mailbox = mailboxes_[ring].mailbox;
  return mailbox != nullptr && mailbox->post(from, message);
}

void Peers::keep(std::shared_ptr<SharedServer> server) {
  std::lock_guard lock(kept_mutex_);
  if (std::find(kept_.begin(), kept_.end(), server) == kept_.end()) {
    kept_.push_back(std::move(server));
  }
}

}  // namespace ringside::upstream
