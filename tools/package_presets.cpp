// Each program that links the installed library through its CMake package compiles this file, and
// so knows where the package's presets lie (sim/scenario/preset_files.cpp). Weak, since a program
// and a shared object in it may both have it.
extern "C" __attribute__((weak)) const char* lockstep_package_presets();
extern "C" const char* lockstep_package_presets() { return LOCKSTEP_PACKAGE_PRESETS; }
