// How a kernel that may refuse its input ended.
#pragma once

namespace thinwire {

// The numbers are known to src/thinwire/kernels/native/base.py.
enum class Status : int {
  kOk = 0,
  kCoordinates = 1,  // an impossible length, parameter or count
  kPadding = 2,      // unused bits that are not zero, or whole unused bytes
  kRange = 3,        // an index lies outside the tensor
  kOrder = 4,        // indices that should increase do not
  kSpace = 5,        // the output is smaller than the result
};

}  // namespace thinwire
