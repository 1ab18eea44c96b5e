// Classic image networks as training problems that grow with the batch, by the rules under which the largest-batch
// figures of Jain et al. (Checkmate, MLSys 2020, section 6.4) were published. The layer lists are written from the
// networks' own papers: VGG (Simonyan and Zisserman 2014), MobileNet v1 (Howard et al. 2017), ResNet (He et al. 2015),
// in the form that Keras gives them: padding layers of their own, ResNet's stride in the first convolution of a block.
//
//   const bench::Network n = bench::vgg19();
//   const plan::Problem p = bench::training_problem(n, 289);   // one device; budget 16e9 bytes less n.fixed_bytes()
//   bench::cost_cap(n)                                         // multiply-adds per image that a plan may take
//
// One op per layer, a loss op (4 bytes an image, no time), one gradient op per layer, which costs twice its layer and
// reads the layer's output, the outputs of its consumers and their gradients. Bytes: 4 per element of the output, for
// an op and for its gradient alike. Seconds are multiply-adds per image. Any op may run any number of times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "neaptide/plan/problem.hpp"

namespace neaptide::bench {

struct Layer {
  std::string name;
  std::vector<int> inputs;         // layers before it; empty: reads the images, which count no memory
  std::int64_t elements = 0;       // of the output, per image
  std::int64_t multiply_adds = 0;  // forward, per image
  std::int64_t parameters = 0;
};

struct Network {
  std::string name;
  std::vector<Layer> layers;
  std::int64_t forward() const;  // multiply-adds per image
  std::int64_t total() const { return 3 * forward(); }
  Bytes fixed_bytes() const;  // parameters and their gradients, 4 bytes each
};

inline constexpr Bytes kCheckmateMemory = 16'000'000'000;

/// Two forward passes and one backward: what a plan may cost per image.
inline std::int64_t cost_cap(const Network& network) { return 4 * network.forward(); }

plan::Problem training_problem(const Network& network, std::int64_t batch);

/// What the published figures compare with: every layer's output is held until the last gradient begins. Its keep-all
/// peak is that of the published keep-all; for plans use training_problem.
plan::Problem held_problem(const Network& network, std::int64_t batch);

Network vgg16();
Network vgg19();
Network mobilenet();
Network resnet50();

}  // namespace neaptide::bench
