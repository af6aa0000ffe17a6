"""The logo and the mark of the registry: checked and drawn again, as the logos of listings are."""

import io
from collections.abc import Mapping

from msgspec.structs import replace

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.company import pictures
from muniment.registry.logos import vector
from muniment.registry.settings import typefaces
from muniment.registry_toml.document import RegistrySettings
from muniment.registry_toml.reading import MAX_PICTURE_BYTES, InvalidSettings


def store_artwork(settings: RegistrySettings, files: Mapping[str, bytes]) -> RegistrySettings:
    """
    Return *settings* with the paths of *files*, which are stored.

    Raises:
        InvalidSettings: a file is not a picture that can be used, or a named picture is not stored.
    """
    faults: dict[str, str] = {}
    brand = settings.brand
    for name in ("logo", "mark"):
        place = f"brand.{name}"
        if name in files:
            try:
                path, ratio = _store(files[name])
            except (BadRequest, vector.NotDrawable) as error:
                faults[place] = Phrase("{place} cannot be used: {error}.", place=place, error=str(error).rstrip("."))
                continue
            brand = replace(brand, **{name: path})
            if name == "logo":
                brand = replace(brand, logo_ratio=ratio)
            continue
        value = getattr(brand, name)
        if value and not _is_stored(value):
            faults[place] = Phrase(
                "{place}: there is no picture at {value}. Upload it again.", place=place, value=value
            )
    brand = typefaces.store_fonts(brand, files, faults)
    if faults:
        raise InvalidSettings(faults)
    if not brand.logo and brand.logo_ratio:
        brand = replace(brand, logo_ratio=0)
    return replace(settings, brand=brand)


def _store(content: bytes) -> tuple[str, int]:
    from PIL import Image  # 8 MB: imported on first use

    if len(content) > MAX_PICTURE_BYTES:
        raise BadRequest("The image is larger than 2 MB.", "Send an SVG, PNG, JPEG or WebP of at most 2 MB.")
    if vector.is_vector(content):
        content = vector.draw(content)
    path = pictures.store_picture(content)
    with Image.open(io.BytesIO(content)) as picture:
        return path, max(1, min(10_000, picture.width * 100 // picture.height))


def _is_stored(path: str) -> bool:
    return bool(pictures.stored_digests(pictures.digests_of([path])))
