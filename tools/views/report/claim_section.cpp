#include "tools/views/report/claim_section.hpp"

#include "tools/views/report/page.hpp"
#include "tools/views/run/claim_text.hpp"

namespace lockstep {

void add_claim_section(Page& page, const ClaimCheck* claim) {
  if (claim == nullptr) return;
  const ClaimWords words = claim_words(*claim);
  page.section(words.title, words.source);
  if (!words.verdict.empty()) page.paragraph(strong(words.verdict));
  if (!words.explanation.empty()) page.paragraph(escaped(words.explanation));
  if (words.titled.empty()) return;
  Html list = Html::markup("<ul>\n");
  for (const ClaimWords::Titled& bound : words.titled) {
    list += Html::markup("<li>") + escaped(bound.sentence) + Html::markup(" <small>") +
            key_words(bound.field) + Html::markup("</small></li>\n");
  }
  page.markup(list + Html::markup("</ul>\n"));
}

}  // namespace lockstep
