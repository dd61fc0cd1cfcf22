# What Debian asks of a package, in what CPack is about to pack: zsh's words where Debian's zsh reads
# them, manual pages compressed, and a copyright file with the licences of what is linked in.
cmake_policy(VERSION 3.25)
if(NOT CPACK_GENERATOR STREQUAL "DEB")
  return()
endif()
file(GLOB_RECURSE program "${CPACK_TEMPORARY_DIRECTORY}/lockstep")
list(FILTER program INCLUDE REGEX "/bin/lockstep$")
cmake_path(GET program PARENT_PATH share)
cmake_path(GET share PARENT_PATH share)
string(APPEND share "/share")

file(MAKE_DIRECTORY "${share}/zsh/vendor-completions")
file(RENAME "${share}/zsh/site-functions/_lockstep" "${share}/zsh/vendor-completions/_lockstep")
file(REMOVE_RECURSE "${share}/zsh/site-functions")

file(GLOB pages "${share}/man/man1/*.1")
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)

set(licences "${CPACK_TEMPORARY_DIRECTORY}-licences")
file(REMOVE_RECURSE "${licences}")
execute_process(COMMAND "${LOCKSTEP_SOURCE}/tools/package/licences" "${LOCKSTEP_BUILD}" "${licences}"
  COMMAND_ERROR_IS_FATAL ANY)
set(copyright "${share}/doc/lockstep/copyright")
file(READ "${LOCKSTEP_SOURCE}/LICENSE" licence)
file(WRITE "${copyright}" "Lockstep\n\n${licence}\n\nThe program holds parts of these packages of Debian.\n")
file(GLOB notices "${licences}/*")
foreach(notice IN LISTS notices)
  cmake_path(GET notice FILENAME package)
  file(SHA256 "${notice}" hash)
  if(hash IN_LIST written)  # packages of one source have one text, of Boost 2 MB
    continue()
  endif()
  list(APPEND written "${hash}")
  file(READ "${notice}" text)
  file(APPEND "${copyright}" "\n\n---- ${package} ----\n\n${text}")
endforeach()
file(REMOVE_RECURSE "${licences}")
