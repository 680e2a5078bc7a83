// Every body byte carries the mark of its exchange, lane and place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace ringside::sim {

enum class Lane : std::uint8_t { request, response, tunnel_up, tunnel_down };

std::string marked(std::uint32_t exchange, Lane lane, std::size_t offset, std::size_t bytes);
// Where `data`, standing at `offset` of that body, first differs; npos when it is right.
std::size_t first_wrong(std::uint32_t exchange, Lane lane, std::size_t offset,
                        std::string_view data);

}  // namespace ringside::sim
