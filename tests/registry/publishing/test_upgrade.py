"""What every start does before it serves."""

from pathlib import Path

import pytest
from django.db import connection

from muniment.registry.publishing.upgrade import bring_up_to_date
from muniment.store.sqlite import lost

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.sqlite
def test_a_start_notes_that_there_is_a_registry_so_that_its_loss_is_told():
    note = lost.note_of(Path(connection.settings_dict["NAME"]))
    note.unlink(missing_ok=True)
    bring_up_to_date()
    assert note.exists()
