#include "neaptide/onnx/zoo.hpp"

#include <cmath>
#include <map>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/graph/builder.hpp"
#include "neaptide/ops/ops.hpp"

namespace neaptide::onnx {
namespace {

using graph::DType;
using graph::Shape;
using graph::Tensor;
using graph::ValueId;
using Index = std::int64_t;
using Ints = std::vector<Index>;

/// The `counter`-th output of SplitMix64 (Steele, Lea, Flood 2014) started at `key`.
std::uint64_t split_mix(std::uint64_t key, std::uint64_t counter) {
  std::uint64_t z = key + (counter + 1) * 0x9e3779b97f4a7c15ULL;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31);
}

Tensor filled(const Shape& shape, float value) {
  return graph::tensor_of(DType::kF32, shape,
                          std::vector<float>(static_cast<std::size_t>(graph::n_elements(shape)), value));
}

/// Layers by name on top of a Builder. The k-th weight drawn has its own key, so that layers do not repeat each other.
class Net {
 public:
  Net(const graph::OpSet& ops, std::uint64_t seed) : builder_(ops), seed_(seed) {}

  ValueId input(Index batch, Index channels, Index image) {
    return builder_.input("x", {DType::kF32, {batch, channels, image, image}});
  }
  const Shape& shape(ValueId v) { return builder_.graph().values[v].type.shape; }
  Index channels(ValueId v) { return shape(v)[1]; }

  struct Conv {
    Index out, kernel, stride = 1, group = 1;
    bool bias = false;
    Index pad = -1;  // -1: keeps the size at stride 1
  };
  ValueId conv(ValueId x, const Conv& c, const std::string& name) {
    const Index pad = c.pad < 0 ? (c.kernel - 1) / 2 : c.pad;
    const Index in = channels(x) / c.group;
    std::vector<ValueId> inputs = {x, weight({c.out, in, c.kernel, c.kernel}, in * c.kernel * c.kernel, name)};
    if (c.bias) inputs.push_back(builder_.parameter(name + ".bias", filled({c.out}, 0)));
    return builder_.add("Conv", inputs,
                        {{"strides", Ints{c.stride, c.stride}},
                         {"pads", Ints{pad, pad, pad, pad}},
                         {"dilations", Ints{1, 1}},
                         {"group", c.group},
                         {"kernel_shape", Ints{c.kernel, c.kernel}}},
                        name);
  }
  ValueId up(ValueId x, Index out, const std::string& name) {  // doubles the size
    const Index in = channels(x);
    return builder_.add("ConvTranspose",
                        {x, weight({in, out, 2, 2}, in, name), builder_.parameter(name + ".bias", filled({out}, 0))},
                        {{"strides", Ints{2, 2}}, {"kernel_shape", Ints{2, 2}}}, name);
  }
  ValueId norm(ValueId x, const std::string& name) {
    const Shape c = {channels(x)};
    return builder_.add(
        "BatchNormalization",
        {x, builder_.parameter(name + ".weight", filled(c, 1)), builder_.parameter(name + ".bias", filled(c, 0)),
         builder_.state(name + ".running_mean", filled(c, 0)), builder_.state(name + ".running_var", filled(c, 1))},
        {{"epsilon", 1e-5}, {"momentum", 0.9}}, name);
  }
  ValueId relu(ValueId x, const std::string& name) { return builder_.add("Relu", {x}, {}, name); }
  ValueId relu6(ValueId x, const std::string& name) {
    return builder_.add("Clip", {x}, {{"min", 0.0}, {"max", 6.0}}, name);
  }
  ValueId add(ValueId a, ValueId b, const std::string& name) { return builder_.add("Add", {a, b}, {}, name); }
  ValueId concat(ValueId a, ValueId b, const std::string& name) {
    return builder_.add("Concat", {a, b}, {{"axis", Index{1}}}, name);
  }
  ValueId pool(const char* op, ValueId x, Index kernel, Index stride, Index pad, const std::string& name) {
    return builder_.add(
        op, {x},
        {{"kernel_shape", Ints{kernel, kernel}}, {"strides", Ints{stride, stride}}, {"pads", Ints{pad, pad, pad, pad}}},
        name);
  }
  ValueId global_pool(ValueId x) { return flatten(builder_.add("GlobalAveragePool", {x}, {}, "pool")); }
  ValueId flatten(ValueId x) { return builder_.add("Flatten", {x}, {{"axis", Index{1}}}, "flatten"); }
  ValueId dense(ValueId x, Index out, const std::string& name) {
    const Index in = channels(x);
    return builder_.add("Gemm", {x, weight({out, in}, in, name), builder_.parameter(name + ".bias", filled({out}, 0))},
                        {{"transB", Index{1}}}, name);
  }
  ValueId dropout(ValueId x, const std::string& name) { return builder_.add("Dropout", {x}, {{"ratio", 0.5}}, name); }

  graph::Graph take(const std::string& name, ValueId output) {
    builder_.graph().name = name;
    return builder_.take({output});
  }

 private:
  ValueId weight(const Shape& shape, Index fan_in, const std::string& name) {
    const double bound = std::sqrt(6.0 / static_cast<double>(fan_in));
    const std::uint64_t key = split_mix(seed_, n_drawn_++);
    std::vector<float> v(static_cast<std::size_t>(graph::n_elements(shape)));
    for (std::size_t i = 0; i < v.size(); ++i) {
      const double unit = static_cast<double>(split_mix(key, i) >> 11) * 0x1.0p-53;  // [0, 1)
      v[i] = static_cast<float>((2 * unit - 1) * bound);
    }
    return builder_.parameter(name + ".weight", graph::tensor_of(DType::kF32, shape, v));
  }

  graph::Builder builder_;
  std::uint64_t seed_, n_drawn_ = 0;
};

ValueId mlp(Net& n, ValueId x, Index classes) {
  x = n.relu(n.dense(n.flatten(x), 256, "fc1"), "relu1");
  x = n.relu(n.dense(x, 128, "fc2"), "relu2");
  return n.dense(x, classes, "fc3");
}

// LeCun et al. 1998, with ReLU and maximum pooling.
ValueId lenet(Net& n, ValueId x, Index classes) {
  x = n.relu(n.conv(x, {.out = 6, .kernel = 5, .bias = true}, "conv1"), "relu1");
  x = n.pool("MaxPool", x, 2, 2, 0, "pool1");
  x = n.relu(n.conv(x, {.out = 16, .kernel = 5, .bias = true, .pad = 0}, "conv2"), "relu2");
  x = n.flatten(n.pool("MaxPool", x, 2, 2, 0, "pool2"));
  x = n.relu(n.dense(x, 120, "fc1"), "relu3");
  x = n.relu(n.dense(x, 84, "fc2"), "relu4");
  return n.dense(x, classes, "fc3");
}

ValueId conv_norm_relu(Net& n, ValueId x, const Net::Conv& c, const std::string& conv, const std::string& norm) {
  return n.relu(n.norm(n.conv(x, c, conv), norm), norm + ".relu");
}

/// The block's input, projected when its shape differs from the output's.
ValueId shortcut(Net& n, ValueId x, Index out, Index stride, const std::string& name) {
  if (n.channels(x) == out && stride == 1) return x;
  return n.norm(n.conv(x, {.out = out, .kernel = 1, .stride = stride}, name + ".downsample.0"), name + ".downsample.1");
}

// He et al. 2016.
ValueId basic_block(Net& n, ValueId x, Index out, Index stride, const std::string& name) {
  ValueId y = conv_norm_relu(n, x, {.out = out, .kernel = 3, .stride = stride}, name + ".conv1", name + ".bn1");
  y = n.norm(n.conv(y, {.out = out, .kernel = 3}, name + ".conv2"), name + ".bn2");
  return n.relu(n.add(y, shortcut(n, x, out, stride, name), name + ".add"), name + ".relu");
}

ValueId bottleneck(Net& n, ValueId x, Index width, Index stride, const std::string& name) {
  const Index out = 4 * width;
  ValueId y = conv_norm_relu(n, x, {.out = width, .kernel = 1}, name + ".conv1", name + ".bn1");
  y = conv_norm_relu(n, y, {.out = width, .kernel = 3, .stride = stride}, name + ".conv2", name + ".bn2");
  y = n.norm(n.conv(y, {.out = out, .kernel = 1}, name + ".conv3"), name + ".bn3");
  return n.relu(n.add(y, shortcut(n, x, out, stride, name), name + ".add"), name + ".relu");
}

using Block = ValueId (*)(Net&, ValueId, Index, Index, const std::string&);

/// Stages of blocks, each after the first halving the size and doubling the width; then the classifier.
ValueId stages(Net& n, ValueId x, Block block, Index width, const Ints& depths, Index classes) {
  for (std::size_t s = 0; s < depths.size(); ++s) {
    for (Index b = 0; b < depths[s]; ++b)
      x = block(n, x, width << s, s > 0 && b == 0 ? 2 : 1, fmt::format("layer{}.{}", s + 1, b));
  }
  return n.dense(n.global_pool(x), classes, "fc");
}

ValueId small_resnet(Net& n, ValueId x, Index depth, Index classes) {
  x = conv_norm_relu(n, x, {.out = 16, .kernel = 3}, "conv1", "bn1");
  return stages(n, x, basic_block, 16, {depth, depth, depth}, classes);
}
ValueId resnet8(Net& n, ValueId x, Index classes) { return small_resnet(n, x, 1, classes); }
ValueId resnet20(Net& n, ValueId x, Index classes) { return small_resnet(n, x, 3, classes); }

ValueId large_resnet(Net& n, ValueId x, Block block, const Ints& depths, Index classes) {
  x = conv_norm_relu(n, x, {.out = 64, .kernel = 7, .stride = 2}, "conv1", "bn1");
  return stages(n, n.pool("MaxPool", x, 3, 2, 1, "maxpool"), block, 64, depths, classes);
}
ValueId resnet18(Net& n, ValueId x, Index classes) { return large_resnet(n, x, basic_block, {2, 2, 2, 2}, classes); }
ValueId resnet50(Net& n, ValueId x, Index classes) { return large_resnet(n, x, bottleneck, {3, 4, 6, 3}, classes); }

// Simonyan and Zisserman 2015; 0 stands for a pooling layer.
ValueId vgg(Net& n, ValueId x, const Ints& widths, Index hidden, Index classes) {
  int i = 0;
  for (const Index width : widths) {
    const std::string at = std::to_string(i++);
    x = width == 0 ? n.pool("MaxPool", x, 2, 2, 0, "pool" + at)
                   : n.relu(n.conv(x, {.out = width, .kernel = 3, .bias = true}, "conv" + at), "relu" + at);
  }
  x = n.flatten(x);
  for (const std::string at : {"1", "2"})
    x = n.dropout(n.relu(n.dense(x, hidden, "fc" + at), "fc" + at + ".relu"), "dropout" + at);
  return n.dense(x, classes, "fc3");
}
ValueId vgg11(Net& n, ValueId x, Index classes) {
  return vgg(n, x, {64, 0, 128, 0, 256, 256, 0, 512, 512, 0, 512, 512, 0}, 512, classes);
}
ValueId vgg16(Net& n, ValueId x, Index classes) {
  return vgg(n, x, {64, 64, 0, 128, 128, 0, 256, 256, 256, 0, 512, 512, 512, 0, 512, 512, 512, 0}, 4096, classes);
}

ValueId conv_norm_relu6(Net& n, ValueId x, const Net::Conv& c, const std::string& name) {
  return n.relu6(n.norm(n.conv(x, c, name + ".conv"), name + ".bn"), name + ".relu6");
}

ValueId inverted_residual(Net& n, ValueId x, Index expand, Index out, Index stride, const std::string& name) {
  const Index in = n.channels(x), width = in * expand;
  ValueId y = x;
  if (expand != 1) y = conv_norm_relu6(n, y, {.out = width, .kernel = 1}, name + ".expand");
  y = conv_norm_relu6(n, y, {.out = width, .kernel = 3, .stride = stride, .group = width}, name + ".depthwise");
  y = n.norm(n.conv(y, {.out = out, .kernel = 1}, name + ".project"), name + ".bn");
  return stride == 1 && in == out ? n.add(x, y, name + ".add") : y;
}

// Sandler et al. 2018. Small images keep their size in the first two strided layers.
ValueId mobilenet(Net& n, ValueId x, bool small, Index classes) {
  struct Stage {
    Index expand, out, depth, stride;
  };
  const Index early = small ? 1 : 2;
  const std::vector<Stage> plan = {{1, 16, 1, 1}, {6, 24, 2, early}, {6, 32, 3, 2}, {6, 64, 4, 2},
                                   {6, 96, 3, 1}, {6, 160, 3, 2},    {6, 320, 1, 1}};
  x = conv_norm_relu6(n, x, {.out = 32, .kernel = 3, .stride = early}, "stem");
  int i = 0;
  for (const Stage& s : plan) {
    for (Index b = 0; b < s.depth; ++b)
      x = inverted_residual(n, x, s.expand, s.out, b == 0 ? s.stride : 1, fmt::format("block{}", ++i));
  }
  x = conv_norm_relu6(n, x, {.out = 1280, .kernel = 1}, "head");
  return n.dense(n.dropout(n.global_pool(x), "dropout"), classes, "fc");
}
ValueId mobilenet_v2(Net& n, ValueId x, Index classes) { return mobilenet(n, x, true, classes); }
ValueId mobilenet_v2_224(Net& n, ValueId x, Index classes) { return mobilenet(n, x, false, classes); }

ValueId two_convs(Net& n, ValueId x, Index out, const std::string& name) {
  x = conv_norm_relu(n, x, {.out = out, .kernel = 3}, name + ".conv1", name + ".bn1");
  return conv_norm_relu(n, x, {.out = out, .kernel = 3}, name + ".conv2", name + ".bn2");
}

// Ronneberger et al. 2015, two levels deep; `classes` are the output's channels.
ValueId unet(Net& n, ValueId x, Index classes) {
  const ValueId fine = two_convs(n, x, 16, "down1");
  const ValueId coarse = two_convs(n, n.pool("MaxPool", fine, 2, 2, 0, "pool1"), 32, "down2");
  x = two_convs(n, n.pool("MaxPool", coarse, 2, 2, 0, "pool2"), 64, "bottom");
  x = two_convs(n, n.concat(coarse, n.up(x, 32, "up2"), "concat2"), 32, "merge2");
  x = two_convs(n, n.concat(fine, n.up(x, 16, "up1"), "concat1"), 16, "merge1");
  return n.conv(x, {.out = classes, .kernel = 1, .bias = true}, "head");
}

struct Entry {
  const char* name;
  ValueId (*build)(Net&, ValueId, Index classes);
  Index channels, image, classes;
};
constexpr Entry kZoo[] = {
    {"lenet", lenet, 1, 28, 10},
    {"mlp", mlp, 1, 28, 10},
    {"mobilenet_v2", mobilenet_v2, 3, 32, 10},
    {"mobilenet_v2_224", mobilenet_v2_224, 3, 224, 1000},
    {"resnet18", resnet18, 3, 224, 1000},
    {"resnet20", resnet20, 1, 28, 10},
    {"resnet50", resnet50, 3, 224, 1000},
    {"resnet8", resnet8, 1, 28, 10},
    {"unet", unet, 1, 32, 1},
    {"vgg11", vgg11, 3, 32, 10},
    {"vgg16", vgg16, 3, 224, 1000},
};

}  // namespace

std::vector<std::string> zoo_names() {
  std::vector<std::string> out;
  for (const Entry& e : kZoo) out.emplace_back(e.name);
  return out;
}

graph::Graph make(const std::string& name, std::int64_t batch, const ZooOptions& options) {
  for (const Entry& e : kZoo) {
    if (e.name != name) continue;
    if (batch < 1) throw UserError("batch {} is not at least 1", batch);
    Net net(ops::all(), options.seed);
    const ValueId x = net.input(batch, e.channels, options.image > 0 ? options.image : e.image);
    return net.take(name, e.build(net, x, options.classes > 0 ? options.classes : e.classes));
  }
  throw UserError("there is no network '{}'{}; known are {}", name, did_you_mean(name, zoo_names()),
                  join(zoo_names(), ", "));
}

}  // namespace neaptide::onnx
