#include "neaptide/memory/csv.hpp"

#include <gtest/gtest.h>

#include "neaptide/base/errors.hpp"

namespace neaptide::memory {
namespace {

std::string complaint(std::string_view text) {
  try {
    csv_from_text(text, "in.csv");
  } catch (const UserError& e) {
    return e.what();
  }
  return "none";
}

TEST(Csv, ReadsColumnsInAnyOrder) {
  const CsvBlocks in = csv_from_text("size,id,upper,lower\r\n16,x,4,1\r\n\r\n0,y,2,0", "in.csv");
  EXPECT_EQ(in.ids, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(in.blocks, (std::vector<Block>{{1, 4, 16}, {0, 2, 0}}));
  EXPECT_FALSE(in.offset);
}

TEST(Csv, WritesWhatItReads) {
  CsvBlocks blocks;
  blocks.ids = {"plain", "with,comma", "with \"quote\"", "two\nlines", ""};
  blocks.blocks = {{0, 1, 1}, {1, 2, 2}, {2, 3, 3}, {3, 4, 4}, {4, 5, 5}};
  EXPECT_EQ(csv_from_text(to_csv(blocks), "again"), blocks);
  blocks.offset = std::vector<Bytes>{5, 4, 3, 2, 1};
  EXPECT_EQ(csv_from_text(to_csv(blocks), "again"), blocks);
}

TEST(Csv, KeepsABlocksHeaderOnly) { EXPECT_TRUE(csv_from_text("id,lower,upper,size\n", "in.csv").blocks.empty()); }

TEST(Csv, NamesWhatIsWrong) {
  const std::string header = "id,lower,upper,size,offset\n";
  EXPECT_EQ(complaint(""), "in.csv is empty; the first line names the columns id,lower,upper,size");
  EXPECT_EQ(complaint("id,lower,uper,size"),
            "in.csv:1: unknown column 'uper'; did you mean 'upper'?; the columns are id, lower, upper, size and, "
            "optionally, offset");
  EXPECT_EQ(complaint("id,lower,upper"), "in.csv:1: there is no column 'size'");
  EXPECT_EQ(complaint("id,id,lower,upper,size"), "in.csv:1: column 'id' is named twice");
  EXPECT_EQ(complaint(header + "a,0,1,1"), "in.csv:2: 4 fields; the header names 5");
  EXPECT_EQ(complaint(header + "a,0,1,1,0\n\na,0,1,1,0"), "in.csv:4: id 'a' appears twice");
  EXPECT_EQ(complaint(header + "a,2,2,1,0"), "in.csv:2: upper '2' is not a whole number from 3 to 2147483647");
  EXPECT_EQ(complaint(header + "a,-1,2,1,0"), "in.csv:2: lower '-1' is not a whole number from 0 to 2147483646");
  EXPECT_EQ(complaint(header + "a,0,1,1e3,0"),
            "in.csv:2: size '1e3' is not a whole number from 0 to 9223372036854775807");
  EXPECT_EQ(complaint(header + "a,0,1,9223372036854775807,1"),
            "in.csv:2: offset '1' is not a whole number from 0 to 0");
  EXPECT_EQ(complaint(header + "\"a,0,1,1,0"), "in.csv:2: a quoted field has no closing quote");
  EXPECT_EQ(complaint(header + "\"a\"b,0,1,1,0"), "in.csv:2: text follows a closing quote");
}

}  // namespace
}  // namespace neaptide::memory
