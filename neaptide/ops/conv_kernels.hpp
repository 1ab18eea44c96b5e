// The three kernels of a convolution in plain loops: forward, with respect to the input, with respect to the weight. A
// transposed convolution is the second; its gradients are the first and the third.
//
// Tensors are row-major {batch, channels, depth, height, width} and {out channels, in channels of the group, kernel}.
// Every sum is accumulated in double and in a fixed order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "neaptide/ops/window.hpp"

namespace neaptide::ops {

/// Sizes of a convolution. Channels count those of one group.
struct ConvGeometry {
  std::int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  Window window;
  std::array<std::vector<Span>, 3> taps;  // outputs_of_tap for every axis and tap

  ConvGeometry(std::int64_t batch_size, std::int64_t n_groups, std::int64_t in_per_group, std::int64_t out_per_group,
               const Window& w)
      : batch(batch_size), groups(n_groups), in_channels(in_per_group), out_channels(out_per_group), window(w) {
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::int64_t k = 0; k < w.axes[a].kernel; ++k) taps[a].push_back(outputs_of_tap(w.axes[a], k));
    }
  }
  bool reaches(std::size_t axis, std::int64_t k, std::int64_t o) const {
    const Span& s = taps[axis][static_cast<std::size_t>(k)];
    return s.begin <= o && o < s.end;
  }
  /// The output whose tap k reads input i, or -1.
  std::int64_t output(std::size_t axis, std::int64_t k, std::int64_t i) const {
    const Axis& a = window.axes[axis];
    const std::int64_t scaled = i + a.pad_begin - k * a.dilation;
    if (scaled < 0 || scaled % a.stride != 0) return -1;
    return scaled / a.stride < a.out ? scaled / a.stride : -1;
  }
  double flops() const {
    return 2.0 * static_cast<double>(batch) * static_cast<double>(groups) * static_cast<double>(in_channels) *
           static_cast<double>(out_channels) * static_cast<double>(window.out_elements()) *
           static_cast<double>(window.kernel_elements());
  }
};

namespace conv_detail {

constexpr std::int64_t kTile = 256;  // elements of a row that are accumulated at a time

template <class T>
void add_scaled(double* acc, std::int64_t acc_stride, double w, const T* x, std::int64_t x_stride, std::int64_t n) {
  if (acc_stride == 1 && x_stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) acc[i] += w * static_cast<double>(x[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) acc[i * acc_stride] += w * static_cast<double>(x[i * x_stride]);
  }
}

template <class T>
double dot(const T* a, const T* b, std::int64_t b_stride, std::int64_t n) {
  std::array<double, 4> part{};
  std::int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    for (std::size_t j = 0; j < 4; ++j) {
      const std::int64_t at = i + static_cast<std::int64_t>(j);
      part[j] += static_cast<double>(a[at]) * static_cast<double>(b[at * b_stride]);
    }
  }
  for (; i < n; ++i) part[0] += static_cast<double>(a[i]) * static_cast<double>(b[i * b_stride]);
  return (part[0] + part[1]) + (part[2] + part[3]);
}

/// Adds to the tile [begin, begin + n) of one output row all that a group's input channels contribute.
template <class T>
void add_output_row(const ConvGeometry& c, const T* x, const T* w, std::int64_t od, std::int64_t oh, Span tile,
                    double* acc) {
  const auto& [depth, height, width] = c.window.axes;
  for (std::int64_t ci = 0; ci < c.in_channels; ++ci) {
    for (std::int64_t kd = 0; kd < depth.kernel; ++kd) {
      if (!c.reaches(0, kd, od)) continue;
      for (std::int64_t kh = 0; kh < height.kernel; ++kh) {
        if (!c.reaches(1, kh, oh)) continue;
        const T* row = x + ((ci * depth.in + depth.input(od, kd)) * height.in + height.input(oh, kh)) * width.in;
        const T* taps = w + ((ci * depth.kernel + kd) * height.kernel + kh) * width.kernel;
        for (std::int64_t kw = 0; kw < width.kernel; ++kw) {
          const Span& valid = c.taps[2][static_cast<std::size_t>(kw)];
          const std::int64_t begin = std::max(tile.begin, valid.begin), end = std::min(tile.end, valid.end);
          if (begin < end)
            add_scaled(acc + (begin - tile.begin), 1, static_cast<double>(taps[kw]), row + width.input(begin, kw),
                       width.stride, end - begin);
        }
      }
    }
  }
}

/// Adds to the tile of one input row all that one output channel (rows `dy`, taps `w`) contributes.
template <class T>
void add_input_row(const ConvGeometry& c, const T* dy, const T* w, std::int64_t id, std::int64_t ih, Span tile,
                   double* acc) {
  const auto& [depth, height, width] = c.window.axes;
  for (std::int64_t kd = 0; kd < depth.kernel; ++kd) {
    const std::int64_t od = c.output(0, kd, id);
    if (od < 0) continue;
    for (std::int64_t kh = 0; kh < height.kernel; ++kh) {
      const std::int64_t oh = c.output(1, kh, ih);
      if (oh < 0) continue;
      const T* row = dy + (od * height.out + oh) * width.out;
      const T* taps = w + (kd * height.kernel + kh) * width.kernel;
      for (std::int64_t kw = 0; kw < width.kernel; ++kw) {
        Span valid = c.taps[2][static_cast<std::size_t>(kw)];
        if (tile.end - tile.begin < width.in) {  // the outputs whose tap lies inside the tile
          const Axis part{.in = tile.end - tile.begin,
                          .out = width.out,
                          .kernel = width.kernel,
                          .stride = width.stride,
                          .dilation = width.dilation,
                          .pad_begin = width.pad_begin + tile.begin,
                          .pad_end = 0};
          valid = outputs_of_tap(part, kw);
        }
        if (valid.begin < valid.end)
          add_scaled(acc + (width.input(valid.begin, kw) - tile.begin), width.stride, static_cast<double>(taps[kw]),
                     row + valid.begin, 1, valid.end - valid.begin);
      }
    }
  }
}

/// The gradient of one tap of one pair of channels, summed over the batch.
template <class T>
double tap_gradient(const ConvGeometry& c, const T* x, const T* dy, std::int64_t kd, std::int64_t kh, std::int64_t kw) {
  const auto& [depth, height, width] = c.window.axes;
  const Span ds = c.taps[0][static_cast<std::size_t>(kd)], hs = c.taps[1][static_cast<std::size_t>(kh)],
             ws = c.taps[2][static_cast<std::size_t>(kw)];
  const std::int64_t x_batch = c.groups * c.in_channels * c.window.in_elements();
  const std::int64_t dy_batch = c.groups * c.out_channels * c.window.out_elements();
  double sum = 0;
  if (ws.begin == ws.end) return sum;
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t od = ds.begin; od < ds.end; ++od) {
      for (std::int64_t oh = hs.begin; oh < hs.end; ++oh) {
        const std::int64_t x_row = (depth.input(od, kd) * height.in + height.input(oh, kh)) * width.in;
        sum += dot(dy + n * dy_batch + (od * height.out + oh) * width.out + ws.begin,
                   x + n * x_batch + x_row + width.input(ws.begin, kw), width.stride, ws.end - ws.begin);
      }
    }
  }
  return sum;
}

/// Calls f(depth, height, tile of width) for every row.
template <class F>
void for_rows(std::int64_t depth, std::int64_t height, std::int64_t width, F&& f) {
  for (std::int64_t d = 0; d < depth; ++d) {
    for (std::int64_t h = 0; h < height; ++h) {
      for (std::int64_t at = 0; at < width; at += kTile) f(d, h, Span{at, std::min(width, at + kTile)});
    }
  }
}

}  // namespace conv_detail

/// y = x * w + bias (null: none), then finish(value) on every element.
template <class T, class Finish>
void conv_forward(const ConvGeometry& c, const T* x, const T* w, const T* bias, T* y, Finish&& finish) {
  const auto& axes = c.window.axes;
  const std::int64_t x_channel = c.window.in_elements(), y_channel = c.window.out_elements();
  const std::int64_t w_channel = c.in_channels * c.window.kernel_elements();
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t m = 0; m < c.groups * c.out_channels; ++m) {
      const std::int64_t g = m / c.out_channels;
      const T* x_group = x + (n * c.groups + g) * c.in_channels * x_channel;
      T* out = y + (n * c.groups * c.out_channels + m) * y_channel;
      conv_detail::for_rows(axes[0].out, axes[1].out, axes[2].out, [&](std::int64_t od, std::int64_t oh, Span tile) {
        std::array<double, conv_detail::kTile> acc;
        const std::int64_t size = tile.end - tile.begin;
        std::fill_n(acc.begin(), size, bias != nullptr ? static_cast<double>(bias[m]) : 0.0);
        conv_detail::add_output_row(c, x_group, w + m * w_channel, od, oh, tile, acc.data());
        T* row = out + (od * axes[1].out + oh) * axes[2].out + tile.begin;
        for (std::int64_t i = 0; i < size; ++i) row[i] = static_cast<T>(finish(acc[static_cast<std::size_t>(i)]));
      });
    }
  }
}

/// dx = the adjoint of conv_forward applied to dy. `bias` (null: none) is added per input channel: it serves the
/// transposed convolution.
template <class T>
void conv_backward_input(const ConvGeometry& c, const T* dy, const T* w, const T* bias, T* dx) {
  const auto& axes = c.window.axes;
  const std::int64_t x_channel = c.window.in_elements(), y_channel = c.window.out_elements();
  const std::int64_t kernel = c.window.kernel_elements();
  for (std::int64_t n = 0; n < c.batch; ++n) {
    for (std::int64_t ci = 0; ci < c.groups * c.in_channels; ++ci) {
      const std::int64_t g = ci / c.in_channels;
      T* out = dx + (n * c.groups * c.in_channels + ci) * x_channel;
      conv_detail::for_rows(axes[0].in, axes[1].in, axes[2].in, [&](std::int64_t id, std::int64_t ih, Span tile) {
        std::array<double, conv_detail::kTile> acc;
        const std::int64_t size = tile.end - tile.begin;
        std::fill_n(acc.begin(), size, bias != nullptr ? static_cast<double>(bias[ci]) : 0.0);
        for (std::int64_t m = g * c.out_channels; m < (g + 1) * c.out_channels; ++m)
          conv_detail::add_input_row(c, dy + (n * c.groups * c.out_channels + m) * y_channel,
                                     w + (m * c.in_channels + ci % c.in_channels) * kernel, id, ih, tile, acc.data());
        T* row = out + (id * axes[1].in + ih) * axes[2].in + tile.begin;
        for (std::int64_t i = 0; i < size; ++i) row[i] = static_cast<T>(acc[static_cast<std::size_t>(i)]);
      });
    }
  }
}

template <class T>
void conv_backward_weight(const ConvGeometry& c, const T* dy, const T* x, T* dw) {
  const auto& [depth, height, width] = c.window.axes;
  for (std::int64_t m = 0; m < c.groups * c.out_channels; ++m) {
    for (std::int64_t ci = 0; ci < c.in_channels; ++ci) {
      const T* x_channel = x + (m / c.out_channels * c.in_channels + ci) * c.window.in_elements();
      const T* dy_channel = dy + m * c.window.out_elements();
      for (std::int64_t kd = 0; kd < depth.kernel; ++kd) {
        for (std::int64_t kh = 0; kh < height.kernel; ++kh) {
          for (std::int64_t kw = 0; kw < width.kernel; ++kw)
            *dw++ = static_cast<T>(conv_detail::tap_gradient(c, x_channel, dy_channel, kd, kh, kw));
        }
      }
    }
  }
}

/// The sum of {batch, channels, elements} over batch and elements.
template <class T>
void channel_sums(std::int64_t batch, std::int64_t channels, std::int64_t elements, const T* dy, T* db) {
  for (std::int64_t m = 0; m < channels; ++m) {
    double sum = 0;
    for (std::int64_t n = 0; n < batch; ++n) {
      const T* row = dy + (n * channels + m) * elements;
      for (std::int64_t i = 0; i < elements; ++i) sum += static_cast<double>(row[i]);
    }
    db[m] = static_cast<T>(sum);
  }
}

}  // namespace neaptide::ops
