"""The encoding of a text is guessed by its letters and its headings, the same each time, and former systems rarely."""

import subprocess
import sys

import pytest

from muniment.registry.tables.delimited import decode

FRENCH = (
    "Dénomination;Date d'entrée;Président;Activité;Présentation;Trésorerie (€)\n"
    "Théâtre des Chênes;03/02/1999;Célestin Noël;Scène;« chœur d'été à Sète »;1\u00a0200\n"
    "École Émeraude;14/07/2004;Ève Côté;Études;Né d'un vœu, près de l'Ariège;83\u00a0000\n"
    "Île aux Œillets;21/12/2015;Aurèle Prévôt;Pêche;Forêt, rivière et étang;640\n"
) + "".join(f"Œuvre {n} à Évry;01/01/2001;Noé {n} Lefèvre;Été;Clé n\u00b0{n};{n}\u00a0000\n" for n in range(60))
GERMAN = "Körperschaft;Straße;Tätigkeit;Vorstände\nMühlenbund;Große Gäßchen 2;Müllerei;Jürgen Öhler\n"
SPANISH = "Razón social;Teléfono;Descripción\nPeñón Ibérico;+34 900;Unión de albañiles, ¿cómo no?\n"


@pytest.mark.parametrize("encoding", ["iso8859_15", "cp1252"])
@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_a_guess_is_the_same_in_every_process(encoding, seed):
    command = (
        "import sys\nfrom muniment.registry.tables.delimited import decode\n"
        "print(decode(sys.stdin.buffer.read()).encoding)"
    )
    done = subprocess.run(
        [sys.executable, "-c", command],
        input=FRENCH.encode(encoding),
        capture_output=True,
        check=True,
        env={"PYTHONHASHSEED": seed},
    )
    assert done.stdout.decode().strip() == encoding


@pytest.mark.parametrize("text", [FRENCH, GERMAN, SPANISH])
@pytest.mark.parametrize("encoding", ["cp1252", "iso8859_15", "mac_roman"])
def test_a_text_is_read_as_it_was_written(text, encoding):
    assert decode(text.encode(encoding)).text == text


@pytest.mark.parametrize("text", ["Baum;Maß\nÄhre;3×4\n", "Baum;Ort\nLärche;Lörrach‡\n"])
def test_a_sign_beside_letters_of_a_language_is_more_likely_than_letters_of_another(text):
    assert decode(text.encode("cp1252")).text == text


@pytest.mark.parametrize("cell", ["k€", "sœur", "cœur et €"])
def test_the_places_of_euro_and_ligatures_tell_two_sisters_apart(cell):
    text = f"Nom;Été\nForêt d'Orléans;{cell}\n"
    assert decode(text.encode("iso8859_15")).text == text
    assert decode(text.encode("cp1252")).text == text


@pytest.mark.parametrize(
    "text", ["Name;Note\nAhorn;caf\u00e9\n", "Name;Ort\nLinde;K\u00f6ln\n", "Nom;Lieu\nOrme;N\u00eemes\n"]
)
def test_one_letter_is_no_evidence_of_a_former_system(text):
    found = decode(text.encode("cp1252"))
    assert found.text == text
    assert found.is_guess
