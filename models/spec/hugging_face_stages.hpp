/// Encoders of images that go from resolution to resolution. For models/spec/hugging_face_encoders.
#pragma once

#include "models/base/json_cursor.hpp"
#include "models/spec/hugging_face.hpp"

namespace lockstep::hugging_face {

/// Swin and Swin V2: windows of patches at each resolution, and a product over four neighbours, two
/// by two, between them. Sets all of the model but its name.
void read_swin(const JsonCursor& config, HuggingFaceModel& model);
void read_swin2(const JsonCursor& config, HuggingFaceModel& model);

}  // namespace lockstep::hugging_face
