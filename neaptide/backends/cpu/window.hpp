// Sliding windows (ops/window.hpp) in oneDNN's terms.
#pragma once

#include <algorithm>

#include "neaptide/backends/cpu/formats.hpp"
#include "neaptide/ops/window.hpp"

namespace neaptide::backends::cpu {

struct Window {
  Dims kernel, strides, before, after;
  Dims dilations;  // oneDNN counts from 0
};

/// The padding behind is what the windows really reach: rounding up or down gives exactly the outputs.
inline Window window_of(const ops::Window& window) {
  Window w;
  for (std::size_t d = 3 - window.rank; d < 3; ++d) {
    const ops::Axis& a = window.axes[d];
    w.kernel.push_back(a.kernel);
    w.strides.push_back(a.stride);
    w.dilations.push_back(a.dilation - 1);
    w.before.push_back(a.pad_begin);
    w.after.push_back(std::max<std::int64_t>(0, (a.out - 1) * a.stride + a.extent() - a.in - a.pad_begin));
  }
  return w;
}

}  // namespace neaptide::backends::cpu
