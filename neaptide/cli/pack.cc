// neaptide pack: blocks in minimalloc's CSV in, offsets out.
#include "neaptide/cli/verb.hpp"

namespace neaptide::cli {

namespace {

struct PackFlags {
  std::string path, output, capacity, packer = "best";
  double time_limit = 5;
  std::uint64_t seed = 1;
};

Json report_of(const memory::CsvBlocks& blocks, const memory::Offsets& packed, const std::optional<Bytes>& capacity) {
  Json out{{"blocks", blocks.blocks.size()},
           {"top", packed.top},
           {"load", memory::load(blocks.blocks)},
           {"optimal", packed.optimal}};
  out["capacity"] = capacity ? Json(*capacity) : Json();
  out["fits"] = !capacity || packed.top <= *capacity;
  return out;
}

int pack(const PackFlags& flags, Console& console) {
  memory::CsvBlocks blocks = memory::read_csv(flags.path);
  memory::PackOptions options;
  if (!flags.capacity.empty()) options.capacity = parse_bytes(flags.capacity, "capacity");
  options.time_limit = flags.time_limit;
  options.seed = flags.seed;
  options.packer = flags.packer;
  const memory::Offsets packed = memory::pack(blocks.blocks, options);
  blocks.offset = packed.offset;
  const bool fits = !options.capacity || packed.top <= *options.capacity;
  if (fits && !flags.output.empty()) write_file_atomically(flags.output, memory::to_csv(blocks));
  const Bytes load = memory::load(blocks.blocks);
  console.note(fmt::format("{} blocks, top {} bytes, largest sum of live bytes {}{}", blocks.blocks.size(), packed.top,
                           load, packed.optimal ? ", proved optimal" : ""));
  if (console.json) {
    console.value(report_of(blocks, packed, options.capacity));
  } else if (fits && flags.output.empty()) {
    console.data(memory::to_csv(blocks));
  }
  if (fits) return kOk;
  console.error(
      load > *options.capacity
          ? fmt::format("no layout fits {} bytes: {} bytes are live at once", *options.capacity, load)
          : fmt::format("no layout within {} bytes was found; the best has {}", *options.capacity, packed.top));
  return load > *options.capacity || packed.optimal ? kNoPlan : kTimeLimit;
}

std::function<int()> declare(CLI::App& app, Console& console) {
  auto flags = std::make_shared<PackFlags>();
  app.add_option("FILE", flags->path, "CSV with the columns id, lower, upper, size")->required();
  app.add_option("--capacity", flags->capacity, "bytes that the layout may take");
  app.add_option("--time-limit", flags->time_limit, "seconds")->check(CLI::NonNegativeNumber);
  app.add_option("--packer", flags->packer, "a packer's name, or best: all of them");
  app.add_option("--seed", flags->seed, "for random decisions");
  app.add_option("-o,--output", flags->output, "where the CSV with the column offset goes; default: stdout");
  return [flags, &console] { return pack(*flags, console); };
}

}  // namespace

const Verb kPackVerb = {"pack", "Gives every block of a CSV file an address.", declare};

}  // namespace neaptide::cli
