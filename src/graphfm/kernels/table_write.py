"""Writing rows of a table by node id."""

import torch
from torch import Tensor

from graphfm.kernels import backend

MOST_COLUMNS = 256  # of a program


def put_rows(
    table: Tensor,
    ids: Tensor,
    values: Tensor,
    *,
    add: bool = False,
    shares: Tensor | None = None,
) -> None:
    """`table[ids] = values`; or, if no id occurs twice: add them, or move each row by its share."""
    if values.shape != (ids.numel(), table.size(1)):  # a kernel would read past their end
        raise ValueError(
            f"values have shape {tuple(values.shape)}; expected {ids.numel()} rows of width "
            f"{table.size(1)}, the width of the table"
        )
    fits = ids.dtype == torch.int64 and ids.numel() > 0 and table.is_contiguous()
    fits = fits and (table.size(1) > 1 or shares is not None or add)  # a program for one number?
    if fits and backend.available(table.device):
        _launch(table, ids, values, add, shares)
    else:
        put_rows_plain(table, ids, values, add=add, shares=shares)


def put_rows_plain(
    table: Tensor,
    ids: Tensor,
    values: Tensor,
    *,
    add: bool = False,
    shares: Tensor | None = None,
) -> None:
    """`put_rows` in plain PyTorch, and NumPy on a CPU."""
    if shares is not None:
        past = table[ids].float()
        moved = torch.lerp(past, values.float(), shares.view(-1, 1).expand_as(values))
        table[ids] = moved.to(table.dtype)
    elif table.device.type == "cpu" and not add:  # NumPy copies rows, torch number by number
        values = values.detach().to(table.dtype).contiguous()
        table.view(torch.uint8).numpy()[ids.numpy()] = values.view(torch.uint8).numpy()
    else:
        table[ids] = (table[ids] + values if add else values).to(table.dtype)


def _launch(table: Tensor, ids: Tensor, values: Tensor, add: bool, shares: Tensor | None) -> None:
    from graphfm.kernels.triton_kernels import graph as kernels

    width = table.size(1)
    values = values if values.stride(1) == 1 else values.contiguous()
    columns = columns_of(width)
    kernels.put[(ids.numel(), -(-width // columns))](
        values,
        ids,
        table,
        values if shares is None else shares.contiguous(),
        width,
        values.stride(0),
        ADD=add,
        BLEND=shares is not None,
        BLOCK=columns,
    )


def columns_of(width: int) -> int:
    """Return how many columns of a row one program takes."""
    return min(1 << (width - 1).bit_length(), MOST_COLUMNS)


def given_or(tensor: Tensor | None, other: Tensor) -> Tensor:
    """Return a tensor for a kernel's argument, which must be one even if it is never read."""
    return other if tensor is None else tensor
