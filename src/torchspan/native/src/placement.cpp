// SPDX-License-Identifier: MIT
// Read rank, size and local rank from the launcher's variables, by the table that Python reads.
#include "placement.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "embedded.hpp"
#include "json.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

const Json::List& rows() {
  static const Json table = Json::read(launchers);
  return table.at("launchers").list();
}

bool is_set(const Json& name) { return std::getenv(name.text().c_str()) != nullptr; }

// The first of several names that is set, or null.
const Json* first_set(const Json& names) {
  for (const Json& name : names.list()) {
    if (is_set(name)) return &name;
  }
  return nullptr;
}

bool is_alone(const Json& row) {
  const Json* rule = row.find("alone");
  return rule != nullptr && is_set(rule->at("set")) && !is_set(rule->at("unset"));
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : between) + part;
  return text;
}

std::vector<std::string> missing(const Json& row) {
  std::vector<std::string> lacking;
  for (const char* key : {"rank", "size", "local_rank"}) {
    if (first_set(row.at(key)) != nullptr) continue;
    std::vector<std::string> names;
    for (const Json& name : row.at(key).list()) names.push_back(name.text());
    lacking.push_back(join(names, " or "));
  }
  return lacking;
}

int read_number(const Json& names) {
  const std::string& name = first_set(names)->text();
  const char* given = std::getenv(name.c_str());
  std::string_view text(given);
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n\r\f\v"), text.size()));
  text = text.substr(0, text.find_last_not_of(" \t\n\r\f\v") + 1);
  int value = -1;
  auto [rest, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || rest != text.data() + text.size() || text.starts_with('-')) {
    fail(TSPAN_ERROR_PLACEMENT, name, "='", given,
         "' is not a whole number from 0 up. Start the program with its launcher, or unset the "
         "variable.");
  }
  return value;
}

Placement read_row(const Json& row) {
  Placement place;
  place.launcher = row.at("name").text();
  place.rank = read_number(row.at("rank"));
  place.size = read_number(row.at("size"));
  place.local_rank = read_number(row.at("local_rank"));
  place.local_size.reset();
  if (first_set(row.at("local_size")) != nullptr) {
    place.local_size = read_number(row.at("local_size"));
  } else if (place.size == 1) {
    place.local_size = 1;
  }
  const int most = std::min(place.size, place.local_size.value_or(place.size));
  if (place.rank >= place.size || place.local_rank >= most ||
      place.local_size.value_or(0) > place.size) {
    fail(TSPAN_ERROR_PLACEMENT, "the variables of ", place.launcher,
         " contradict each other: rank ", place.rank, " of ", place.size, ", local rank ",
         place.local_rank, place.local_size ? say(" of ", *place.local_size) : "",
         "; a rank must be smaller than its size, and no host has more ranks than there are. Start "
         "the program with its launcher.");
  }
  return place;
}

[[noreturn]] void fail_half_set(const Json& row) {
  std::vector<std::string> there;
  for (const Json& name : row.at("marks").list()) {
    if (is_set(name)) there.push_back(say(name.text(), "=", std::getenv(name.text().c_str())));
  }
  const std::vector<std::string> lacking = missing(row);
  fail(TSPAN_ERROR_PLACEMENT, "the variables of ", row.at("name").text(),
       " are half set: ", join(there, ", "), ", but ", join(lacking, " and "),
       lacking.size() == 1 ? " is" : " are",
       " missing. Start the program with its launcher, or set or unset all of them.");
}

}  // namespace

Placement find_placement() {
  // The first of the rows that lack the fewest values.
  const Json* begun = nullptr;
  for (const Json& row : rows()) {
    if (first_set(row.at("marks")) == nullptr || is_alone(row)) continue;
    if (begun == nullptr || missing(row).size() < missing(*begun).size()) begun = &row;
  }
  if (begun == nullptr) return {};
  if (!missing(*begun).empty()) fail_half_set(*begun);
  return read_row(*begun);
}

}  // namespace torchspan

tspan_status tspan_placement_find(tspan_placement* placement) {
  return torchspan::guarded([&] {
    torchspan::require(placement, "placement");
    torchspan::Placement found = torchspan::find_placement();
    *placement = {found.rank, found.size, found.local_rank, found.local_size.value_or(-1), {}};
    std::strncpy(placement->launcher, found.launcher.c_str(), sizeof placement->launcher - 1);
  });
}
