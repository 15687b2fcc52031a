// SPDX-License-Identifier: MIT
// Read extra/torchspan.json, whose form docs/architecture.md shows.
#include "description.hpp"

#include "json.hpp"
#include "status.hpp"

namespace torchspan {
namespace {

constexpr const char* record = "extra/torchspan.json";
constexpr std::int64_t newest_format = 1;

std::optional<std::int64_t> read_optional(const Json& value) {
  if (value.is_null()) return {};
  return value.whole();
}

Dimension read_dimension(const Json& value) {
  if (value.is_null()) return std::monostate();
  if (value.is_text()) return value.text();
  return value.whole();
}

Spec read_spec(const Json& value) {
  Spec spec;
  spec.name = value.at("name").text();
  spec.dtype = value.at("dtype").text();
  spec.shape.emplace();
  for (const Json& each : value.at("shape").list()) spec.shape->push_back(read_dimension(each));
  spec.batched = value.at("batched").truth();
  return spec;
}

Build read_build(const Json& value) {
  Build build;
  build.name = value.at("name").text();
  build.folder = value.at("folder").text();
  build.device = value.at("device").text();
  build.capability = value.at("capability").text();
  build.precision = value.at("precision").text();
  build.torch = value.at("torch").text();
  build.digest = value.at("digest").text();
  build.min_batch = value.at("min_batch").whole();
  build.max_batch = read_optional(value.at("max_batch"));
  // It names a folder of the cache: nothing else may stand in it.
  if (build.digest.size() != 64 ||
      build.digest.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw std::runtime_error("the digest of build " + build.name + " is none");
  }
  return build;
}

Description read_values(const Json& values) {
  Description read;
  read.inputs.emplace();
  for (const Json& each : values.at("inputs").list()) read.inputs->push_back(read_spec(each));
  read.outputs.emplace();
  for (const Json& each : values.at("outputs").list()) read.outputs->push_back(read_spec(each));
  for (const Json& each : values.at("builds").list()) read.builds.push_back(read_build(each));
  for (const auto& [name, range] : values.at("limits").members()) {
    if (range.list().size() != 2) throw std::runtime_error("a limit is not two numbers");
    read.limits[name] = {range.list()[0].whole(), read_optional(range.list()[1])};
  }
  // Where it was not measured, rows are taken to be independent, as Python does.
  const Json& independent = values.at("rows_independent");
  read.rows_independent = independent.is_null() || independent.truth();
  read.row_bytes = read_optional(values.at("row_bytes")).value_or(0);
  return read;
}

[[noreturn]] void fail_senseless(const Archive& archive, const std::exception& error) {
  fail(TSPAN_ERROR_MODEL_FILE, archive.path().string(),
       " holds a description that makes no sense (", error.what(),
       "); the file is damaged. Save the model again.");
}

Description describe_compiled(Archive& archive) {
  std::string text = archive.read(record);
  Description read;
  try {
    Json values = Json::read(text);
    std::int64_t format = values.at("format").whole();
    if (format > newest_format) {
      const Json* writer = values.find("torchspan");
      fail(TSPAN_ERROR_MODEL_FILE, archive.path().string(), " has format ", format,
           ", written by torchspan ",
           writer != nullptr && writer->is_text() ? writer->text() : "of an unknown version",
           "; this torchspan reads formats up to ", newest_format,
           ". Install a newer torchspan, or save the model again with this one.");
    }
    read = read_values(values);
  } catch (const Error&) {
    throw;
  } catch (const std::runtime_error& error) {
    fail_senseless(archive, error);
  }
  read.json = std::move(text);
  return read;
}

}  // namespace

std::string Spec::shape_text() const {
  std::string text = "(";
  for (const Dimension& each : *shape) {
    if (text.size() > 1) text += ", ";
    if (const auto* size = std::get_if<std::int64_t>(&each)) {
      text += std::to_string(*size);
    } else if (const auto* named = std::get_if<std::string>(&each)) {
      text += *named;
    } else {
      text += "any";
    }
  }
  return text + (shape->size() == 1 ? ",)" : ")");
}

Description describe(Archive& archive) {
  const std::string path = archive.path().string();
  if (archive.has(record)) return describe_compiled(archive);
  if (archive.has("archive_format")) {
    fail(TSPAN_ERROR_MODEL_FILE, path,
         " was written by plain PyTorch: it has no description that says what its inputs are, and "
         "no build that torchspan knows. Add both with 'torchspan compile ",
         archive.path().filename().string(), "'.");
  }
  if (archive.has("data.pkl")) {
    if (!archive.has_below("code")) {
      fail(TSPAN_ERROR_MODEL_FILE, path,
           " holds weights, no model. Give them to 'torchspan export module.py:Class --weights "
           "FILE', which makes a model file of both.");
    }
    Description script;
    script.kind = Description::Kind::torchscript;
    return script;
  }
  fail(TSPAN_ERROR_MODEL_FILE, path,
       " is an archive of another kind: it holds neither an exported program nor TorchScript. Make "
       "a model file with torchspan.save or 'torchspan export'.");
}

}  // namespace torchspan
