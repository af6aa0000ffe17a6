"""Monograms have the initials that readers of each script expect, in colours that can be read in both modes."""

import re
from pathlib import Path

import pytest

from muniment.web.presenters.marks import COLOURS, colour, initials, mark_html

CSS = Path(mark_html.__code__.co_filename).parents[1] / "static" / "web" / "muniment.css"


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Optimism", "O"),
        ("Blue River Trust", "BR"),
        ("The Graph", "G"),
        ("Bank of the West", "BW"),
        ("The", "T"),
        ("of the", "OT"),
        ("0x Protocol", "0P"),
        ("yearn.finance", "YF"),
        ("🌱 Green DAO", "GD"),
        ("(Re)Dot", "RD"),
        ("Émile Zola", "ÉZ"),
        ("E\u0301mile", "É"),
        ("ßtraße", "ß"),
        ("Ольга Петрова", "ОП"),
        ("東京都 水道局", "東"),
        ("Harbour 東京", "H"),
        ("مؤسسة النور", "م"),
        ("קרן הים", "ק"),
        ("हिन्दी संस्था", "हिसं"),
        ("한국 재단", "한"),
        ("<script>", "<script>"[1].upper()),
        ("!!!", "·"),
        ("", "·"),
    ],
)
def test_initials(name, letters):
    assert initials(name) == letters


def test_the_colour_belongs_to_the_key_and_survives_another_name():
    assert mark_html("Blue River", key="blue")[:14] == mark_html("Red River", key="blue")[:14]
    assert {colour(f"company-{n}") for n in range(200)} == set(range(COLOURS))


def test_a_logo_is_shown_only_from_here_and_in_the_size_of_a_mark():
    digest = "0" * 32
    for ours in ({"url": f"/pictures/{digest}-512.webp"}, f"https://r.example/pictures/{digest}-512.webp"):
        assert f'src="/pictures/{digest}-144.webp"' in mark_html("Harbour", ours)
    others = ["https://tracker.example/x.png", {"url": "https://tracker.example/x.png"}, {"url": None}, {}, 7, ["x"]]
    others.append(f"https://tracker.example/pictures/{digest}-512.webp?track")
    for foreign in others:
        assert mark_html("Harbour", foreign).startswith("<span")


def luminance(colour_):
    parts = [each / 255 for each in colour_]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def rgb(text):
    return [int(text[at : at + 2], 16) for at in (1, 3, 5)]


@pytest.mark.parametrize("number", range(COLOURS))
@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
def test_initials_have_enough_contrast_on_both_shades(number, mode):
    css = CSS.read_text()
    pair = r"light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)"
    tone = rgb(re.search(rf"--mark{number}: {pair}", css)[mode + 1])
    raised = rgb(re.search(rf"--raised: {pair}", css)[mode + 1])
    shades = [int(each) / 100 for each in re.findall(r"var\(--tone\) (\d+)%, var\(--raised\)\) 50%", css)]
    assert len(shades) == 2
    for share in shades:
        ground = [share * a + (1 - share) * b for a, b in zip(tone, raised, strict=True)]
        light, dark = sorted((luminance(tone), luminance(ground)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize(
    ("name", "letters"),
    [
        ("Gary C. Peters", "GP"),
        ("Zofia Krzemieńska-Bór", "ZK"),
        ("Ludwig van Beethoven", "LB"),
        ("Martin Luther King, Jr.", "MK"),
        ("Henry Ford III", "HF"),
        ("Ada (Countess) Lovelace", "AL"),
        ("Rajith Attapattu (Community Maintainer)", "RA"),
        ("Plato", "P"),
        ("Jr. Jr.", "JJ"),
        ("山田 太郎", "山"),
        ("Anna 田", "A"),
        ("··· ---", "·"),
    ],
)
def test_a_person_has_the_initials_of_the_first_and_of_the_last_name(name, letters):
    assert initials(name, is_person=True) == letters
