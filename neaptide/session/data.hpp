// Data sets: samples and labels in host memory, pixels kept as bytes and normalised when a batch is made.
//
//   session::DataSet train = session::open_data("fashion-mnist", session::Part::kTrain);
//   session::DataSet tiny = session::synthetic({.n = 64, .sample = {1, 28, 28}, .classes = 10, .seed = 1});
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "neaptide/graph/types.hpp"

namespace neaptide::session {

/// A pixel p (0..255) becomes (p / 255 - mean) / deviation.
struct Normalisation {
  double mean = 0.5, deviation = 0.5;
  friend bool operator==(const Normalisation&, const Normalisation&) = default;
};

struct DataSet {
  std::string name;
  std::int64_t n = 0;
  graph::Shape sample;               // of one sample, without the batch
  std::string pixels;                // n samples as unsigned bytes, or
  std::vector<float> values;         // n samples as floats
  Normalisation normalisation;       // of pixels
  std::vector<std::int64_t> labels;  // n classes, each < classes; or
  std::vector<float> targets;        // n targets of n_target elements
  std::int64_t classes = 0;
  std::int64_t n_target = 0;

  std::int64_t sample_elements() const { return graph::n_elements(sample); }
  /// Sample `index`, normalised; `out` has sample_elements() elements.
  void write_sample(std::int64_t index, std::span<float> out) const;
};

enum class Part { kTrain, kTest };

/// `what`: "fashion-mnist" (the Debian package), a folder that holds {train,t10k}-{images-idx3,labels-idx1}-ubyte[.gz],
/// or "IMAGES,LABELS" (two IDX files). UserError saying what is missing and where to get it.
DataSet open_data(const std::string& what, Part part);

/// Two IDX files. UserError when their counts differ or a file is not what it should be.
DataSet read_image_data(const std::string& images, const std::string& labels, const std::string& name);

struct SyntheticOptions {
  std::int64_t n = 64;
  graph::Shape sample;
  std::int64_t classes = 10;  // labels, unless
  std::int64_t n_target = 0;  // targets are asked for
  std::uint64_t seed = 1;
};
/// Samples uniform in [-1, 1), labels or targets likewise: a pure function of the options.
DataSet synthetic(const SyntheticOptions& options);

/// The order of the samples in an epoch: a pure function of its arguments.
std::vector<std::int64_t> shuffled(std::int64_t n, std::uint64_t seed, std::int64_t epoch);

}  // namespace neaptide::session
