/// A fabric as boxes and lines on a page: layers of a tree from the hosts upwards, tori as grids
/// one behind the other, everything else around circles. Readable at any size: boxes that play the
/// same part are drawn as one where there are many, and parallel cables always are.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/base/units.hpp"
#include "topologies/formats/drawn_fabric.hpp"

namespace lockstep {

struct PictureBox {
  double x = 0, y = 0, width = 0, height = 0;  ///< centre and size
  std::vector<std::string> title, detail;      ///< two lines: what fits best of each, longest first
  double label_x = 0, label_y = 0;  ///< of a dot: where its name is, from its centre; 0, 0: nowhere
  std::string tooltip;
  bool hosts = false;      ///< else switches
  bool round = false;      ///< a dot; its name is beside it
  bool cut_off = false;    ///< some of its boxes have no cable
  int slow = 0, down = 0;  ///< cables that stay within the box
};

struct PictureBundle {
  double x1 = 0, y1 = 0, x2 = 0, y2 = 0;
  double bend = 0;            ///< how far the middle is off the straight line
  double count_at = 1.0 / 3;  ///< of the way: counts of crossing bundles do not meet
  int cables = 0;             ///< that work; 0: all are down
  BytesPerSecond rate;        ///< that most have
  int slow = 0;               ///< slower than most between these layers
  int down = 0;
  std::string tooltip;
};

enum class TextAnchor : std::uint8_t { start, middle, end };
struct PictureText {
  double x = 0, y = 0;
  std::string text;
  TextAnchor anchor = TextAnchor::middle;
};

struct Picture {
  double width = 0, height = 0;
  std::string title, subtitle;
  std::vector<PictureBox> boxes;
  std::vector<PictureBundle> bundles;
  std::vector<PictureText> texts;     ///< names of layers and groups
  std::vector<BytesPerSecond> rates;  ///< of the lines, fastest first
  bool counts = false;                ///< few enough bundles to write their cables beside them
};

Picture picture_of(const DrawnFabric& fabric);

/// As SVG 1.1 with a legend, on a light ground, on a screen in dark colours on a dark one; UTF-8,
/// ends in a newline.
std::string write_svg(const Picture& picture);

}  // namespace lockstep
