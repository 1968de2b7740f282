// Working memory that a thread keeps from call to call: fresh pages of a large block cost more than the work in them.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>

namespace thinwire {

// One growing block for each purpose (`Tag`) and thread. What it held is lost when it grows. Purposes are types so that
// kernels cannot take each other's memory by mistake.
template <class Tag, class Element>
Element* scratch(std::size_t count) {
  struct Block {
    void* memory = nullptr;
    std::size_t bytes = 0;
    ~Block() { std::free(memory); }
  };
  thread_local Block block;
  const std::size_t bytes = count * sizeof(Element);
  if (bytes > block.bytes) {
    std::free(block.memory);
    block.bytes = 0;
    // A quarter more than asked for: sizes that follow the data vary a little from step to step.
    const std::size_t wanted = (bytes + bytes / 4 + 63) / 64 * 64;
    block.memory = std::aligned_alloc(64, wanted);
    if (block.memory == nullptr) throw std::bad_alloc();
    block.bytes = wanted;
  }
  return static_cast<Element*>(block.memory);
}

}  // namespace thinwire
