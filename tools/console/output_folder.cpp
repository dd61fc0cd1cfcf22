#include "tools/console/output_folder.hpp"

#include <filesystem>
#include <system_error>
#include <utility>

#include "models/base/input_error.hpp"
#include "models/base/output_file.hpp"

namespace lockstep {
namespace {

void check_folder(const std::string& folder, const std::error_code& error) {
  if (!error) return;
  throw InputError({.file = folder,
                    .pointer = {},
                    .found = error.message(),
                    .allowed = "a folder that can be made and written",
                    .nearest = {}});
}

}  // namespace

OutputFolder::OutputFolder(std::string folder)
    : folder_(std::move(folder)), inside_(folder_ + "/.partial") {
  std::error_code error;
  made_ = std::filesystem::create_directories(folder_, error);
  check_folder(folder_, error);
  std::filesystem::create_directory(inside_, error);
  check_folder(folder_, error);
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(inside_, ignored);
  if (made_) std::filesystem::remove(folder_, ignored);  // where nothing has moved there
}

void OutputFolder::write(const std::string& name, std::string_view bytes) {
  OutputFile file(inside_ + "/" + name);
  file.write(bytes);
  file.commit();
  names_.push_back(name);
}

void OutputFolder::commit() {
  for (const std::string& name : names_) {
    std::error_code error;
    std::filesystem::rename(inside_ + "/" + name, folder_ + "/" + name, error);
    check_folder(folder_, error);
  }
}

}  // namespace lockstep
