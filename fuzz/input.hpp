// What the fuzz targets share. A reader may answer with a value or with UserError; anything else ends the run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "neaptide/base/errors.hpp"

namespace neaptide::fuzz {

/// Calls read(text); UserError is a good answer to bad input.
template <class Read>
int offer(const std::uint8_t* data, std::size_t size, Read read) {
  try {
    read(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const UserError&) {
    return 0;
  }
  return 0;
}

}  // namespace neaptide::fuzz
