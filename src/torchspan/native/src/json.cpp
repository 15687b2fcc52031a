// SPDX-License-Identifier: MIT
// A small strict reader of JSON: what RFC 8259 allows and nothing else.
#include "json.hpp"

#include <cctype>
#include <charconv>
#include <cmath>
#include <stdexcept>

namespace torchspan {
namespace {

constexpr int deepest = 64;

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  Json read_whole() {
    Json value = read_value(0);
    skip();
    if (at_ != text_.size()) stop("text after the end");
    return value;
  }

 private:
  [[noreturn]] void stop(const std::string& what) const {
    throw std::runtime_error("no JSON at character " + std::to_string(at_) + ": " + what);
  }

  void skip() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) ++at_;
  }

  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  void expect(std::string_view word) {
    if (!take(word)) stop("expected " + std::string(word));
  }

  Json read_value(int depth) {
    if (depth > deepest) stop("nested too deeply");
    skip();
    if (take("{")) return read_members(depth);
    if (take("[")) return read_list(depth);
    if (take("\"")) return Json(read_text());
    if (take("null")) return Json(nullptr);
    if (take("true")) return Json(true);
    if (take("false")) return Json(false);
    return read_number();
  }

  Json read_members(int depth) {
    Json::Members members;
    for (skip(); !take("}"); skip()) {
      if (!members.empty()) expect(",");
      skip();
      expect("\"");
      std::string name = read_text();
      skip();
      expect(":");
      members.emplace_back(std::move(name), read_value(depth + 1));
    }
    return Json(std::move(members));
  }

  Json read_list(int depth) {
    Json::List list;
    for (skip(); !take("]"); skip()) {
      if (!list.empty()) expect(",");
      list.push_back(read_value(depth + 1));
    }
    return Json(std::move(list));
  }

  Json read_number() {
    // from_chars takes more than JSON does: infinities, hexadecimal marks, a bare point.
    std::size_t end = text_.find_first_not_of("+-.0123456789eE", at_);
    std::string_view part = text_.substr(at_, end == text_.npos ? end : end - at_);
    std::size_t digits = part.starts_with('-') ? 1 : 0;
    bool zero = part.substr(digits).starts_with('0') && digits + 1 < part.size() &&
                std::isdigit(static_cast<unsigned char>(part[digits + 1]));
    double value = 0;
    auto [rest, code] = std::from_chars(part.data(), part.data() + part.size(), value);
    bool begun = digits < part.size() && std::isdigit(static_cast<unsigned char>(part[digits]));
    if (code != std::errc() || rest != part.data() + part.size() || !begun || zero ||
        part.ends_with('.')) {
      stop("expected a value");
    }
    at_ += part.size();
    return Json(value);
  }

  std::string read_text() {
    std::string text;
    while (!take("\"")) {
      if (at_ >= text_.size()) stop("a text without an end");
      char character = text_[at_++];
      if (static_cast<unsigned char>(character) < 0x20) stop("a control character in a text");
      if (character == '\\') {
        append_escaped(text);
      } else {
        text += character;
      }
    }
    return text;
  }

  void append_escaped(std::string& text) {
    static constexpr std::string_view letters = "\"\\/bfnrt";
    static constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
    if (at_ >= text_.size()) stop("a text without an end");
    char letter = text_[at_++];
    if (letter == 'u') return append_point(text);
    std::size_t found = letters.find(letter);
    if (found == letters.npos) stop("an unknown escape");
    text += meant[found];
  }

  unsigned read_unit() {
    unsigned unit = 0;
    std::string_view digits = text_.substr(at_, 4);
    auto [rest, code] = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (code != std::errc() || rest != digits.data() + 4) stop("expected four hexadecimal digits");
    at_ += 4;
    return unit;
  }

  void append_point(std::string& text) {
    unsigned point = read_unit();
    if (point >= 0xD800 && point < 0xDC00) {
      expect("\\u");
      unsigned low = read_unit();
      if (low < 0xDC00 || low > 0xDFFF) stop("half of a surrogate pair");
      point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
    } else if (point >= 0xDC00 && point < 0xE000) {
      stop("half of a surrogate pair");
    }
    auto add = [&text](unsigned byte) { text += static_cast<char>(byte); };
    if (point < 0x80) return add(point);
    if (point < 0x800) {
      add(0xC0 | point >> 6);
    } else if (point < 0x10000) {
      add(0xE0 | point >> 12);
      add(0x80 | (point >> 6 & 0x3F));
    } else {
      add(0xF0 | point >> 18);
      add(0x80 | (point >> 12 & 0x3F));
      add(0x80 | (point >> 6 & 0x3F));
    }
    add(0x80 | (point & 0x3F));
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace

Json Json::read(std::string_view text) { return Reader(text).read_whole(); }

template <class Kind>
const Kind& Json::get(const char* wanted) const {
  const Kind* found = std::get_if<Kind>(&value_);
  if (found == nullptr) throw std::runtime_error(std::string("a value is not ") + wanted);
  return *found;
}

template const bool& Json::get<bool>(const char*) const;
template const double& Json::get<double>(const char*) const;
template const std::string& Json::get<std::string>(const char*) const;
template const Json::List& Json::get<Json::List>(const char*) const;
template const Json::Members& Json::get<Json::Members>(const char*) const;

std::int64_t Json::whole() const {
  double value = number();
  // Beyond this a double no longer holds every whole number.
  if (value != std::trunc(value) || std::abs(value) > 9007199254740992.0) {
    throw std::runtime_error("a number is not a whole one");
  }
  return static_cast<std::int64_t>(value);
}

const Json* Json::find(std::string_view name) const {
  for (const auto& [key, value] : members()) {
    if (key == name) return &value;
  }
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  if (found == nullptr) throw std::runtime_error("it has no '" + std::string(name) + "'");
  return *found;
}

std::string quote(std::string_view text) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (char character : text) {
    if (character == '"' || character == '\\') {
      quoted += '\\';
      quoted += character;
    } else if (static_cast<unsigned char>(character) < 0x20) {
      quoted += std::string("\\u00") + digits[character >> 4] + digits[character & 15];
    } else {
      quoted += character;
    }
  }
  return quoted + "\"";
}

}  // namespace torchspan
