"""The mark of the registry for mail: as PNG, which every mail program shows, and once per process and picture."""

import io
import logging
from functools import lru_cache

from muniment.mail.html import HEIGHT, Mark
from muniment.registry.company.pictures import digests_of
from muniment.registry.models import Picture
from muniment.registry_toml import applied

WIDEST = 200
_SCALE = 3
log = logging.getLogger(__name__)


def declared_mark() -> Mark | None:
    """Return the declared mark or, without one, the logo; None if the registry has neither."""
    brand = applied.current().brand
    path = brand.mark or brand.logo
    return _drawn(path, has_name=not brand.mark) if path else None


@lru_cache(maxsize=4)
def _drawn(path: str, *, has_name: bool) -> Mark | None:
    from PIL import Image  # 8 MB: imported on first use

    stored = Picture.objects.filter(digest__in=digests_of([path])).first()
    if stored is None:
        log.warning("there is no picture at %s, so mail shows the initial of the registry", path)
        return None
    with Image.open(io.BytesIO(bytes(stored.large))) as opened:
        picture = opened.convert("RGBA")
    drawn = picture.getbbox()
    if drawn:  # without the transparent space that makes it square
        picture = picture.crop(drawn)
    picture.thumbnail((_SCALE * WIDEST, _SCALE * HEIGHT))
    out = io.BytesIO()
    picture.save(out, "PNG", optimize=True)
    return Mark(out.getvalue(), max(1, round(picture.width * HEIGHT / max(1, picture.height))), has_name)
