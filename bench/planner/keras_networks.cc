#include "bench/planner/keras_networks.hpp"

#include <fmt/core.h>

#include <array>
#include <utility>

namespace neaptide::bench {
namespace {

/// Appends layers and keeps the shape of the latest one: height and width `side`, `channels`.
class Builder {
 public:
  struct At {  // the output of a layer; index -1: the images
    int index;
    std::int64_t side, channels;
  };

  explicit Builder(std::string name) { network_.name = std::move(name); }
  static At images() { return {-1, 224, 3}; }
  Network take() && { return std::move(network_); }

  At conv(const std::string& name, At in, std::int64_t kernel, std::int64_t stride, std::int64_t channels, bool padded,
          bool bias) {
    const std::int64_t side = padded ? (in.side + stride - 1) / stride : (in.side - kernel) / stride + 1;
    const std::int64_t weights = kernel * kernel * in.channels * channels, elements = side * side * channels;
    return add(name, {in}, side, channels, elements * kernel * kernel * in.channels, weights + (bias ? channels : 0));
  }
  At depthwise(const std::string& name, At in, std::int64_t stride, bool padded) {
    const std::int64_t side = padded ? in.side : (in.side - 3) / stride + 1;
    return add(name, {in}, side, in.channels, side * side * in.channels * 9, 9 * in.channels);
  }
  At norm(const std::string& name, At in) {
    return add(name, {in}, in.side, in.channels, 4 * elements(in), 4 * in.channels);
  }
  At relu(const std::string& name, At in) { return add(name, {in}, in.side, in.channels, elements(in), 0); }
  At pad(const std::string& name, At in, std::int64_t more) {
    return add(name, {in}, in.side + more, in.channels, 0, 0);
  }
  At pool(const std::string& name, At in, std::int64_t side) { return add(name, {in}, side, in.channels, 0, 0); }
  At same(const std::string& name, At in) { return add(name, {in}, in.side, in.channels, 0, 0); }
  At flatten(const std::string& name, At in) { return add(name, {in}, 1, elements(in), 0, 0); }
  At sum(const std::string& name, At a, At b) {
    return add(name, {a, b}, a.side, a.channels, elements(a) + elements(b), 0);
  }
  At dense(const std::string& name, At in, std::int64_t channels) {
    return add(name, {in}, 1, channels, in.channels * channels, (in.channels + 1) * channels);
  }

 private:
  static std::int64_t elements(At at) { return at.side * at.side * at.channels; }

  At add(const std::string& name, std::initializer_list<At> from, std::int64_t side, std::int64_t channels,
         std::int64_t multiply_adds, std::int64_t parameters) {
    Layer layer{name, {}, side * side * channels, multiply_adds, parameters};
    for (const At& a : from) {
      if (a.index >= 0) layer.inputs.push_back(a.index);
    }
    network_.layers.push_back(std::move(layer));
    return {static_cast<int>(network_.layers.size()) - 1, side, channels};
  }

  Network network_;
};

using At = Builder::At;

Network vgg(const std::string& name, const std::array<int, 5>& convolutions) {
  Builder b(name);
  constexpr std::array<int, 5> kChannels = {64, 128, 256, 512, 512};
  At at = Builder::images();
  for (std::size_t block = 0; block < kChannels.size(); ++block) {
    for (int i = 0; i < convolutions[block]; ++i) {
      at = b.conv(fmt::format("block{}.conv{}", block + 1, i + 1), at, 3, 1, kChannels[block], true, true);
    }
    at = b.pool(fmt::format("block{}.pool", block + 1), at, at.side / 2);
  }
  at = b.flatten("flatten", at);
  at = b.dense("dense1", at, 4096);
  at = b.dense("dense2", at, 4096);
  b.dense("predictions", at, 1000);
  return std::move(b).take();
}

/// A bottleneck of ResNet; with `widen` its shortcut is a convolution.
At bottleneck(Builder* b, const std::string& name, At in, std::int64_t channels, std::int64_t stride, bool widen) {
  At shortcut = in;
  if (widen) {
    shortcut = b->norm(name + ".0.bn", b->conv(name + ".0.conv", in, 1, stride, 4 * channels, false, true));
  }
  At at = b->relu(name + ".1.relu",
                  b->norm(name + ".1.bn", b->conv(name + ".1.conv", in, 1, stride, channels, false, true)));
  at = b->relu(name + ".2.relu", b->norm(name + ".2.bn", b->conv(name + ".2.conv", at, 3, 1, channels, true, true)));
  at = b->norm(name + ".3.bn", b->conv(name + ".3.conv", at, 1, 1, 4 * channels, false, true));
  return b->relu(name + ".out", b->sum(name + ".add", shortcut, at));
}

/// One op that any plan may repeat.
plan::OpId append(plan::Problem* p, const std::string& name, double cost, std::vector<plan::BufferId> reads,
                  Bytes bytes) {
  plan::Impl impl;
  impl.name = "plain";
  impl.device = plan::DeviceId(0);
  impl.seconds = cost;
  impl.reads = std::move(reads);
  impl.writes = {p->buffers.push_back({.name = name, .bytes = bytes})};
  const plan::OpId op = p->ops.push_back({name, false, {std::move(impl)}});
  p->order.push_back(op);
  return op;
}

}  // namespace

std::int64_t Network::forward() const {
  std::int64_t sum = 0;
  for (const Layer& l : layers) sum += l.multiply_adds;
  return sum;
}

Bytes Network::fixed_bytes() const {
  Bytes sum = 0;
  for (const Layer& l : layers) sum += 2 * 4 * l.parameters;
  return sum;
}

plan::Problem training_problem(const Network& network, std::int64_t batch) {
  plan::Problem p;
  p.name = fmt::format("{}, batch {}", network.name, batch);
  p.devices.push_back({.name = "gpu", .budget = kCheckmateMemory - network.fixed_bytes()});
  const std::size_t n = network.layers.size();
  std::vector<std::vector<std::size_t>> consumers(n);
  const auto output = [](std::size_t op) { return plan::BufferId(op); };  // op i writes buffer i
  for (std::size_t i = 0; i < n; ++i) {
    const Layer& layer = network.layers[i];
    std::vector<plan::BufferId> reads;
    for (const int in : layer.inputs) {
      consumers[static_cast<std::size_t>(in)].push_back(i);
      reads.push_back(output(static_cast<std::size_t>(in)));
    }
    append(&p, layer.name, static_cast<double>(layer.multiply_adds), std::move(reads), 4 * layer.elements * batch);
  }
  append(&p, "loss", 0, {output(n - 1)}, 4 * batch);
  std::vector<plan::BufferId> gradient(n);
  for (std::size_t i = n; i-- > 0;) {
    const Layer& layer = network.layers[i];
    std::vector<plan::BufferId> reads{output(i)};
    if (consumers[i].empty()) reads.push_back(output(n));  // the loss
    for (const std::size_t c : consumers[i]) {
      reads.push_back(output(c));
      reads.push_back(gradient[c]);
    }
    const plan::OpId op = append(&p, layer.name + ".grad", 2 * static_cast<double>(layer.multiply_adds),
                                 std::move(reads), 4 * layer.elements * batch);
    gradient[i] = output(op.index());
  }
  p.buffers[gradient[0]].keep = true;
  return p;
}

plan::Problem held_problem(const Network& network, std::int64_t batch) {
  plan::Problem p = training_problem(network, batch);
  const std::size_t n_forward = network.layers.size();
  std::vector<plan::BufferId>& reads = p.ops[p.order[p.order.size() - 2]].impls[0].reads;
  std::erase_if(reads, [&](plan::BufferId b) { return b.index() < n_forward; });
  for (std::size_t i = 0; i < n_forward; ++i) reads.emplace_back(i);
  return p;
}

Network vgg16() { return vgg("VGG16", {2, 2, 3, 3, 3}); }
Network vgg19() { return vgg("VGG19", {2, 2, 4, 4, 4}); }

Network mobilenet() {
  Builder b("MobileNet");
  At at = b.pad("conv1.pad", Builder::images(), 1);
  at = b.relu("conv1.relu", b.norm("conv1.bn", b.conv("conv1", at, 3, 2, 32, false, false)));
  struct Block {
    std::int64_t channels, stride;
  };
  constexpr std::array<Block, 13> kBlocks = {{{64, 1},
                                              {128, 2},
                                              {128, 1},
                                              {256, 2},
                                              {256, 1},
                                              {512, 2},
                                              {512, 1},
                                              {512, 1},
                                              {512, 1},
                                              {512, 1},
                                              {512, 1},
                                              {1024, 2},
                                              {1024, 1}}};
  for (std::size_t i = 0; i < kBlocks.size(); ++i) {
    const auto name = [&](const char* part) { return fmt::format("block{}.{}", i + 1, part); };
    const bool halves = kBlocks[i].stride == 2;
    if (halves) at = b.pad(name("pad"), at, 1);
    at = b.relu(name("dw.relu"), b.norm(name("dw.bn"), b.depthwise(name("dw"), at, kBlocks[i].stride, !halves)));
    at = b.conv(name("pw"), at, 1, 1, kBlocks[i].channels, true, false);
    at = b.relu(name("pw.relu"), b.norm(name("pw.bn"), at));
  }
  at = b.same("dropout", b.same("reshape1", b.pool("pool", at, 1)));
  at = b.conv("predictions", at, 1, 1, 1000, true, true);
  b.same("reshape2", b.same("softmax", at));
  return std::move(b).take();
}

Network resnet50() {
  Builder b("ResNet50");
  At at = b.conv("conv1", b.pad("conv1.pad", Builder::images(), 6), 7, 2, 64, false, true);
  at = b.pad("pool1.pad", b.relu("conv1.relu", b.norm("conv1.bn", at)), 2);
  at = b.pool("pool1", at, 56);
  constexpr std::array<int, 4> kBlocks = {3, 4, 6, 3};
  for (std::size_t stage = 0; stage < kBlocks.size(); ++stage) {
    for (int i = 0; i < kBlocks[stage]; ++i) {
      const bool first = i == 0;
      at = bottleneck(&b, fmt::format("stage{}.{}", stage + 2, i + 1), at, 64LL << stage, first && stage > 0 ? 2 : 1,
                      first);
    }
  }
  b.dense("predictions", b.pool("pool", at, 1), 1000);
  return std::move(b).take();
}

}  // namespace neaptide::bench
