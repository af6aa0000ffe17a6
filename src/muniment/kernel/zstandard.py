"""Zstandard (RFC 8878): the standard library's module, which Python before 3.14 has as a package."""

import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

__all__ = ["zstd"]
