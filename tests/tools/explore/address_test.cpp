#include "tools/explore/address.hpp"

#include <doctest/doctest.h>

namespace lockstep {

TEST_CASE("explore: an address is decoded, and what is no sign in it stays as it is") {
  CHECK(decoded_path("/a%2Fb+c?d=%41") == "/a/b+c");
  CHECK(decoded_path("/%zz%4") == "/%zz%4");
  CHECK(decoded_path("/%2e%252e%00") == std::string("/.%2e\0", 6));
  using Pairs = std::vector<std::pair<std::string, std::string>>;
  CHECK(decoded_query("a.b=1%262&c=d+e=f&=x&&g&%67=") ==
        Pairs{{"a.b", "1&2"}, {"c", "d e=f"}, {"g", ""}, {"g", ""}});
  CHECK(decoded_query("").empty());
}

}  // namespace lockstep
