"""Mutants of what stands between tensors and the compiled kernels."""

from tests.mutants.mutant import Mutant

_REASON = "tests/wire/test_reasons.py::test_wrong_bytes_are_refused_for_their_own_reason"
_NATIVE = "tests/native/test_"

OF_KERNELS = (
    Mutant(
        name="compiled-memory-before-the-count",
        safeguard="Compiled too: a count is compared with the bytes that are there before memory is taken for it",
        file="kernels/native/coordinates.py",
        old="        if not 0 < count <= 8 * data.numel():\n",
        new="        if False:\n",
        tests=(f"{_REASON}[COORDINATES: 2**39 Rice codes without a bit-scalar]",),
        also=("RuntimeError", "MemoryError"),
    ),
    Mutant(
        name="compiled-bitmap-of-any-size",
        safeguard="Compiled too: a bitmap of another size is refused",
        file="kernels/native/coordinates.py",
        old="        if data.numel() != -(-units // 8):\n",
        new="        if False:\n",
        tests=(f"{_NATIVE}sections.py::test_wrong_bitmap_bytes_are_refused_for_the_right_reason[missing-scalar]",),
    ),
    Mutant(
        name="compiled-bits-behind-codes",
        safeguard="Compiled too: unused bits behind the last code are zero",
        file="kernels/native/values.py",
        old="        if spare and int(data[-1]) >> (8 - spare):\n",
        new="        if False:\n",
        tests=(f"{_NATIVE}values.py::test_unused_bits_behind_codes_must_be_zero[2 bits-1-scalar]",),
    ),
    Mutant(
        name="compiled-any-value",
        safeguard="Compiled too: a value that is not finite is refused",
        file="kernels/native/values.py",
        old="        if not _native.unpack_values(self.machine, data, int(format), scale, out):\n",
        new="        if _native.unpack_values(self.machine, data, int(format), scale, out) is None:\n",
        tests=(f"{_REASON}[VALUE: not a number-scalar]",),
    ),
    Mutant(
        name="compiled-any-section",
        safeguard="What a compiled reader refuses becomes an error with its reason",
        file="kernels/native/base.py",
        old="    if status != OK:\n",
        new="    if False:\n",
        tests=(
            f"{_REASON}[RANGE: a gap just beyond the end-scalar]",
            f"{_REASON}[PADDING: a bit behind the last unit-scalar]",
        ),
    ),
    Mutant(
        name="compiled-any-list",
        safeguard="Compiled too: messages that do not increase, or lie outside, are refused",
        file="kernels/native/movement.py",
        old="    if status != OK:\n",
        new="    if False:\n",
        tests=(f"{_NATIVE}movement_owners.py::test_an_owner_that_is_not_one_is_refused[4-scalar]",),
    ),
    Mutant(
        name="take-any-layout",
        safeguard="A tensor that does not lie in one piece goes to the reference",
        file="kernels/native/base.py",
        old="        and tensor.is_contiguous()\n",
        new="",
        tests=(f"{_NATIVE}movement.py::test_strided_tensors_are_gathered_and_taken_from[scalar]",),
    ),
)
