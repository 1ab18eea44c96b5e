#include "neaptide/graph/text.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "neaptide/base/errors.hpp"
#include "neaptide/base/sha256.hpp"
#include "neaptide/base/text.hpp"
#include "neaptide/graph/verify.hpp"

namespace neaptide::graph {
namespace {

constexpr Bytes kMostZeros = Bytes{1} << 34;  // that digests may stand for in one text

struct KindWord {
  ValueKind kind;
  const char* word;
};
constexpr KindWord kKinds[] = {{ValueKind::kInput, "input"},
                               {ValueKind::kParameter, "parameter"},
                               {ValueKind::kState, "state"},
                               {ValueKind::kConstant, "constant"}};
struct RoleWord {
  Role role;
  const char* word;
  const char* colour;
};
constexpr RoleWord kRoles[] = {{Role::kForward, "forward", "#cfe8fc"},
                               {Role::kBackward, "backward", "#fde2c4"},
                               {Role::kUpdate, "update", "#d8f0d0"}};

const RoleWord& row_of(Role role) { return kRoles[static_cast<std::size_t>(role)]; }

bool plain_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '/' || c == '-';
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      out += {'\\', c};
    else if (byte < 0x20 || byte == 0x7f)
      out += fmt::format("\\x{:02x}", byte);
    else
      out += c;
  }
  return out + '"';
}

std::string value_name(const std::string& name) {
  const bool plain = !name.empty() && std::all_of(name.begin(), name.end(), plain_character);
  return "%" + (plain ? name : quoted(name));
}

// ---- writing ----

/// Shortest digits that read back as the same bits.
template <class T>
std::string number_text(T x) {
  if (!std::isnan(x)) return fmt::format("{}", x);
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return fmt::format("nan:{:x}", std::bit_cast<Bits>(x));
}

/// A double that cannot be read as an integer.
std::string attr_number_text(double x) {
  const std::string out = number_text(x);
  return out.find_first_of(".en") == std::string::npos ? out + ".0" : out;
}

template <class Range, class F>
std::string list_text(const Range& items, F text_of) {
  std::string out = "[";
  for (const auto& item : items) out += (out.size() > 1 ? ", " : "") + text_of(item);
  return out + "]";
}

std::string contents_text(const Tensor& t) {
  if (t.type.bytes() > kInlineBytes)
    return "sha256:" + sha256_hex(std::string_view(reinterpret_cast<const char*>(t.data->data()), t.data->size()));
  const auto integer = [](auto x) { return std::to_string(static_cast<std::int64_t>(x)); };
  switch (t.type.dtype) {
    case DType::kF32:
      return list_text(t.as<float>(), number_text<float>);
    case DType::kF64:
      return list_text(t.as<double>(), number_text<double>);
    case DType::kI64:
      return list_text(t.as<std::int64_t>(), integer);
    case DType::kI32:
      return list_text(t.as<std::int32_t>(), integer);
    case DType::kBool:
    case DType::kU8:
      return list_text(t.as<std::uint8_t>(), integer);
  }
  throw InternalError("an element type has no text form");
}

std::string tensor_text(const Tensor& t) { return to_string(t.type) + " = " + contents_text(t); }

/// Empty lists say what they would hold.
struct AttrText {
  std::string operator()(std::int64_t i) const { return std::to_string(i); }
  std::string operator()(double x) const { return attr_number_text(x); }
  std::string operator()(const std::string& s) const { return quoted(s); }
  std::string operator()(const std::vector<std::int64_t>& v) const {
    return v.empty() ? "ints []" : list_text(v, [](std::int64_t i) { return std::to_string(i); });
  }
  std::string operator()(const std::vector<double>& v) const {
    return v.empty() ? "floats []" : list_text(v, attr_number_text);
  }
  std::string operator()(const std::vector<std::string>& v) const {
    return v.empty() ? "strings []" : list_text(v, quoted);
  }
  std::string operator()(const Tensor& t) const { return "tensor " + tensor_text(t); }
};

class Writer {
 public:
  explicit Writer(const Graph& graph) : graph_(graph) {}

  std::string run() {
    out_ = "graph " + quoted(graph_.name) + "\n";
    for (const std::string& n : graph_.notes) out_ += "note " + quoted(n) + "\n";
    for (const Node& n : graph_.nodes) {
      declare_values_before(first_output(n));
      write_node(n);
    }
    declare_values_before(graph_.values.size());
    for (const ValueId v : graph_.outputs) out_ += "output " + value_name(graph_.values[v].name) + "\n";
    return std::move(out_);
  }

 private:
  /// The index of the earliest output; the node's inputs are declared before it in any case.
  std::size_t first_output(const Node& n) const {
    std::size_t first = 0;
    for (const ValueId v : n.inputs) {
      if (v.valid()) first = std::max(first, v.index() + 1);
    }
    std::size_t out = graph_.values.size();
    for (const ValueId v : n.outputs) {
      if (v.valid()) out = std::min(out, v.index());
    }
    return out == graph_.values.size() ? first : std::max(first, out);
  }

  void declare_values_before(std::size_t end) {
    for (; declared_ < end; ++declared_) {
      const Value& v = graph_.values[ValueId(declared_)];
      if (v.kind == ValueKind::kTemp) continue;
      out_ += fmt::format("{} {}: ", kKinds[static_cast<std::size_t>(v.kind)].word, named(ValueId(declared_)));
      const auto data = graph_.data.find(ValueId(declared_));
      out_ += (data == graph_.data.end() ? to_string(v.type) : tensor_text(data->second)) + "\n";
    }
  }

  /// "%name", with "#id" where counting the values so far does not give it, and the format where it is not plain.
  std::string named(ValueId id) {
    const Value& v = graph_.values[id];
    std::string out = value_name(v.name);
    if (id.index() != next_) out += fmt::format("#{}", id.index());
    next_ = id.index() + 1;
    if (!v.format.plain()) out += fmt::format(" <{} {}>", quoted(v.format.tag), v.format.bytes);
    return out;
  }

  void write_node(const Node& n) {
    std::string outputs, inputs, attrs;
    for (const ValueId v : n.outputs) outputs += (outputs.empty() ? "" : ", ") + (v.valid() ? named(v) : "_");
    for (const ValueId v : n.inputs)
      inputs += (inputs.empty() ? "" : ", ") + (v.valid() ? value_name(graph_.values[v].name) : "_");
    for (const auto& [key, value] : n.attrs)
      attrs += (attrs.empty() ? "" : ", ") + quoted_word(key) + " = " + std::visit(AttrText(), value);
    out_ += fmt::format("{}{}{}({}) {}{} {}\n", outputs, outputs.empty() ? "" : " = ", quoted_word(n.op), inputs,
                        attrs.empty() ? "" : "{" + attrs + "} ", quoted(n.name), row_of(n.role).word);
  }

  static std::string quoted_word(const std::string& word) { return value_name(word).substr(1); }

  const Graph& graph_;
  std::string out_;
  std::size_t declared_ = 0, next_ = 0;
};

// ---- reading ----

class Reader {
 public:
  Reader(std::string_view text, const OpSet& ops, std::string_view place) : text_(text), ops_(ops), place_(place) {}

  Graph run() {
    while (skip_to_line()) read_line();
    if (!seen_graph_) fail("the text does not begin with 'graph \"name\"'");
    for (const char there : filled_) {
      if (there == 0) fail("value ids are not complete");
    }
    const std::vector<std::string> wrong = verify(graph_, ops_);
    if (!wrong.empty()) throw UserError("{}: {}", place_, wrong.front());
    return std::move(graph_);
  }

 private:
  [[noreturn]] void fail(const std::string& sentence) const { throw UserError("{}:{}: {}", place_, line_, sentence); }

  // -- characters --
  bool at_end() const { return at_ >= text_.size(); }
  char peek() const { return at_end() ? '\0' : text_[at_]; }
  void skip_spaces() {
    while (peek() == ' ' || peek() == '\t' || peek() == '\r') ++at_;
  }
  /// To the next line that says something; false at the end.
  bool skip_to_line() {
    for (;;) {
      skip_spaces();
      if (peek() == '#') {
        while (!at_end() && peek() != '\n') ++at_;
      }
      if (at_end()) return false;
      if (peek() != '\n') return true;
      ++at_;
      ++line_;
    }
  }
  bool accept(char c) {
    skip_spaces();
    if (peek() != c || at_end()) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(fmt::format("'{}' is expected at '{}'", c, rest()));
  }
  std::string rest() const {
    const std::size_t end = std::min(text_.find('\n', at_), at_ + 20);
    return at_end() ? "the end" : std::string(text_.substr(at_, end - at_));
  }
  std::string word() {
    skip_spaces();
    if (peek() == '"') return string();
    const std::size_t begin = at_;
    while (!at_end() && plain_character(peek())) ++at_;
    if (at_ == begin) fail(fmt::format("a word is expected at '{}'", rest()));
    return std::string(text_.substr(begin, at_ - begin));
  }
  std::string string() {
    expect('"');
    std::string out;
    while (peek() != '"') {
      if (at_end() || peek() == '\n') fail("a string lacks its closing quote");
      char c = text_[at_++];
      if (c == '\\') c = escape();
      out += c;
    }
    ++at_;
    return out;
  }
  char escape() {
    if (peek() != 'x') return at_end() ? '\0' : text_[at_++];
    int byte = 0;
    const std::string_view digits = text_.substr(std::min(at_ + 1, text_.size()), 2);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), byte, 16);
    if (error != std::errc() || end != digits.data() + 2) fail("\\x needs two hexadecimal digits");
    at_ += 3;
    return static_cast<char>(byte);
  }
  /// The characters up to a separator: a number, a digest, a word.
  std::string_view token() {
    skip_spaces();
    const std::size_t begin = at_;
    while (!at_end() && std::string_view(" ,]}>\n\r\t)").find(peek()) == std::string_view::npos) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // -- numbers --
  template <class T>
  T integer(std::string_view text) {
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
      fail(fmt::format("'{}' is not an integer that fits", text));
    return out;
  }
  template <class T>
  T real(std::string_view text) {
    if (text.starts_with("nan:")) {
      std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t> bits = 0;
      const auto [end, error] = std::from_chars(text.data() + 4, text.data() + text.size(), bits, 16);
      const T out = std::bit_cast<T>(bits);
      if (error != std::errc() || end != text.data() + text.size() || !std::isnan(out))
        fail(fmt::format("'{}' is not a number", text));
      return out;
    }
    T out{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size() || text.empty())
      fail(fmt::format("'{}' is not a number", text));
    return out;
  }

  template <class F>
  auto list(F item) {
    std::vector<decltype(item())> out;
    expect('[');
    if (accept(']')) return out;
    do {
      out.push_back(item());
    } while (accept(','));
    expect(']');
    return out;
  }

  // -- types and tensors --
  TensorType type() {
    TensorType out;
    try {
      out.dtype = dtype_from(word());
    } catch (const UserError& e) {
      fail(e.what());
    }
    expect('[');
    if (!accept(']')) {
      const std::string dims(token());
      for (const std::string& d : split(dims, 'x')) out.shape.push_back(integer<std::int64_t>(d));
      expect(']');
    }
    try {
      out.bytes();
    } catch (const UserError& e) {
      fail(e.what());
    }
    return out;
  }

  template <class T>
  Tensor values_of(const TensorType& t) {
    const std::vector<T> values = list([&] {
      if constexpr (std::is_floating_point_v<T>)
        return real<T>(token());
      else
        return integer<T>(token());
    });
    if (static_cast<std::int64_t>(values.size()) != t.elements())
      fail(fmt::format("{} needs {} elements and has {}", to_string(t), t.elements(), values.size()));
    return tensor_of(t.dtype, t.shape, values);
  }

  Tensor tensor(const TensorType& t) {
    expect('=');
    skip_spaces();
    if (peek() != '[') {
      if (!token().starts_with("sha256:")) fail("contents are a list in brackets or a digest 'sha256:...'");
      if (t.bytes() > kMostZeros - zeros_) fail(fmt::format("digests stand for more than {} bytes", kMostZeros));
      zeros_ += t.bytes();
      return zeros(t);
    }
    switch (t.dtype) {
      case DType::kF32:
        return values_of<float>(t);
      case DType::kF64:
        return values_of<double>(t);
      case DType::kI64:
        return values_of<std::int64_t>(t);
      case DType::kI32:
        return values_of<std::int32_t>(t);
      case DType::kBool:
      case DType::kU8:
        return values_of<std::uint8_t>(t);
    }
    fail("contents of this type have no text form");
  }

  Attr attribute() {
    skip_spaces();
    if (peek() == '"') return string();
    if (peek() == '[') return list_attribute();
    const std::string_view text = token();
    if (text == "tensor") {
      const TensorType t = type();
      return tensor(t);
    }
    if (text == "ints" || text == "floats" || text == "strings") {
      expect('[');
      expect(']');
      if (text == "ints") return std::vector<std::int64_t>();
      return text == "floats" ? Attr(std::vector<double>()) : Attr(std::vector<std::string>());
    }
    if (is_real(text)) return real<double>(text);
    return integer<std::int64_t>(text);
  }
  static bool is_real(std::string_view text) { return text.find_first_of(".en") != std::string_view::npos; }

  Attr list_attribute() {
    const std::size_t begin = at_ + 1;
    const std::string_view line = text_.substr(begin, text_.find('\n', begin) - begin);
    if (line.substr(0, line.find_first_not_of(" \t") + 1).ends_with('"')) return list([&] { return string(); });
    if (is_real(line.substr(0, line.find(']')))) return list([&] { return real<double>(token()); });
    return list([&] { return integer<std::int64_t>(token()); });
  }

  // -- values --
  std::string name() {
    expect('%');
    return word();
  }
  ValueId read_value() {
    if (accept('_')) return {};
    const std::string n = name();
    const auto found = ids_.find(n);
    if (found == ids_.end()) fail(fmt::format("value '%{}' is not defined before", n));
    return found->second;
  }
  /// "%name", "#id", "<format>": a value without its type yet.
  ValueId new_value(ValueKind kind) {
    const std::string n = name();
    std::size_t id = next_;
    if (peek() == '#') {
      ++at_;
      const std::size_t begin = at_;
      while (std::isdigit(static_cast<unsigned char>(peek())) != 0) ++at_;
      id = integer<std::size_t>(text_.substr(begin, at_ - begin));
    }
    if (id >= text_.size()) fail(fmt::format("id {} is too large", id));
    next_ = id + 1;
    if (id >= filled_.size()) {
      filled_.resize(id + 1, 0);
      graph_.values.resize(id + 1);
    }
    if (filled_[id]++ != 0) fail(fmt::format("id {} is used twice", id));
    if (!ids_.emplace(n, ValueId(id)).second) fail(fmt::format("value '%{}' is defined twice", n));
    graph_.values[ValueId(id)] = {.name = n, .type = {}, .format = format(), .kind = kind, .producer = {}};
    return ValueId(id);
  }
  Format format() {
    if (!accept('<')) return {};
    Format out{string(), integer<Bytes>(token())};
    expect('>');
    return out;
  }

  // -- lines --
  void read_line() {
    const std::size_t begin = at_;
    if (peek() != '%' && peek() != '_') {
      const std::string first = word();
      if (!seen_graph_ && first != "graph") fail("the text does not begin with 'graph \"name\"'");
      if (read_declaration(first)) return end_line();
      at_ = begin;
    }
    read_node();
    end_line();
  }
  void end_line() {
    skip_spaces();
    if (!at_end() && peek() != '\n') fail(fmt::format("'{}' is not expected here", rest()));
  }
  bool read_declaration(const std::string& first) {
    skip_spaces();
    if (peek() == '(') return false;  // an operator of that name
    if (first == "graph") {
      if (seen_graph_) fail("'graph' is given twice");
      seen_graph_ = true;
      graph_.name = string();
      return true;
    }
    if (first == "note") return graph_.notes.push_back(string()), true;
    if (first == "output") return graph_.outputs.push_back(read_value()), true;
    for (const KindWord& k : kKinds) {
      if (first != k.word) continue;
      const ValueId v = new_value(k.kind);
      expect(':');
      const TensorType t = type();
      graph_.values[v].type = t;
      if (k.kind != ValueKind::kInput) graph_.data.emplace(v, tensor(t));
      return true;
    }
    fail(fmt::format("a line begins with '{}'; graph, note, input, parameter, state, constant, output or '%' is right",
                     first));
  }

  void read_node() {
    Node n;
    const NodeId id(graph_.nodes.size());
    if (peek() == '%' || peek() == '_') {
      do {
        skip_spaces();
        if (accept('_')) {
          n.outputs.emplace_back();
          continue;
        }
        n.outputs.push_back(new_value(ValueKind::kTemp));
        graph_.values[n.outputs.back()].producer = id;
      } while (accept(','));
      expect('=');
    }
    n.op = word();
    expect('(');
    if (!accept(')')) {
      do {
        n.inputs.push_back(read_value());
      } while (accept(','));
      expect(')');
    }
    if (accept('{')) read_attributes(n);
    n.name = string();
    n.role = role();
    infer_types(n);
    graph_.nodes.push_back(std::move(n));
  }
  void read_attributes(Node& n) {
    do {
      const std::string key = word();
      expect('=');
      if (!n.attrs.emplace(key, attribute()).second) fail(fmt::format("attribute '{}' is given twice", key));
    } while (accept(','));
    expect('}');
  }
  Role role() {
    const std::string text = word();
    for (const RoleWord& r : kRoles) {
      if (text == r.word) return r.role;
    }
    fail(fmt::format("'{}' is not a role; forward, backward or update is right", text));
  }
  void infer_types(const Node& n) {
    try {
      const OpDef& op = ops_.at(n.op);
      const auto legal = [](std::size_t count, OpDef::Range r) {
        return static_cast<int>(count) >= r.least && (r.most < 0 || static_cast<int>(count) <= r.most);
      };
      if (!legal(n.inputs.size(), op.n_inputs) || !legal(n.outputs.size(), op.n_outputs))
        fail(fmt::format("node '{}' ({}) has {} inputs and {} outputs", n.name, n.op, n.inputs.size(),
                         n.outputs.size()));
      const std::vector<TensorType> types = op.infer(NodeView(graph_, n));
      for (std::size_t k = 0; k < n.outputs.size(); ++k) {
        if (!n.outputs[k].valid()) continue;
        if (k >= types.size()) fail(fmt::format("node '{}' ({}) has no output {}", n.name, n.op, k));
        graph_.values[n.outputs[k]].type = types[k];
      }
    } catch (const UserError& e) {
      if (std::string_view(e.what()).starts_with(place_)) throw;
      fail(e.what());
    }
  }

  std::string_view text_;
  const OpSet& ops_;
  std::string_view place_;
  Graph graph_;
  std::unordered_map<std::string, ValueId> ids_;
  std::vector<char> filled_;  // by value id
  std::size_t at_ = 0, next_ = 0;
  int line_ = 1;
  bool seen_graph_ = false;
  Bytes zeros_ = 0;
};

}  // namespace

std::string to_text(const Graph& graph) { return Writer(graph).run(); }

Graph from_text(std::string_view text, const OpSet& ops, std::string_view place) {
  return Reader(text, ops, place).run();
}

std::string to_dot(const Graph& graph) {
  std::string out =
      "digraph " + quoted(graph.name) + " {\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n";
  for (std::size_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[ValueId(v)];
    if (value.kind == ValueKind::kTemp) continue;
    out += fmt::format("  v{} [shape=ellipse, fillcolor=\"#eeeeee\", label={}];\n", v,
                       quoted(value.name + "  " + to_string(value.type)));
  }
  for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[NodeId(n)];
    out += fmt::format("  n{} [fillcolor=\"{}\", label={}];\n", n, row_of(node.role).colour,
                       quoted(node.name + "  " + node.op));
    for (const ValueId v : node.inputs) {
      if (!v.valid()) continue;
      const Value& value = graph.values[v];
      out += value.producer.valid()
                 ? fmt::format("  n{} -> n{} [label={}];\n", value.producer.index(), n, quoted(to_string(value.type)))
                 : fmt::format("  v{} -> n{};\n", v.index(), n);
    }
  }
  return out + "}\n";
}

}  // namespace neaptide::graph
