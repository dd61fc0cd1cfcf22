/// Columns of a table in which no row has anything.
#pragma once

#include "tools/views/report/page.hpp"

namespace lockstep {

/// Takes them out. Of a table without rows all stay.
void drop_empty_columns(PageTable& table);

}  // namespace lockstep
