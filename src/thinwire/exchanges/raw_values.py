"""Values as letters: the bytes of numbers on the way to be added up, without a header; their number is known to all."""

import torch
from torch import Tensor

from thinwire.errors import WireError, WireReason


def letter_of(values: Tensor) -> Tensor:
    """Values as bytes on the CPU; a view of them where they are there already."""
    return values.cpu().contiguous().view(torch.uint8)


def values_of(letter: Tensor, like: Tensor) -> Tensor:
    """The values in a letter: as many as ``like`` has, of its type and on its device.

    Raises:
        WireError: TRUNCATED or TRAILING: it has another length.
    """
    wanted = like.numel() * like.element_size()
    if letter.numel() != wanted:
        reason = WireReason.TRUNCATED if letter.numel() < wanted else WireReason.TRAILING
        raise WireError(reason, f"{letter.numel()} bytes instead of {wanted} for {like.numel()} values")
    return letter.view(like.dtype).to(like.device)
