# g++ 12 for arm64, as Debian packages it, against Debian 12's own arm64 packages in the folder SYSROOT.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++-12)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES SYSROOT)
set(CMAKE_SYSROOT "${SYSROOT}")
# GCC notes how arguments were passed before GCC 10.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
# Libraries and headers are those of the folder; programs, such as protoc, run here.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_LIBDIR} "${SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${SYSROOT}/usr/share/pkgconfig")
# What the build makes and runs: its tables, completions and manual pages.
set(CMAKE_CROSSCOMPILING_EMULATOR "qemu-aarch64-static;-L;${SYSROOT}")
