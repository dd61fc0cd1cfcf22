// A library to preload: the n-th call of one kind fails, as it may on a bad day.
//
//   LOCKSTEP_FAIL=write LOCKSTEP_FAIL_AT=3 LD_PRELOAD=./fail_at.so lockstep run ...
//
// Kinds: open, read, write, fsync, rename, remove, truncate, lock, thread, memory. Without
// LOCKSTEP_FAIL_AT nothing fails, and the number of calls goes into the file that
// LOCKSTEP_FAIL_COUNT names. SQLite reads, locks, truncates and removes through the same calls, so
// that each step of a statement fails too.
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

std::atomic<long> calls{0};
long fail_at = 0;
char kind[16] = "";
bool ready = false, in_main = false;

template <class Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

/// Counts a call, and says whether it is the one.
bool fails(const char* of) {
  if (!ready || std::strcmp(kind, of) != 0) return false;
  return ++calls == fail_at;
}

/// What a terminal or a pipe shows always arrives.
bool is_file(int descriptor) { return descriptor > 2; }

__attribute__((constructor)) void begin() {
  if (const char* name = std::getenv("LOCKSTEP_FAIL")) std::strncpy(kind, name, sizeof kind - 1);
  if (const char* number = std::getenv("LOCKSTEP_FAIL_AT")) fail_at = std::atol(number);
  ready = true;
}

__attribute__((destructor)) void end() {
  ready = false;
  const char* const name = std::getenv("LOCKSTEP_FAIL_COUNT");
  if (name == nullptr) return;
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%ld", calls.load());
  using Open = int (*)(const char*, int, ...);
  using Write = ssize_t (*)(int, const void*, std::size_t);
  const int file = real<Open>("open")(name, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (file < 0) return;
  (void)real<Write>("write")(file, text, static_cast<std::size_t>(length));
  close(file);
}

}  // namespace

extern "C" {

#define FAIL_OPEN(name)                          \
  int name(const char* path, int flags, ...) {   \
    va_list more;                                \
    va_start(more, flags);                       \
    const int mode = va_arg(more, int);          \
    va_end(more);                                \
    if (fails("open")) {                         \
      errno = EMFILE;                            \
      return -1;                                 \
    }                                            \
    using Open = int (*)(const char*, int, ...); \
    static const Open call = real<Open>(#name);  \
    return call(path, flags, mode);              \
  }
FAIL_OPEN(open)
FAIL_OPEN(open64)

#define FAIL_FOPEN(name)                              \
  FILE* name(const char* path, const char* mode) {    \
    if (fails("open")) {                              \
      errno = EMFILE;                                 \
      return nullptr;                                 \
    }                                                 \
    using Open = FILE* (*)(const char*, const char*); \
    static const Open call = real<Open>(#name);       \
    return call(path, mode);                          \
  }
FAIL_FOPEN(fopen)
FAIL_FOPEN(fopen64)

ssize_t write(int descriptor, const void* bytes, std::size_t size) {
  if (is_file(descriptor) && fails("write")) {
    errno = ENOSPC;
    return -1;
  }
  using Write = ssize_t (*)(int, const void*, std::size_t);
  static const Write call = real<Write>("write");
  return call(descriptor, bytes, size);
}

ssize_t writev(int descriptor, const iovec* parts, int count) {
  if (is_file(descriptor) && fails("write")) {
    errno = ENOSPC;
    return -1;
  }
  using Write = ssize_t (*)(int, const iovec*, int);
  static const Write call = real<Write>("writev");
  return call(descriptor, parts, count);
}

std::size_t fwrite(const void* bytes, std::size_t size, std::size_t count, FILE* file) {
  if (is_file(fileno(file)) && fails("write")) {
    errno = ENOSPC;
    return 0;
  }
  using Write = std::size_t (*)(const void*, std::size_t, std::size_t, FILE*);
  static const Write call = real<Write>("fwrite");
  return call(bytes, size, count, file);
}

/// What was buffered goes to the disk only now.
int fclose(FILE* file) {
  const bool full = is_file(fileno(file)) && fails("write");
  using Close = int (*)(FILE*);
  static const Close call = real<Close>("fclose");
  const int closed = call(file);
  if (!full) return closed;
  errno = ENOSPC;
  return EOF;
}

#define FAIL_PWRITE(name)                                                       \
  ssize_t name(int descriptor, const void* bytes, std::size_t size, off_t at) { \
    if (fails("write")) {                                                       \
      errno = ENOSPC;                                                           \
      return -1;                                                                \
    }                                                                           \
    using Write = ssize_t (*)(int, const void*, std::size_t, off_t);            \
    static const Write call = real<Write>(#name);                               \
    return call(descriptor, bytes, size, at);                                   \
  }
FAIL_PWRITE(pwrite)
FAIL_PWRITE(pwrite64)

int fsync(int descriptor) {
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  using Sync = int (*)(int);
  static const Sync call = real<Sync>("fsync");
  return call(descriptor);
}
int fdatasync(int descriptor) {
  if (fails("fsync")) {
    errno = EIO;
    return -1;
  }
  using Sync = int (*)(int);
  static const Sync call = real<Sync>("fdatasync");
  return call(descriptor);
}

ssize_t read(int descriptor, void* bytes, std::size_t size) {
  if (is_file(descriptor) && fails("read")) {
    errno = EIO;
    return -1;
  }
  using Read = ssize_t (*)(int, void*, std::size_t);
  static const Read call = real<Read>("read");
  return call(descriptor, bytes, size);
}

#define FAIL_PREAD(name)                                                  \
  ssize_t name(int descriptor, void* bytes, std::size_t size, off_t at) { \
    if (fails("read")) {                                                  \
      errno = EIO;                                                        \
      return -1;                                                          \
    }                                                                     \
    using Read = ssize_t (*)(int, void*, std::size_t, off_t);             \
    static const Read call = real<Read>(#name);                           \
    return call(descriptor, bytes, size, at);                             \
  }
FAIL_PREAD(pread)
FAIL_PREAD(pread64)

#define FAIL_TRUNCATE(name)                             \
  int name(int descriptor, off_t size) {                \
    if (fails("truncate")) {                            \
      errno = EIO;                                      \
      return -1;                                        \
    }                                                   \
    using Truncate = int (*)(int, off_t);               \
    static const Truncate call = real<Truncate>(#name); \
    return call(descriptor, size);                      \
  }
FAIL_TRUNCATE(ftruncate)
FAIL_TRUNCATE(ftruncate64)

/// Locks of files alone, which a file system over a network may refuse.
#define FAIL_LOCK(name)                                                 \
  int name(int descriptor, int command, ...) {                          \
    va_list more;                                                       \
    va_start(more, command);                                            \
    void* const argument = va_arg(more, void*);                         \
    va_end(more);                                                       \
    if ((command == F_SETLK || command == F_SETLKW) && fails("lock")) { \
      errno = ENOLCK;                                                   \
      return -1;                                                        \
    }                                                                   \
    using Control = int (*)(int, int, ...);                             \
    static const Control call = real<Control>(#name);                   \
    return call(descriptor, command, argument);                         \
  }
FAIL_LOCK(fcntl)
FAIL_LOCK(fcntl64)

int unlink(const char* path) {
  if (fails("remove")) {
    errno = EACCES;
    return -1;
  }
  using Remove = int (*)(const char*);
  static const Remove call = real<Remove>("unlink");
  return call(path);
}
int remove(const char* path) {
  if (fails("remove")) {
    errno = EACCES;
    return -1;
  }
  using Remove = int (*)(const char*);
  static const Remove call = real<Remove>("remove");
  return call(path);
}

int rename(const char* from, const char* to) {
  if (fails("rename")) {
    errno = EACCES;
    return -1;
  }
  using Rename = int (*)(const char*, const char*);
  static const Rename call = real<Rename>("rename");
  return call(from, to);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*work)(void*),
                   void* argument) {
  if (fails("thread")) return EAGAIN;
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const Create call = real<Create>("pthread_create");
  return call(thread, attributes, work, argument);
}

/// What main() does first. What libraries allocate before it, and static objects behind it, is not
/// the program's to report.
int mallopt(int option, int value) {
  if (!in_main) {
    std::atexit([] { in_main = false; });
    in_main = true;
  }
  using Option = int (*)(int, int);
  static const Option call = real<Option>("mallopt");
  return call(option, value);
}

void* __libc_malloc(std::size_t size);  // NOLINT: glibc's own, which needs no look-up
void* malloc(std::size_t size) {
  if (in_main && fails("memory")) {
    errno = ENOMEM;
    return nullptr;
  }
  return __libc_malloc(size);
}

}  // extern "C"
