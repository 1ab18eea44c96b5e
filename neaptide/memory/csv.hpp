// Blocks as CSV, in the columns that the minimalloc benchmarks use: id, lower, upper, size and, for a solved instance,
// offset; one block a line, times half-open, sizes in bytes. The header line names the columns, in any order. Fields
// that hold a comma, a quote or a line break are quoted as in RFC 4180.
//
//   memory::CsvBlocks in = memory::read_csv("A.1048576.csv");       // throws UserError naming line and column
//   memory::Offsets o = memory::pack(in.blocks, {.capacity = 1048576});
//   in.offset = o.offset;
//   write_file_atomically("A.out.csv", memory::to_csv(in));
//
// Format: M. Moffitt, "MiniMalloc: A Lightweight Memory Allocator for Hardware-Accelerated Machine Learning", 2023.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "neaptide/memory/memory.hpp"

namespace neaptide::memory {

struct CsvBlocks {
  std::vector<std::string> ids;  // unique
  std::vector<Block> blocks;
  std::optional<std::vector<Bytes>> offset;
  friend bool operator==(const CsvBlocks&, const CsvBlocks&) = default;
};

/// `place` names the source in messages. Throws UserError.
CsvBlocks csv_from_text(std::string_view text, std::string_view place);
CsvBlocks read_csv(const std::string& path);

std::string to_csv(const CsvBlocks& blocks);

}  // namespace neaptide::memory
