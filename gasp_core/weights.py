"""Files of safetensors: which tensors they hold and where, without loading them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LENGTH_BYTES = 8
_LFS_POINTER = b"version https://git-lfs"


class BrokenFile(ValueError):  # noqa: N818 - reads as the fact it states
    """A file that is not what its name says; the message says what it is."""


@dataclass(frozen=True, slots=True)
class StoredTensor:
    """A tensor in a file: its dtype by safetensors' name, its shape, and its bytes from ``start`` up to ``end``."""

    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def weight_files(folder: Path) -> list[Path]:
    """The files whose tensors are loaded: one, or the shards that an index names; else all there are."""
    whole, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if whole.is_file():
        return [whole]
    if index.is_file():
        return [folder / name for name in sorted(set(read_json(index)["weight_map"].values()))]
    return sorted(folder.glob("*.safetensors"))


def stored_tensors(path: Path) -> dict[str, StoredTensor]:
    """The tensors of a file by name. Raises BrokenFile for a pointer to it, a part of it, and anything else."""
    size = path.stat().st_size
    with path.open("rb") as file:
        begin = file.read(_LENGTH_BYTES)
        length = int.from_bytes(begin, "little")
        require_content(path)
        if len(begin) < _LENGTH_BYTES or _LENGTH_BYTES + length > size:
            raise BrokenFile(f"{path.name} is cut off or holds no weights")
        header = _parsed(path, file.read(length))
    found = {
        name: StoredTensor(
            path, one["dtype"], tuple(one["shape"]), *(at + _LENGTH_BYTES + length for at in one["data_offsets"])
        )
        for name, one in header.items()
        if name != "__metadata__"
    }
    if max((tensor.end for tensor in found.values()), default=0) > size:
        raise BrokenFile(f"{path.name} is cut off")
    return found


def read_json(path: Path) -> Any:  # noqa: ANN401 - whatever the file holds
    """What a file of JSON holds. Raises BrokenFile for a pointer to it, a part of it, and anything else."""
    require_content(path)
    return _parsed(path, path.read_bytes())


def require_content(path: Path) -> None:
    """Raise BrokenFile if this is Git LFS's note of where the file is, instead of the file."""
    with path.open("rb") as file:
        if file.read(len(_LFS_POINTER)) == _LFS_POINTER:
            raise BrokenFile(f"{path.name} is a pointer of Git LFS and not the file; run git lfs pull")


def _parsed(path: Path, content: bytes) -> Any:  # noqa: ANN401 - as above
    try:
        return json.loads(content)
    except ValueError:
        raise BrokenFile(f"{path.name} is cut off or in another format") from None
