"""What people answered about their positions, as an import respects it: a confirmation by the operator otherwise."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from muniment.kernel.ids import now, slug_from_name
from muniment.registry.company.parts import PositionRow
from muniment.registry.exchange.batch import BatchRun
from muniment.registry.models import Company, PositionRequest
from muniment.schema.validation import Fault

_Answered = tuple[str, str, str, str | None]
"""The person's slug and name, the id of the position and its title."""


@dataclass(slots=True)
class PositionAnswers:
    """The requests of the companies of a batch: refused ones, and the undecided ones by the id of the position."""

    refused: dict[int, list[_Answered]] = field(default_factory=lambda: defaultdict(list))
    waiting: dict[int, dict[str, tuple[int, str]]] = field(default_factory=lambda: defaultdict(dict))

    @classmethod
    def read(cls, companies: Iterable[Company]) -> "PositionAnswers":
        answers, decisions = cls(), PositionRequest.Decision
        found = PositionRequest.objects.filter(
            company__in=[company.pk for company in companies],
            decision__in=["", decisions.DECLINED, decisions.ENDED],
        )
        columns = ("pk", "company_id", "decision", "item", "title", "person__slug", "person__name")
        for key, company, decision, item, title, slug, name in found.values_list(*columns):
            if decision:
                answers.refused[company].append((slug, name, item, title))
            else:
                answers.waiting[company][item] = (key, slug)
        return answers

    def without_refused(
        self, company: Company, places: list[PositionRow], run: BatchRun, line: int
    ) -> list[PositionRow]:
        """Return *places* without those that their person declined or ended, which are reported."""
        refused = self.refused.get(company.pk)
        if not refused:
            return places
        kept = []
        for index, place in enumerate(places):
            if any(_is_same(place, answered) for answered in refused):
                run.warn(line, Fault(f"positions[{index}]", "was declined or ended by the person and is left out"))
            else:
                kept.append(place)
        return kept

    def settle(self, written: Iterable[tuple[Company, list[PositionRow]]]) -> None:
        """Record that the operator confirmed a requested position; withdraw requests whose position is gone."""
        decisions: dict[str, list[int]] = defaultdict(list)
        for company, places in written:
            slugs = {place.item_id: place.slug for place in places}
            for item, (request, slug) in self.waiting.get(company.pk, {}).items():
                if slugs.get(item) == slug:
                    decisions[PositionRequest.Decision.CONFIRMED].append(request)
                elif slugs.get(item) != "":
                    decisions[PositionRequest.Decision.WITHDRAWN].append(request)
        for decision, keys in decisions.items():
            PositionRequest.objects.filter(pk__in=keys).update(decision=decision, decided_at=now())


def _is_same(place: PositionRow, answered: _Answered) -> bool:
    slug, name, item, title = answered
    is_person = place.slug == slug if place.slug else slug_from_name(place.name) == slug_from_name(name)
    return is_person and (place.title == title or (bool(place.item_id) and place.item_id == item))
