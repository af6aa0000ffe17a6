"""Types of JSON values."""

from collections.abc import Mapping
from typing import Any

JSONObject = dict[str, Any]
JSONMapping = Mapping[str, Any]
"""An object that is only read."""
