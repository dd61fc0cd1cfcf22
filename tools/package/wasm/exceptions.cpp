// What exceptions need of a system, which libc++abi for WASI is built without. WebAssembly unwinds
// by itself; these are the calls that compiled code and libc++abi's own part make on the way
// (Itanium C++ ABI, level 1, and LLVM's landing pads for WebAssembly).
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <unwind.h>

namespace {

struct LandingPad {
  std::uintptr_t index, tables, selector;
};

struct Globals {
  void* caught = nullptr;
  unsigned uncaught = 0;
};
Globals globals;

LandingPad& pad_of(_Unwind_Context* context) { return *reinterpret_cast<LandingPad*>(context); }

}  // namespace

extern "C" {

_Unwind_Reason_Code __gxx_personality_wasm0(int, _Unwind_Action, std::uint64_t, _Unwind_Exception*,
                                            _Unwind_Context*);

LandingPad __wasm_lpad_context;  // compiled code writes and reads it

_Unwind_Reason_Code _Unwind_CallPersonality(void* thrown) {
  auto* const exception = static_cast<_Unwind_Exception*>(thrown);
  __wasm_lpad_context.selector = 0;
  return __gxx_personality_wasm0(1, _UA_CLEANUP_PHASE, exception->exception_class, exception,
                                 reinterpret_cast<_Unwind_Context*>(&__wasm_lpad_context));
}
_Unwind_Reason_Code _Unwind_RaiseException(_Unwind_Exception* exception) {
  __builtin_wasm_throw(0, exception);
}
void _Unwind_DeleteException(_Unwind_Exception* exception) {
  if (exception->exception_cleanup == nullptr) return;
  exception->exception_cleanup(_URC_FOREIGN_EXCEPTION_CAUGHT, exception);
}
void _Unwind_SetGR(_Unwind_Context* context, int index, std::uintptr_t value) {
  if (index == 1) pad_of(context).selector = value;
}
// It is taken as an index from 1 after one was taken off.
std::uintptr_t _Unwind_GetIP(_Unwind_Context* context) { return pad_of(context).index + 2; }
void _Unwind_SetIP(_Unwind_Context*, std::uintptr_t) {}
std::uintptr_t _Unwind_GetLanguageSpecificData(_Unwind_Context* context) {
  return pad_of(context).tables;
}
std::uintptr_t _Unwind_GetRegionStart(_Unwind_Context*) { return 0; }

void* __cxa_get_globals() { return &globals; }
void* __cxa_get_globals_fast() { return &globals; }

// Nothing ends before the page does.
int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }

}  // extern "C"

namespace __cxxabiv1 {
void* __aligned_malloc_with_fallback(std::size_t size) {
  constexpr std::size_t kAlign = 16;
  return std::aligned_alloc(kAlign, (size + kAlign - 1) / kAlign * kAlign);
}
void __aligned_free_with_fallback(void* memory) { std::free(memory); }
void* __calloc_with_fallback(std::size_t count, std::size_t size) {
  return std::calloc(count, size);
}
void __free_with_fallback(void* memory) { std::free(memory); }
}  // namespace __cxxabiv1
