"""The registry's settings: a form over ``registry.toml``, with a preview, the versions, and restoring one."""

import contextlib
from typing import Any, Final
from urllib.parse import urlencode

import msgspec
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment import config
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined
from muniment.kernel.problems import Conflict
from muniment.languages.catalogues import installed
from muniment.languages.names import own_name
from muniment.languages.translated import sentence, translated
from muniment.languages.writing import digits
from muniment.registry.settings import typefaces, versions
from muniment.registry.settings.artwork import store_artwork
from muniment.registry_toml import applied, contrast, reading
from muniment.registry_toml.document import RegistrySettings
from muniment.registry_toml.reading import InvalidSettings
from muniment.web.branding import accents, brand_of, scoped_sheet
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Words, problems_shown, show_problem
from muniment.web.requests.pagination import whole_number
from muniment.web.setting_up import legal_texts
from muniment.web.views.operate.frame import operate_page

PAGE: Final = "/operate/registry"
_COLOR: Final[dict[str, Any]] = {
    "data-color": gettext_lazy("color picker"),
    "maxlength": "7",
    "autocomplete": "off",
    "spellcheck": "false",
}
"""A color is entered as text; with scripts, a picker is beside it."""
PICTURES: Final = ("logo", "mark")
_LIST: Final = gettext_lazy("One value per line. Leave it empty to use the built-in values.")


def _line(label: Any, help_text: Any = "", **attributes: Any) -> forms.CharField:
    return forms.CharField(label=label, help_text=help_text, required=False, widget=forms.TextInput(attributes))


def _area(label: Any, help_text: Any = "", rows: int = 4) -> forms.CharField:
    return forms.CharField(label=label, help_text=help_text, required=False, widget=forms.Textarea({"rows": rows}))


def _built_in() -> dict[str, str]:
    """Return what is in effect while a field is empty."""
    return {
        "registry__name": applied.UNNAMED,
        "words__company": gettext("company"),
        "words__companies": gettext("companies"),
        "texts__heading": gettext("A public record of organizations and the people behind them"),
        "texts__lead": gettext("Open to read without an account, in a browser or by an agent."),
        "texts__tagline": gettext("Public registry"),
    }


def language_choices(chosen: str) -> list[tuple[str, str]]:
    """Return the languages that pages can have, by their codes: all, one of them, or one before all others."""
    codes = installed()
    choices = {"": gettext("All, by the preference of each visitor")}
    for code in codes:
        choices[code] = gettext("Only %(language)s") % {"language": own_name(code)}
    if len(codes) > 1:
        words = gettext("%(language)s first, also %(others)s")
        for code in codes:
            others = [other for other in codes if other != code]
            names = {"language": own_name(code), "others": ", ".join(map(own_name, others))}
            choices[",".join([code, *others])] = words % names
    # registry.toml may name several languages in an order that the form does not offer.
    if chosen and chosen not in choices:
        choices[chosen] = ", ".join(map(own_name, chosen.split(",")))
    return list(choices.items())


class SettingsForm(forms.Form):
    """
    The settings that the page offers; a field is named by its place in the file.

    Every field can be left empty, so that none says that it is optional.
    """

    says_optional = False

    registry__name = _line(
        gettext_lazy("Name"),
        gettext_lazy("Shown in the header, in mail and by agents."),
    )
    registry__contact = _line(gettext_lazy("Contact"), gettext_lazy("An email address or a URL, for the footer."))
    registry__licence = _line(gettext_lazy("License of the data"), gettext_lazy("For example CC BY 4.0."))
    registry__licence_url = _line(gettext_lazy("Address of the license"), inputmode="url")
    registry__languages = forms.ChoiceField(
        label=gettext_lazy("Language of the pages"),
        help_text=gettext_lazy("Visitors can choose among the languages that are offered."),
        required=False,
    )
    registry__fetch_logos = forms.BooleanField(
        label=gettext_lazy("Fetch the logos that listings name by URL"),
        help_text=gettext_lazy("Each is fetched once and served from here. Otherwise, listings show monograms."),
        required=False,
    )
    words__company = _line(
        gettext_lazy("What a listing is called"),
        gettext_lazy("For example member, instead of company."),
    )
    words__companies = _line(gettext_lazy("What several listings are called"), gettext_lazy("For example members."))
    texts__heading = _line(gettext_lazy("Heading of the front page"))
    texts__lead = _area(gettext_lazy("Text below the heading"), rows=2)
    texts__tagline = _line(gettext_lazy("Tagline"), gettext_lazy("Follows the name in the title and in the footer."))
    texts__footer = _line(gettext_lazy("Footer"), gettext_lazy("Replaces name and tagline in the footer."))
    brand__accent = _line(
        gettext_lazy("Accent color"),
        gettext_lazy("Color of links and buttons, such as #0b5d3b. Needs a contrast of 4.5:1 on a light page."),
        **_COLOR,
    )
    brand__accent_dark = _line(
        gettext_lazy("Accent color of the dark theme"),
        gettext_lazy("Leave it empty to derive it from the accent color."),
        **_COLOR,
    )
    logo_file = forms.FileField(
        label=gettext_lazy("Logo"),
        help_text=gettext_lazy("Replaces the name in the header. SVG, PNG, JPEG or WebP, at most 2 MB."),
        required=False,
    )
    mark_file = forms.FileField(
        label=gettext_lazy("Mark"),
        help_text=gettext_lazy("A square picture: the icon of the site, and beside the name if there is no logo."),
        required=False,
    )
    brand__typeface = forms.ChoiceField(
        label=gettext_lazy("Fonts"),
        choices=[
            ("", gettext_lazy("Bundled: Source Sans and Zilla Slab")),
            ("system", gettext_lazy("The fonts of each visitor's system")),
        ],
        required=False,
    )
    font_text_file = forms.FileField(
        label=gettext_lazy("Font of texts"),
        help_text=gettext_lazy("A WOFF2 file of at most 300 KB whose license lets you serve it. Served from here."),
        required=False,
    )
    font_headings_file = forms.FileField(
        label=gettext_lazy("Font of headings"),
        help_text=gettext_lazy("A WOFF2 file too. Leave it empty to use the font of texts."),
        required=False,
    )
    vocabulary__types = _area(gettext_lazy("Types"), _LIST)
    vocabulary__industries = _area(gettext_lazy("Industries"), _LIST)
    vocabulary__kinds = _area(gettext_lazy("Subtypes"), _LIST)
    vocabulary__themes = _area(gettext_lazy("Themes"), _LIST)
    sections__token = forms.BooleanField(label=gettext_lazy("Token and its distribution"), required=False)
    sections__proposals = forms.BooleanField(label=gettext_lazy("Proposals"), required=False)
    sections__cap_table = forms.BooleanField(label=gettext_lazy("Cap table"), required=False)
    legal__imprint = _area(gettext_lazy("Imprint"), gettext_lazy("Markdown. Leave it empty to have no such page."))
    legal__privacy = _area(gettext_lazy("Privacy policy"))
    legal__terms = _area(gettext_lazy("Terms of use"))

    parts: tuple[tuple[Words, tuple[str, ...]], ...] = (
        (
            gettext_lazy("Name and license"),
            (
                *("registry__name", "registry__contact", "registry__licence", "registry__licence_url"),
                *("registry__languages", "registry__fetch_logos"),
            ),
        ),
        (
            gettext_lazy("Brand"),
            (
                *("logo_file", "mark_file", "brand__accent", "brand__accent_dark"),
                *("brand__typeface", "font_text_file", "font_headings_file"),
            ),
        ),
        (gettext_lazy("What listings are called"), ("words__company", "words__companies")),
        (gettext_lazy("Texts"), ("texts__heading", "texts__lead", "texts__tagline", "texts__footer")),
        (
            gettext_lazy("Suggested values"),
            ("vocabulary__types", "vocabulary__industries", "vocabulary__kinds", "vocabulary__themes"),
        ),
        (gettext_lazy("Sections of a listing"), ("sections__token", "sections__proposals", "sections__cap_table")),
        (gettext_lazy("Legal pages"), ("legal__imprint", "legal__privacy", "legal__terms")),
    )

    def __init__(self, *args: Any, only: tuple[str, ...] = (), **options: Any) -> None:
        """
        Make the form.

        Args:
            only: the fields that it has; all of them by default. The settings of the others stay.
        """
        super().__init__(*args, **options)
        if only:
            self.fields = {name: field for name, field in self.fields.items() if name in only}
        for name, built_in in _built_in().items():
            if name in self.fields:
                self.fields[name].widget.attrs["placeholder"] = built_in
        languages: Any = self.fields.get("registry__languages")
        if languages is not None:
            chosen = self.initial.get("registry__languages", "")
            languages.choices = language_choices(self.data.get("registry__languages", chosen))

    def clean(self) -> JSONObject:
        """Refuse a legal page in which something of its starting text is not filled in."""
        super().clean()
        for page in legal_texts.PAGES:
            name = f"legal__{page}"
            placeholders = legal_texts.open_placeholders(str(self.cleaned_data.get(name, "")))
            if placeholders:
                words = gettext("Fill in or remove what is in double square brackets: %(places)s.")
                self.add_error(name, words % {"places": ", ".join(placeholders)})
        return self.cleaned_data

    def sections(self) -> list[tuple[Words, list[forms.BoundField]]]:
        """Return the fields under their headings."""
        sections = []
        for title, names in self.parts:
            fields = [self[name] for name in names if name in self.fields]
            if fields:
                sections.append((title, fields))
        return sections


def label_of(place: str) -> str:
    """Return the label of a place such as legal.imprint; the place itself if the form lacks it."""
    field = SettingsForm.base_fields.get(_field_of(place) or "")
    return str(field.label) if field is not None else place


def form_values(settings: RegistrySettings) -> JSONObject:
    """Return *settings* as the values of the form."""
    document = msgspec.to_builtins(settings)
    values = {}
    for name in SettingsForm.base_fields:
        section, _, member = name.partition("__")
        if not member:  # a file
            continue
        # What the file leaves out: sections are shown, other values empty.
        value = document.get(section, {}).get(member, section == "sections" or "")
        if isinstance(value, list | tuple):
            separator = "," if member == "languages" else "\n"
            value = separator.join(value)
        values[name] = value
    return values


@operator()
@once
def settings(request: HttpRequest) -> HttpResponse:
    """Show, preview and apply the settings."""
    latest = versions.latest_version()
    if request.method != "POST":
        return _page(request, SettingsForm(initial=form_values(latest.settings)), latest.settings, latest.number)
    form = SettingsForm(request.POST, request.FILES)
    number = whole_number(request.POST.get("version", ""))
    if number is None:
        number = latest.number
    try:
        proposed = proposed_settings(form, request, latest.settings)
        if proposed is None:
            return _page(request, form, latest.settings, number)
        if request.POST.get("do") == "preview":
            return _page(request, form, proposed, number, is_preview=True)
        note = request.POST.get("note", "").strip()
        made = versions.apply_settings(actor_of(request), proposed, note=note, expected_number=number)
    except InvalidSettings as refusal:
        show_faults(form, refusal)
    except Conflict as refusal:
        show_problem(request, refusal)
    else:
        messages.success(request, gettext("Version %(number)d is applied.") % {"number": made})
        return HttpResponseRedirect(PAGE)
    return _page(request, form, latest.settings, number)


@operator("POST")
@once
def restore(request: HttpRequest, number: int) -> HttpResponse:
    """Apply a former version again."""
    with problems_shown(request):
        made = versions.restore_version(actor_of(request), number)
        words = gettext("Version %(former)d is applied again, as version %(number)d.")
        messages.success(request, words % {"former": number, "number": made})
    return HttpResponseRedirect(PAGE)


@operator("GET", "HEAD")
def preview_colors(request: HttpRequest) -> HttpResponse:
    """Return the style sheet of a preview, for colors and fonts that are accepted."""
    brand = {name: request.GET.get(name, "") for name in ("accent", "accent_dark", "typeface", *typefaces.NAMES)}
    are_colors = all(not brand[name] or contrast.is_color(brand[name]) for name in ("accent", "accent_dark"))
    are_fonts = all(not brand[name] or reading.FONT.fullmatch(brand[name]) for name in typefaces.NAMES)
    previewed = RegistrySettings()
    if are_colors and are_fonts:
        with contextlib.suppress(InvalidSettings):
            previewed = reading.check({"brand": brand})
    return HttpResponse(scoped_sheet(previewed, ".previewed"), content_type="text/css; charset=utf-8")


def proposed_settings(form: SettingsForm, request: HttpRequest, latest: RegistrySettings) -> RegistrySettings | None:
    """
    Return the settings that a submitted form asks for, with uploaded pictures and fonts stored; None if it has faults.

    Raises:
        InvalidSettings: a value is not accepted, or a file cannot be used.
    """
    if not form.is_valid():
        return None
    return store_artwork(reading.check(_declared(form, request, latest)), _uploaded(request))


def show_faults(form: SettingsForm, refusal: InvalidSettings) -> None:
    """Show each fault at its field; one of a field that the form lacks, above it."""
    for place, fault in refusal.faults.items():
        name = _field_of(place)
        parts = fault.parts if isinstance(fault, Joined) else ()
        text = translated(fault)
        # A fault begins with its place in the file, which says nothing to those who see a form.
        if len(parts) > 1 and parts[0].strip() == place:
            text = sentence(parts[1])
        if name in form.fields:
            form.add_error(name, text)
        else:
            form.add_error(None, f"{label_of(place)}: {text}")


def _declared(form: SettingsForm, request: HttpRequest, latest: RegistrySettings) -> JSONObject:
    """Return the settings of the form as a file would declare them; what the form lacks stays."""
    declared: dict[str, Any] = msgspec.to_builtins(latest)
    for name in form.fields:
        section, _, member = name.partition("__")
        if member:
            declared.setdefault(section, {})[member] = _value(form, name)
    brand = declared.setdefault("brand", {})
    # A browser can't fill in a file again, so the page of a preview names those that it was sent.
    for name in (*PICTURES, *typefaces.NAMES):
        kept = request.POST.get(f"kept_{name}", "")
        pattern = reading.PICTURE if name in PICTURES else reading.FONT
        if request.POST.get(f"remove_{name}"):
            brand[name] = ""
        elif pattern.fullmatch(kept):
            brand[name] = kept
    ratio = whole_number(request.POST.get("kept_ratio", ""), 5)
    if ratio is not None:
        brand["logo_ratio"] = ratio
    return declared


def _value(form: SettingsForm, name: str) -> object:
    value: Any = form.cleaned_data.get(name, "")
    if name == "registry__languages":
        return value.split(",") if value else []
    if name.startswith("vocabulary__"):
        return value.splitlines()
    if isinstance(value, bool):
        return value
    if name == "texts__lead":
        return " ".join(value.split())
    return value.replace("\r\n", "\n")


def _uploaded(request: HttpRequest) -> dict[str, bytes]:
    """Return the contents of the fonts and pictures that were sent; of a font that is too large, a byte more."""
    contents = {}
    for name in typefaces.NAMES:
        file = request.FILES.get(f"{name}_file")
        if file is not None and not isinstance(file, list):
            contents[name] = file.read(typefaces.MAX_BYTES + 1)
    for name in PICTURES:
        file = request.FILES.get(f"{name}_file")
        if file is None or isinstance(file, list):
            continue
        size_bytes = file.size or 0
        if size_bytes > reading.MAX_PICTURE_BYTES:
            size_mb = digits(f"{size_bytes / (1 << 20):.1f}")
            fault = gettext("The image has %(size)s MB. At most 2 MB are accepted.") % {"size": size_mb}
            raise InvalidSettings({f"brand.{name}": fault})
        contents[name] = file.read()
    return contents


def _field_of(place: str) -> str | None:
    """Return the field of a place in the file, such as legal.imprint; None if the form lacks it."""
    section, _, member = place.partition(".")
    if section == "brand" and member in {*PICTURES, *typefaces.NAMES}:
        return f"{member}_file"
    name = f"{section}__{member}"
    return name if name in SettingsForm.base_fields else None


def _page(
    request: HttpRequest, form: SettingsForm, shown: RegistrySettings, number: int, *, is_preview: bool = False
) -> HttpResponse:
    history = []
    for version in versions.list_versions():
        history.append((version, [(label_of(place), *texts) for place, *texts in version.changes]))
    context: JSONObject = {
        **brand_context(shown, is_preview=is_preview),
        "form": form,
        "number": number,
        "versions": history,
    }
    return operate_page(request, "registry", "operate/registry.html", context)


def brand_context(shown: RegistrySettings, *, is_preview: bool) -> JSONObject:
    """Return what the parts of the page need that show pictures and a preview of *shown*."""
    light, dark = accents(shown)
    brand = shown.brand
    sheet = {"accent": light, "accent_dark": dark, "typeface": brand.typeface}
    sheet |= {"font_text": brand.font_text, "font_headings": brand.font_headings}
    preview_css = ""
    if any(sheet.values()):
        preview_css = f"/operate/registry/preview.css?{urlencode(sheet)}"
    branding = brand_of(shown)
    return {
        "shown": shown,
        "logo": branding.logo,
        "mark": branding.mark,
        "previewed": branding if is_preview else None,
        "previewed_name": shown.registry.name,
        "themes": ("light", "dark"),
        "contrasts": _contrasts(light, dark),
        "logos_fixed": config.current().origins["fetch_logos"] != "default",
        "preview_css": preview_css,
    }


def _contrasts(light: str, dark: str) -> list[str]:
    """Return the contrast of the colors on both themes, rounded down."""
    pairs = [(light, contrast.LIGHT), (dark, contrast.DARK)]
    ratios = [contrast.least_contrast(color, mode) for color, mode in pairs if color]
    return [digits(f"{int(ratio * 10) / 10:.1f}") for ratio in ratios]
