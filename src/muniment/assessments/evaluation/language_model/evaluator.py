"""
The evaluator by a language model.

What documents say reaches the model as data in a message of its own; the model has no tools, and its answer is
a closed form for one criterion. Quotes are looked up, levels and scores are worked out by our own code. What the
model cannot judge, rules judge, and the report says so.

Source: assessment-spec/1, evaluators.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from muniment.assessments.evaluation.inputs import Inputs
from muniment.assessments.evaluation.judgement import Judged, Judgement, Judging, Spent
from muniment.assessments.evaluation.language_model.answer import Unusable, read_answer
from muniment.assessments.evaluation.language_model.budget import Budget, estimated_tokens
from muniment.assessments.evaluation.language_model.endpoint import Endpoint, ModelUnavailable
from muniment.assessments.evaluation.language_model.prompt import FORM, PROMPT_HASH, messages, shown_text
from muniment.assessments.evaluation.rules import Rules, holds
from muniment.registry.frameworks.specification import PHRASES, SOURCES

if TYPE_CHECKING:
    from openai import AsyncOpenAI

log = logging.getLogger(__name__)

BUDGET: Final = "The model's budget for this run was used up, so rules judged this."
UNUSABLE: Final = "The model gave no usable answer to this, so rules judged it."
SILENT: Final = "The model did not answer this in time, so rules judged it."
MOST_EVIDENCE: Final = 16_000
"""Characters of passages that a model is shown for one criterion."""
_MOST_ANSWER: Final = 8_000
"""Tokens of an answer, with what a model thinks before it."""
_ENDINGS: Final = {"length": f"it was cut at {_MOST_ANSWER} tokens", "content_filter": "a filter took it away"}
_MOST_REPEATED: Final = 4_000
"""Characters of an answer that a model is shown again, to mend it."""
_TRIES: Final = 2
"""How often a criterion is asked: once more when the answer misses the form."""
_MOST_SILENT: Final = 3
"""Requests in a row that came to nothing, after which the endpoint counts as gone."""
_TICK_S: Final = 0.5
_FORMS: Final[tuple[dict[str, Any], ...]] = (
    {"response_format": FORM, "max_completion_tokens": _MOST_ANSWER, "temperature": 0},
    {"response_format": FORM, "max_completion_tokens": _MOST_ANSWER},
    {"max_tokens": _MOST_ANSWER},
)
"""How an answer is asked for, the strictest first: endpoints differ in what they take, and refuse the rest with 400."""


class _Silent(Exception):  # noqa: N818 - an outcome
    """The endpoint gave no answer. The message is a status or the name of an error."""


class _Exhausted(Exception):  # noqa: N818 - an outcome
    """The run has too little left to ask."""


class _Message(msgspec.Struct):
    content: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    total_tokens: int | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    usage: _Usage | None = None


@dataclass(slots=True)
class _Asked:
    """A criterion on its way."""

    number: int
    criterion: Mapping[str, Any]
    passages: list[int]
    was_silent: bool = False


class LanguageModel:
    """
    Judges by asking an endpoint, one request for each criterion, a few at once.

    Criteria go to rules that ask for it, do not apply, compare facts only, or find no passage to look at.

    Args:
        spent: what earlier attempts at this run used of its budget.
    """

    kind = "model"
    batch = 1
    prompt_hash: str | None = PROMPT_HASH

    def __init__(self, endpoint: Endpoint, spent: Spent) -> None:
        self.model: str | None = endpoint.name
        self._endpoint = endpoint
        self._budget = Budget(endpoint.run_tokens, endpoint.run_seconds, spent)
        self._rules = Rules()
        self._form = 0
        self._silent_in_a_row = 0
        self._has_answered = False

    @property
    def spent(self) -> Spent:
        """Give what the run has used of its budget."""
        return self._budget.spent

    def judge(self, criteria: Sequence[Mapping[str, Any]], scale: tuple[float, float], inputs: Inputs) -> Judging:
        """
        Judge criteria, each as its answer comes; None says that none came for a while.

        Raises:
            ModelUnavailable: the endpoint refuses the settings, or answers nothing any more.
        """
        waiting: deque[_Asked] = deque()
        for number, criterion in enumerate(criteria):
            passages = [] if _is_for_rules(criterion, inputs) else self._passages(criterion, scale, inputs)
            if passages:
                waiting.append(_Asked(number, criterion, passages))
            else:
                yield Judged(number, self._rules.judge_one(criterion, scale, inputs), "rules")
        if waiting:
            with closing(self._ask_all(waiting, scale, inputs)) as answers:
                yield from answers

    def _passages(self, criterion: Mapping[str, Any], scale: tuple[float, float], inputs: Inputs) -> list[int]:
        """Give the chunks to look at: all of the sources if they are few, else the nearest to the requirement first."""
        sources = (criterion.get("evidence") or {}).get("sources") or SOURCES
        by_rules = self._rules.judge_one(criterion, scale, inputs)
        first = [cited.chunk for support in by_rules.supports for cited in support.cited]
        every = inputs.of(sources)
        if sum(len(shown_text(inputs, each)) for each in every) > MOST_EVIDENCE:
            text = f"{criterion['title']} {criterion['requirement']}"
            # Words find little in another language than the requirement's: the rest follows in its order.
            every = [*self._rules.full_text(inputs).nearest(text, sources), *every]
        chosen: list[int] = []
        room = MOST_EVIDENCE
        for each in dict.fromkeys([*first, *every]):
            room -= len(shown_text(inputs, each))
            if room < 0:
                break
            chosen.append(each)
        return sorted(chosen)

    # ------------------------------------------------------------------ asking

    def _ask_all(self, waiting: deque[_Asked], scale: tuple[float, float], inputs: Inputs) -> Judging:
        # The loop runs only while answers are waited for: whoever takes them may use the database between.
        with asyncio.Runner() as runner:
            client = _client(self._endpoint)
            running: dict[asyncio.Task[Judgement], _Asked] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self._endpoint.parallel:
                        asked = waiting.popleft()
                        running[runner.get_loop().create_task(self._ask(client, asked, scale, inputs))] = asked
                    done, _ = runner.run(_first_of(running))
                    # What was answered first: it is paid for, and the end of the endpoint would take it along.
                    for task in sorted(done, key=lambda each: each.exception() is not None):
                        asked = running.pop(task)
                        judged = self._outcome(task, asked, scale, inputs)
                        if judged is None:
                            waiting.append(asked)
                        else:
                            yield judged
                    yield None
            finally:
                for task in running:
                    task.cancel()
                runner.run(_closed(client, running))

    def _outcome(
        self, task: asyncio.Task[Judgement], asked: _Asked, scale: tuple[float, float], inputs: Inputs
    ) -> Judged | None:
        """Give what came of a criterion; None to ask it again, once the others have been asked."""
        try:
            judgement = task.result()
        except _Silent as error:
            self._silent_in_a_row += 1
            log.warning("the language model gave no answer: %s", error)
            again = not asked.was_silent
            if self._silent_in_a_row >= _MOST_SILENT or not (again or self._has_answered):
                raise ModelUnavailable("The language model does not answer.") from None
            if again:
                asked.was_silent = True
                return None
            note = SILENT
        except _Exhausted:
            note = BUDGET
        except Unusable as error:
            self._silent_in_a_row = 0
            self._has_answered = True
            log.warning("an answer of the language model is of no use: %s", error.why)
            note = UNUSABLE
        else:
            self._silent_in_a_row = 0
            self._has_answered = True
            return Judged(asked.number, judgement, "model")
        return Judged(asked.number, self._rules.judge_one(asked.criterion, scale, inputs), "rules", note)

    async def _ask(self, client: "AsyncOpenAI", asked: _Asked, scale: tuple[float, float], inputs: Inputs) -> Judgement:
        conversation = messages(asked.criterion, scale, inputs, asked.passages)
        tried = 0
        while True:
            tried += 1
            text = await self._complete(client, conversation)
            try:
                return read_answer(text, asked.criterion, scale, inputs, asked.passages, forgiving=tried == _TRIES)
            except Unusable as fault:
                if tried == _TRIES:
                    raise
                conversation += [
                    {"role": "assistant", "content": text[:_MOST_REPEATED]},
                    {"role": "user", "content": f"{fault} Answer again, in the form that was asked for."},
                ]

    async def _complete(self, client: "AsyncOpenAI", conversation: list[Any]) -> str:
        """
        Give the text of one answer.

        Raises:
            _Exhausted, _Silent, Unusable: there is none.
        """
        asked = sum(estimated_tokens(message["content"]) for message in conversation)
        reserved = asked + _MOST_ANSWER
        if not self._budget.reserve(reserved):
            raise _Exhausted
        used = asked  # of a request that ends without a count, what was sent is counted
        try:
            completion = await self._completion(client, conversation)
            text = completion.choices[0].message.content if completion.choices else None
            total = completion.usage.total_tokens if completion.usage else None
            used = total if total and total > 0 else asked + estimated_tokens(text or "")
            ended = completion.choices[0].finish_reason if completion.choices else None
            if not text or ended in {"length", "content_filter"}:
                raise Unusable("There is no whole answer.", _ENDINGS.get(ended or "", "it is empty"))
            return text
        finally:
            self._budget.settle(reserved, used)

    async def _completion(self, client: "AsyncOpenAI", conversation: list[Any]) -> _Completion:
        import openai

        form = self._form
        while True:
            try:
                # Twice the time of one request: the client tries again by itself, and a reader that is fed a
                # byte at a time never times out by itself.
                async with asyncio.timeout(max(0, min(self._budget.seconds_left, 2 * self._endpoint.timeout_s))):
                    answer = await client.chat.completions.with_raw_response.create(
                        model=self._endpoint.name,
                        messages=conversation,
                        **_FORMS[form],
                    )
                completion = msgspec.json.decode(answer.http_response.content, type=_Completion)
            except TimeoutError:
                if self._budget.seconds_left <= 0:
                    raise _Exhausted from None
                raise _Silent("time-out") from None
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if form + 1 < len(_FORMS):
                    form += 1
                    continue
                raise Unusable("The request is refused.", f"status {error.status_code}") from None
            except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
                # What it says may repeat the key: only the status goes on.
                raise ModelUnavailable(
                    f"The language model refuses this registry with {error.status_code}.", for_good=True
                ) from None
            except openai.APIStatusError as error:
                raise _Silent(f"status {error.status_code}") from None
            except openai.OpenAIError as error:
                raise _Silent(type(error).__name__) from None
            except (msgspec.DecodeError, RecursionError):
                raise Unusable("There is no answer.", "it is not of the chat-completions protocol") from None
            self._form = max(self._form, form)
            return completion


def _is_for_rules(criterion: Mapping[str, Any], inputs: Inputs) -> bool:
    condition = criterion.get("appliesIf")
    if condition is not None and not holds(condition, inputs)[0]:
        return True
    asked = criterion.get("evaluator", "auto")
    checks = criterion.get("checks") or ()
    compares_facts = bool(checks) and all(check["op"] not in PHRASES for check in checks)
    return asked == "rules" or (asked == "auto" and compares_facts)


async def _first_of(running: Mapping[asyncio.Task[Judgement], _Asked]) -> tuple[set[asyncio.Task[Judgement]], Any]:
    return await asyncio.wait(running, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)


async def _closed(client: "AsyncOpenAI", running: Mapping[asyncio.Task[Judgement], _Asked]) -> None:
    await asyncio.gather(*running, return_exceptions=True)
    await client.close()


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    """Give a client that goes to the endpoint and nowhere else, with nothing but what the settings name."""
    try:
        import openai
    except ImportError:
        raise ModelUnavailable("The extra language-model is not installed.", for_good=True) from None
    client = openai.AsyncOpenAI(
        base_url=endpoint.url,
        api_key=endpoint.key or "none",  # an empty one would be looked for in the environment
        timeout=endpoint.timeout_s,
        max_retries=2,
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),  # a redirect would take the texts along
    )
    client.organization = client.project = None  # read from the environment of whoever started us
    return client
