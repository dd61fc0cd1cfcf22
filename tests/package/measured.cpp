// Links the part of the installed library that holds measured data: succeeds when it computes.
#include "sim/measured/statistics.hpp"

int main() { return lockstep::median({1, 2, 4}) == 2 ? 0 : 1; }
