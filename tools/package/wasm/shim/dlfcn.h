// No object has a file here.
#pragma once
struct Dl_info {
  const char* dli_fname;
};
inline int dladdr(const void*, Dl_info*) { return 0; }
