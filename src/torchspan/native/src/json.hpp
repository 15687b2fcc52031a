// SPDX-License-Identifier: MIT
// A small strict reader of JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace torchspan {

// One value. Asking for another kind than it holds, or for a member that is not there, throws
// std::runtime_error that says so; callers turn it into an error that names the file.
class Json {
 public:
  using List = std::vector<Json>;
  using Members = std::vector<std::pair<std::string, Json>>;
  using Value = std::variant<std::nullptr_t, bool, double, std::string, List, Members>;

  explicit Json(Value value) : value_(std::move(value)) {}

  // Read one whole text; throws std::runtime_error with the position of what is wrong.
  static Json read(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  bool is_text() const { return std::holds_alternative<std::string>(value_); }
  bool truth() const { return get<bool>("true or false"); }
  double number() const { return get<double>("a number"); }
  std::int64_t whole() const;
  const std::string& text() const { return get<std::string>("a text"); }
  const List& list() const { return get<List>("a list"); }
  const Members& members() const { return get<Members>("an object"); }

  // A member by its name; null is not the same as missing.
  const Json* find(std::string_view name) const;
  const Json& at(std::string_view name) const;

 private:
  template <class Kind>
  const Kind& get(const char* wanted) const;

  Value value_;
};

// A text as JSON, with its quotation marks.
std::string quote(std::string_view text);

}  // namespace torchspan
