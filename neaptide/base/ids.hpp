// Typed indices: an Id<Tag> is an index into one vector, and cannot be mixed with an index into another.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace neaptide {

template <class Tag>
struct Id {
  std::int32_t value = -1;  // -1: none

  constexpr Id() = default;
  constexpr explicit Id(std::int32_t v) : value(v) {}
  constexpr explicit Id(std::size_t v) : value(static_cast<std::int32_t>(v)) {}
  constexpr bool valid() const { return value >= 0; }
  constexpr std::size_t index() const { return static_cast<std::size_t>(value); }
  friend constexpr auto operator<=>(Id, Id) = default;
};

/// A vector indexed by Id<Tag>.
template <class Tag, class T>
class IdVector {
 public:
  IdVector() = default;
  explicit IdVector(std::size_t n, T fill = T()) : items_(n, fill) {}
  decltype(auto) operator[](Id<Tag> id) { return items_[id.index()]; }
  decltype(auto) operator[](Id<Tag> id) const { return items_[id.index()]; }
  Id<Tag> push_back(T item) {
    items_.push_back(std::move(item));
    return Id<Tag>(items_.size() - 1);
  }
  std::size_t size() const { return items_.size(); }
  bool empty() const { return items_.empty(); }
  void resize(std::size_t n, T fill = T()) { items_.resize(n, fill); }
  auto begin() { return items_.begin(); }
  auto end() { return items_.end(); }
  auto begin() const { return items_.begin(); }
  auto end() const { return items_.end(); }
  bool has(Id<Tag> id) const { return id.valid() && id.index() < items_.size(); }
  friend bool operator==(const IdVector&, const IdVector&) = default;

 private:
  std::vector<T> items_;
};

}  // namespace neaptide

template <class Tag>
struct std::hash<neaptide::Id<Tag>> {
  std::size_t operator()(neaptide::Id<Tag> id) const noexcept { return std::hash<std::int32_t>()(id.value); }
};
