#include "neaptide/session/data.hpp"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/files.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/session/idx.hpp"

namespace neaptide::session {

namespace {

constexpr const char* kFashionFolder = "/usr/share/datasets/fashion-mnist";
constexpr Normalisation kFashionNormalisation = {0.2860, 0.3530};  // of the 60,000 training images

/// SplitMix64 (G. Steele, D. Lea, C. Flood, OOPSLA 2014) as a pure function of a counter.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t counter) {
  return mix(mix(mix(seed) ^ stream) ^ counter);
}

float uniform(std::uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-23F - 1.0F; }

std::string present(const std::string& folder, const std::string& file) {
  for (const char* suffix : {".gz", ""}) {
    std::string path = (std::filesystem::path(folder) / (file + suffix)).string();
    if (file_exists(path)) return path;
  }
  throw UserError(
      "no data in '{}': {}.gz is missing there; install the Debian package dataset-fashion-mnist, or name a "
      "folder that holds {}.gz",
      folder, file, file);
}

}  // namespace

void DataSet::write_sample(std::int64_t index, std::span<float> out) const {
  const auto size = static_cast<std::size_t>(sample_elements());
  ensure(index >= 0 && index < n && out.size() == size, "a sample is asked for that the data set does not have");
  const std::size_t begin = static_cast<std::size_t>(index) * size;
  if (pixels.empty()) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), size, out.begin());
    return;
  }
  const auto scale = static_cast<float>(1 / (255 * normalisation.deviation));
  const auto shift = static_cast<float>(normalisation.mean / normalisation.deviation);
  for (std::size_t i = 0; i < size; ++i) {
    out[i] = static_cast<float>(static_cast<unsigned char>(pixels[begin + i])) * scale - shift;
  }
}

DataSet read_image_data(const std::string& images, const std::string& labels, const std::string& name) {
  Idx x = read_idx(images, 3);
  const Idx y = read_idx(labels, 1);
  if (x.dims[0] != y.dims[0]) {
    throw UserError("'{}' has {} images, but '{}' has {} labels", images, x.dims[0], labels, y.dims[0]);
  }
  if (x.bytes.empty()) throw UserError("'{}' holds no images", images);
  DataSet out;
  out.name = name;
  out.n = x.dims[0];
  out.sample = {1, x.dims[1], x.dims[2]};
  out.pixels = std::move(x.bytes);
  for (const char c : y.bytes) out.labels.push_back(static_cast<unsigned char>(c));
  out.classes = 1 + *std::max_element(out.labels.begin(), out.labels.end());
  return out;
}

DataSet open_data(const std::string& what, Part part) {
  if (what.find(',') != std::string::npos) {
    const std::vector<std::string> files = split(what, ',');
    if (files.size() != 2) throw UserError("data '{}' is not IMAGES,LABELS: it has {} parts", what, files.size());
    return read_image_data(files[0], files[1], what);
  }
  const bool fashion = what == "fashion-mnist";
  const std::string folder = fashion ? kFashionFolder : what;
  const std::string prefix = part == Part::kTrain ? "train" : "t10k";
  if (!fashion && !file_exists(folder)) {
    const std::vector<std::string> known = {"fashion-mnist", "synthetic"};
    throw UserError(
        "no data '{}'{}; it is neither a known name (fashion-mnist, synthetic) nor a folder nor "
        "IMAGES,LABELS",
        what, did_you_mean(what, known));
  }
  const std::string images = present(folder, prefix + "-images-idx3-ubyte");
  DataSet out = read_image_data(images, present(folder, prefix + "-labels-idx1-ubyte"), what);
  if (fashion) out.normalisation = kFashionNormalisation;
  return out;
}

DataSet synthetic(const SyntheticOptions& o) {
  DataSet out;
  out.name = "synthetic";
  out.n = o.n;
  out.sample = o.sample;
  const auto total = static_cast<std::size_t>(checked_mul(o.n, out.sample_elements(), "the synthetic data"));
  out.values.resize(total);
  for (std::size_t i = 0; i < total; ++i) out.values[i] = uniform(random_bits(o.seed, 1, i));
  if (o.n_target > 0) {
    out.n_target = o.n_target;
    out.targets.resize(static_cast<std::size_t>(checked_mul(o.n, o.n_target, "the synthetic targets")));
    for (std::size_t i = 0; i < out.targets.size(); ++i) out.targets[i] = uniform(random_bits(o.seed, 2, i));
    return out;
  }
  out.classes = o.classes;
  for (std::int64_t i = 0; i < o.n; ++i) {
    const std::uint64_t bits = random_bits(o.seed, 2, static_cast<std::uint64_t>(i));
    out.labels.push_back(static_cast<std::int64_t>(bits % static_cast<std::uint64_t>(o.classes)));
  }
  return out;
}

std::vector<std::int64_t> shuffled(std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  for (std::size_t i = order.size(); i > 1; --i) {  // Fisher and Yates
    const std::uint64_t bits = random_bits(seed, static_cast<std::uint64_t>(epoch) + 16, i);
    std::swap(order[i - 1], order[bits % i]);
  }
  return order;
}

}  // namespace neaptide::session
