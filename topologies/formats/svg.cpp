// Writes a Picture as SVG.
#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <iterator>
#include <optional>
#include <utility>

#include "models/base/number_text.hpp"
#include "topologies/formats/label_room.hpp"
#include "topologies/formats/picture.hpp"
#include "topologies/formats/xml_text.hpp"

namespace lockstep {
namespace {

// Colours that people with any colour vision tell apart (Okabe and Ito 2008,
// jfly.uni-koeln.de/color); the orange and the red of that set mark what is wrong.
constexpr std::array<std::string_view, 6> kRateColours{"#0072B2", "#009E73", "#CC79A7",
                                                       "#56B4E9", "#8C6D31", "#777777"};
constexpr std::string_view kSlow = "#E69F00";
constexpr std::string_view kDown = "#D32F2F";
constexpr double kLetter = 6.4;     // width of a letter of 11 px, about
constexpr double kLetterOf = 0.64;  // of a letter, of the font's size; bold ones are wider

/// As much of the text as fits, cut where a letter begins.
std::string cut(std::string_view text, double width) {
  const auto most = static_cast<std::size_t>(std::max(0.0, width / kLetter));
  std::size_t letters = 0, end = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) == 0x80U) continue;
    if (letters++ < most) end = i;
  }
  if (letters <= most) return std::string(text);
  return most < 3 ? std::string() : std::string(text.substr(0, end)) + "\u2026";
}

/// Letters, not bytes.
double letters_of(std::string_view text) {
  return static_cast<double>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

/// What a text covers whose base line begins, ends or has its middle at (x, y).
PageArea text_area(std::string_view text, double x, double y, double size, TextAnchor anchor) {
  const double width = kLetterOf * size * letters_of(text);
  const double left = anchor == TextAnchor::start ? x
                      : anchor == TextAnchor::end ? x - width
                                                  : x - width / 2;
  return {.left = left, .top = y - 0.8 * size, .right = left + width, .bottom = y + 0.2 * size};
}

/// The first of the texts that fits, else what fits of the last.
std::string fitting(const std::vector<std::string>& texts, double width) {
  for (const std::string& text : texts) {
    if (cut(text, width) == text) return text;
  }
  return texts.empty() ? std::string() : cut(texts.back(), width);
}

/// Dark where the reader's system is, on a screen; readers of SVG without CSS show it light.
constexpr std::string_view kDark =
    "<style>@media screen and (prefers-color-scheme: dark) {"
    ".lockstep-fabric [fill=\"#ffffff\"] { fill: #191d25 }"
    ".lockstep-fabric [stroke=\"#ffffff\"] { stroke: #191d25 }"
    ".lockstep-fabric text, .lockstep-fabric [fill=\"#111111\"] { fill: #e8ebf0 }"
    ".lockstep-fabric [fill=\"#333333\"], .lockstep-fabric [fill=\"#444444\"],"
    ".lockstep-fabric [fill=\"#555555\"] { fill: #a3acba }"
    ".lockstep-fabric [fill=\"#eef3e6\"] { fill: #28321f }"
    ".lockstep-fabric [fill=\"#e8eef7\"] { fill: #222c3f }"
    ".lockstep-fabric [stroke=\"#555555\"], .lockstep-fabric [stroke=\"#333333\"],"
    ".lockstep-fabric [stroke=\"#777777\"] { stroke: #a3abb8 }"
    ".lockstep-fabric [stroke=\"#0072B2\"] { stroke: #4aa3df }"
    ".lockstep-fabric [stroke=\"#009E73\"] { stroke: #36c498 }"
    ".lockstep-fabric [stroke=\"#8C6D31\"] { stroke: #c2a163 }"
    "}</style>\n";

class SvgWriter {
 public:
  explicit SvgWriter(const Picture& picture) : picture_(picture) {}

  std::string text() {
    // What a picture is called may need more room than its boxes.
    width_ = std::max(kNarrowest, picture_.width);
    shift_ = (width_ - picture_.width) / 2;
    const int legend = 24 * (2 + static_cast<int>(picture_.rates.size() / kRateColumns));
    write(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" class=\"lockstep-fabric\" "
        "font-family=\"DejaVu Sans, Verdana, sans-serif\" font-size=\"11\">\n{2}"
        "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n",
        width_, picture_.height + legend, kDark);
    add_title();
    write("<text x=\"40\" y=\"62\" font-size=\"13\" fill=\"#444444\">{}</text>\n",
          xml_escaped(picture_.subtitle));
    write("<g transform=\"translate({:.1f} 0)\">\n", shift_);
    place_labels();
    for (std::size_t b = 0; b < picture_.bundles.size(); ++b) add(picture_.bundles[b], counts_[b]);
    for (std::size_t b = 0; b < picture_.boxes.size(); ++b) {
      const PictureBox& box = picture_.boxes[b];
      box.round ? add_dot(box, names_[b]) : add_box(box);
    }
    for (const PictureText& text : picture_.texts) {
      write(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"#444444\" "
          "text-anchor=\"{}\">{}</text>\n",
          text.x, text.y, kTextSize, name_of(text.anchor), xml_escaped(text.text));
    }
    write("</g>\n");
    add_legend();
    return std::move(out_) + "</svg>\n";
  }

 private:
  static constexpr double kNarrowest = 820;

  static std::string_view name_of(TextAnchor anchor) {
    return anchor == TextAnchor::start ? "start" : anchor == TextAnchor::end ? "end" : "middle";
  }

  static constexpr double kTextSize = 12, kCountSize = 10, kNameSize = 9;

  /// Which dots have their name beside them, and which bundles their count and where: where there
  /// is no room for one, its tooltip says it.
  void place_labels() {
    LabelRoom room;
    for (const PictureBox& box : picture_.boxes) {
      room.reserve({.left = box.x - box.width / 2,
                    .top = box.y - box.height / 2,
                    .right = box.x + box.width / 2,
                    .bottom = box.y + box.height / 2});
    }
    for (const PictureText& text : picture_.texts) {
      room.reserve(text_area(text.text, text.x, text.y, kTextSize, text.anchor));
    }
    names_.assign(picture_.boxes.size(), false);
    for (std::size_t b = 0; b < picture_.boxes.size(); ++b) {
      const PictureBox& box = picture_.boxes[b];
      if (!box.round || (box.label_x == 0 && box.label_y == 0)) continue;
      names_[b] = room.take(text_area(short_name(box), box.x + box.label_x, box.y + box.label_y + 3,
                                      kNameSize, name_anchor(box)));
    }
    counts_.assign(picture_.bundles.size(), std::nullopt);
    if (!picture_.counts) return;
    for (std::size_t b = 0; b < picture_.bundles.size(); ++b) {
      if (picture_.bundles[b].cables > 1) counts_[b] = room_for_count(picture_.bundles[b], room);
    }
  }

  /// How much of the way up a bundle its count has room.
  static std::optional<double> room_for_count(const PictureBundle& bundle, LabelRoom& room) {
    for (const double at : {bundle.count_at, 0.5, 0.2, 0.42, 0.27, 0.6, 0.7, 0.8}) {
      const auto [x, y] = on_way(bundle, at);
      if (room.take(text_area(count_text(bundle), x, y + 4, kCountSize, TextAnchor::middle))) {
        return at;
      }
    }
    return std::nullopt;
  }

  static std::pair<double, double> on_way(const PictureBundle& bundle, double part) {
    return {bundle.x1 + (bundle.x2 - bundle.x1) * part, bundle.y1 + (bundle.y2 - bundle.y1) * part};
  }
  static std::string count_text(const PictureBundle& bundle) {
    return fmt::format("\u00d7{}", bundle.cables);
  }

  /// As large as fits, and cut where even small letters do not.
  void add_title() {
    constexpr double kLargest = 20, kSmallest = 13, kBoldLetter = 0.69;  // of the font's size
    const double room = width_ - 80;
    const double letters = static_cast<double>(std::max<std::size_t>(1, picture_.title.size()));
    const double size = std::clamp(room / (kBoldLetter * letters), kSmallest, kLargest);
    write("<text x=\"40\" y=\"38\" font-size=\"{:.1f}\" font-weight=\"bold\">{}</text>\n", size,
          xml_escaped(cut(picture_.title, room * kLetter / (kBoldLetter * size))));
  }

  static constexpr int kRateColumns = 6;

  template <class... Values>
  void write(fmt::format_string<Values...> format, Values&&... values) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Values>(values)...);
  }

  [[nodiscard]] std::string_view colour(BytesPerSecond rate) const {
    const auto at = std::ranges::find(picture_.rates, rate);
    const auto i = static_cast<std::size_t>(at - picture_.rates.begin());
    return kRateColours[std::min(i, kRateColours.size() - 1)];
  }

  void line(const PictureBundle& b, std::string_view stroke, double width, std::string_view dash) {
    std::string path = fmt::format("M{:.1f} {:.1f}L{:.1f} {:.1f}", b.x1, b.y1, b.x2, b.y2);
    if (b.bend != 0) {
      const double dx = b.x2 - b.x1, dy = b.y2 - b.y1, length = std::max(1.0, std::hypot(dx, dy));
      path = fmt::format("M{:.1f} {:.1f}Q{:.1f} {:.1f} {:.1f} {:.1f}", b.x1, b.y1,
                         (b.x1 + b.x2) / 2 + 2 * b.bend * dy / length,
                         (b.y1 + b.y2) / 2 - 2 * b.bend * dx / length, b.x2, b.y2);
    }
    write("<path d=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{:.1f}\"{} opacity=\"{}\"/>\n",
          path, stroke, width, dash, picture_.bundles.size() > 300 ? "0.7" : "1");
  }

  void add(const PictureBundle& bundle, std::optional<double> count_at) {
    write("<g><title>{}</title>\n", xml_escaped(bundle.tooltip));
    const double width = std::clamp(0.8 + 0.6 * std::log2(std::max(1, bundle.cables)), 0.8, 5.0);
    if (bundle.cables > 0) line(bundle, colour(bundle.rate), width, "");
    if (bundle.slow > 0) line(bundle, kSlow, width + 0.8, " stroke-dasharray=\"9 5\"");
    if (bundle.down > 0) line(bundle, kDown, 2, " stroke-dasharray=\"3 4\"");
    if (count_at) {
      const auto [x, y] = on_way(bundle, *count_at);
      write(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"#333333\" "
          "stroke=\"#ffffff\" stroke-width=\"3\" paint-order=\"stroke\" "
          "text-anchor=\"middle\">{}</text>\n",
          x, y + 4, kCountSize, count_text(bundle));
    }
    write("</g>\n");
  }

  void add_box(const PictureBox& box) {
    write("<g><title>{}</title>\n", xml_escaped(box.tooltip));
    write(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"4\" "
        "fill=\"{}\" stroke=\"{}\" stroke-width=\"{}\"/>\n",
        box.x - box.width / 2, box.y - box.height / 2, box.width, box.height,
        box.hosts ? "#eef3e6" : "#e8eef7", box.cut_off ? kDown : "#555555",
        box.cut_off ? "2.5" : "1");
    const std::string detail = fitting(box.detail, box.width - 6);
    const bool two = !detail.empty();
    centred(fitting(box.title, box.width - 6), box.x, box.y + (two ? -3 : 4), "#111111");
    if (two) centred(detail, box.x, box.y + 13, "#555555");
    write("</g>\n");
  }

  void centred(const std::string& text, double x, double y, std::string_view fill) {
    if (text.empty()) return;
    write("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\" fill=\"{}\">{}</text>\n", x, y,
          fill, xml_escaped(text));
  }

  /// "0,1" of "switch 0,1": what is around it and the tooltip tell the rest.
  static std::string short_name(const PictureBox& box) {
    return box.title.empty() ? std::string() : cut(box.title.back(), 110);
  }

  static TextAnchor name_anchor(const PictureBox& box) {
    constexpr double kAside = 5;
    return box.label_x > kAside    ? TextAnchor::start
           : box.label_x < -kAside ? TextAnchor::end
                                   : TextAnchor::middle;
  }

  void add_dot(const PictureBox& box, bool named) {
    const std::string_view stroke = box.cut_off || box.down > 0 ? kDown
                                    : box.slow > 0              ? kSlow
                                                                : "#333333";
    write(
        "<g><title>{}</title><circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill=\"#e8eef7\" "
        "stroke=\"{}\" stroke-width=\"{}\"/>",
        xml_escaped(box.tooltip), box.x, box.y, box.width / 2, stroke,
        stroke == "#333333" ? "1" : "2.5");
    if (named) {
      write(
          "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\" fill=\"#333333\" stroke=\"#ffffff\" "
          "stroke-width=\"2.5\" paint-order=\"stroke\" text-anchor=\"{}\">{}</text>",
          box.x + box.label_x, box.y + box.label_y + 3, kNameSize, name_of(name_anchor(box)),
          xml_escaped(short_name(box)));
    }
    write("</g>\n");
  }

  void add_legend() {
    double x = 40, y = picture_.height - 24;
    const auto entry = [&](std::string_view stroke, std::string_view dash,
                           const std::string& text) {
      const double width = 54 + 7.0 * static_cast<double>(text.size());
      if (x + width > width_ - 20) {
        x = 40;
        y += 22;
      }
      write(
          "<path d=\"M{:.1f} {:.1f}h36\" stroke=\"{}\" stroke-width=\"3\"{}/>"
          "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"12\">{}</text>\n",
          x, y, stroke, dash, x + 44, y + 4, xml_escaped(text));
      x += width + 16;
    };
    for (std::size_t i = 0; i < picture_.rates.size() && i < kRateColours.size(); ++i) {
      const bool last = i + 1 == kRateColours.size() && picture_.rates.size() > kRateColours.size();
      entry(kRateColours[i], "",
            fmt::format("{} Gb/s{}",
                        plain_number(double{picture_.rates[i] / gigabits_per_second(1)}, 4),
                        last ? " and less" : ""));
    }
    const auto any = [this](auto wrong) {
      return std::any_of(picture_.bundles.begin(), picture_.bundles.end(), wrong) ||
             std::any_of(picture_.boxes.begin(), picture_.boxes.end(), wrong);
    };
    if (any([](const auto& at) { return at.slow > 0; })) {
      entry(kSlow, " stroke-dasharray=\"9 5\"", "slower than most between these layers");
    }
    const bool cut_off =
        std::ranges::any_of(picture_.boxes, [](const PictureBox& box) { return box.cut_off; });
    if (cut_off || any([](const auto& at) { return at.down > 0; })) {
      entry(kDown, " stroke-dasharray=\"3 4\"", "down, or without a cable");
    }
    const bool dots =
        std::ranges::any_of(picture_.boxes, [](const PictureBox& box) { return box.round; });
    if (dots) {
      write(
          "<circle cx=\"58\" cy=\"{0:.1f}\" r=\"6\" fill=\"#e8eef7\" stroke=\"#333333\"/>"
          "<text x=\"84\" y=\"{1:.1f}\" font-size=\"12\">switches with their hosts; the cables "
          "of hosts are not drawn</text>\n",
          y + 26, y + 30);
    }
  }

  const Picture& picture_;
  double width_ = 0;                           ///< of the page
  double shift_ = 0;                           ///< what is left free on each side of the picture
  std::vector<bool> names_;                    ///< by box: written beside it
  std::vector<std::optional<double>> counts_;  ///< by bundle: how far up it is written
  std::string out_;
};

}  // namespace

std::string write_svg(const Picture& picture) { return SvgWriter(picture).text(); }

}  // namespace lockstep
