"""Values that a client has compressed by itself: gzip, Zstandard, and zlib where a header says so."""

from __future__ import annotations

import zlib

from schemas.errors import UnusablePayload
from schemas.headers import Headers, header_texts
from schemas.reject_reason import RejectReason

CONTENT_ENCODING = "content-encoding"

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
# For zlib: which head and checksum to expect.
_GZIP_BITS, _ZLIB_BITS, _RAW_BITS = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS
# What level 19 needs. A frame may ask for gigabytes.
_ZSTD_WINDOW_BYTES = 8 * 1024 * 1024
# Streams behind one another; each costs a copy of what is left.
_MAX_STREAMS = 100
# Four bytes may say 128 KiB, and there is no other bound on what one step gives.
_ZSTD_STEP_BYTES = 256
# What headers call encodings that are not read; anything else that stands there is not repeated.
_NOT_READ = {"br", "compress", "lz4", "snappy", "x-snappy", "bzip2", "xz"}


def decompressed(value: bytes, headers: Headers, *, max_bytes: int) -> bytes:
    """Return what a compressed value holds, of at most ``max_bytes``, or the value itself if it is not compressed.

    The bytes decide; the header ``content-encoding`` is asked only where they do not look compressed or like JSON.
    Raises UnusablePayload: too_large, before more than that is in memory; invalid_encoding for a broken stream;
    unsupported_encoding for one that is known and not read.
    """
    if value.startswith(_GZIP):
        return gunzipped(value, max_bytes=max_bytes)
    if value.startswith(_ZSTD):
        return unpacked_zstd(value, max_bytes=max_bytes)
    named = header_texts(headers).get(CONTENT_ENCODING, "").strip().lower()
    if not named or value.lstrip(b"\xef\xbb\xbf\t\n\r ")[:1] in (b"{", b"[", b'"'):
        return value
    if named == "deflate":
        return inflated(value, max_bytes=max_bytes)
    if named in _NOT_READ:
        raise UnusablePayload(RejectReason.UNSUPPORTED_ENCODING, f"{CONTENT_ENCODING}: {named} is not read")
    return value


def gunzipped(value: bytes, *, max_bytes: int) -> bytes:
    """Decompress gzip, of which there may be several members. Raises UnusablePayload as ``decompressed`` does."""
    return _inflated(value, _GZIP_BITS, "gzip", max_bytes)


def inflated(value: bytes, *, max_bytes: int, raw: bool = False) -> bytes:
    """Decompress zlib's form or, ``raw``, the bare stream. Raises UnusablePayload as ``decompressed`` does."""
    return _inflated(value, _RAW_BITS if raw else _ZLIB_BITS, "deflate", max_bytes)


def unpacked_zstd(value: bytes, *, max_bytes: int) -> bytes:
    """Decompress Zstandard, of which there may be several frames. Raises UnusablePayload as ``decompressed`` does."""
    # Of an extra, as its package is; most commands decompress nothing.
    import zstandard

    window = max(_ZSTD_WINDOW_BYTES, 1 << max_bytes.bit_length())
    ahead, whole = value, bytearray()
    try:
        for _ in range(_MAX_STREAMS):
            stream, end = zstandard.ZstdDecompressor(max_window_size=window).decompressobj(), 0
            while not stream.eof and end < len(ahead):
                start, end = end, end + _ZSTD_STEP_BYTES
                whole += stream.decompress(ahead[start:end])
                if len(whole) > max_bytes:
                    raise _too_large(len(value), "zstd", max_bytes)
            if not stream.eof:
                raise _broken("zstd")
            ahead = stream.unused_data + ahead[end:]
            if not ahead:
                return bytes(whole)
    except zstandard.ZstdError:
        raise _broken("zstd") from None
    raise _too_many("zstd")


def _inflated(value: bytes, bits: int, name: str, max_bytes: int) -> bytes:
    ahead, whole = value, bytearray()
    try:
        for _ in range(_MAX_STREAMS):
            stream = zlib.decompressobj(bits)
            whole += stream.decompress(ahead, max_bytes - len(whole) + 1)
            if len(whole) > max_bytes:
                raise _too_large(len(value), name, max_bytes)
            if not stream.eof:
                raise _broken(name)
            # Another member follows, or zeros that fill a block, or nothing. Behind a bare stream is its checksum.
            ahead = stream.unused_data.lstrip(b"\0")
            if not ahead or bits == _RAW_BITS:
                return bytes(whole)
    except zlib.error:
        raise _broken(name) from None
    raise _too_many(name)


def _too_large(size: int, name: str, max_bytes: int) -> UnusablePayload:
    return UnusablePayload(
        RejectReason.TOO_LARGE, f"{size} bytes of {name} hold more than {max_bytes} bytes, the limit is {max_bytes}"
    )


def _broken(name: str) -> UnusablePayload:
    return UnusablePayload(RejectReason.INVALID_ENCODING, f"{name}: broken, or cut short")


def _too_many(name: str) -> UnusablePayload:
    return UnusablePayload(RejectReason.INVALID_ENCODING, f"{name}: more than {_MAX_STREAMS} streams in one value")
