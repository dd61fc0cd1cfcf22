# cpp-httplib as Debian compiles it, a shared library without a CMake package: httplib::httplib.
# pkg-config knows with which of its parts it was compiled, which its header has to be told.
find_package(PkgConfig)
pkg_check_modules(httplib_PC QUIET IMPORTED_TARGET cpp-httplib)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(httplib
  REQUIRED_VARS httplib_PC_LINK_LIBRARIES VERSION_VAR httplib_PC_VERSION)
if(httplib_FOUND AND NOT TARGET httplib::httplib)
  add_library(httplib::httplib ALIAS PkgConfig::httplib_PC)
endif()
