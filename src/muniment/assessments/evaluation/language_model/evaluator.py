"""
The language-model evaluator.

Documents reach the model as data in a separate message; the model has no tools, and its answer must match a schema
for one criterion. Our code verifies quotes and computes levels and scores. Rules judge what the model cannot, and the
report says so.

Source: assessment-spec/1, evaluators.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import msgspec

from muniment.assessments.evaluation.inputs import Inputs
from muniment.assessments.evaluation.judgement import Judged, Judgement, Judging, Usage
from muniment.assessments.evaluation.language_model.conversation import (
    FORM,
    PROMPT_HASH,
    Unusable,
    messages,
    read_answer,
    shown_text,
)
from muniment.assessments.evaluation.language_model.endpoint import Endpoint, ModelUnavailable
from muniment.assessments.evaluation.rules import Rules, holds
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.registry.frameworks.specification import PHRASES, SOURCES

log = logging.getLogger(__name__)

BUDGET: Final = "The model's budget for this run was used up, so this was judged by rules."
UNUSABLE: Final = "The model gave no usable answer, so this was judged by rules."
SILENT: Final = "The model did not answer in time, so this was judged by rules."
MAX_EVIDENCE: Final = 16_000
"""Characters of passages in the prompt of one criterion."""
_MAX_ANSWER: Final = 8_000
"""Tokens of an answer, including reasoning."""
_ENDINGS: Final = {
    "length": f"it was truncated at {_MAX_ANSWER} tokens",
    "content_filter": "a content filter blocked it",
}
_MAX_REPEATED: Final = 4_000
"""Characters of an invalid answer that are sent back for correction."""
_TRIES: Final = 2
"""Attempts per criterion: one retry if the answer is invalid."""
_MAX_SILENT: Final = 3
"""Consecutive failed requests after which the endpoint counts as down."""
_TICK_S: Final = 0.5
_BYTES_A_TOKEN: Final = 3
_FORMS: Final[tuple[JSONObject, ...]] = (
    {"response_format": FORM, "max_completion_tokens": _MAX_ANSWER, "temperature": 0},
    {"response_format": FORM, "max_completion_tokens": _MAX_ANSWER},
    {"max_tokens": _MAX_ANSWER},
)
"""Request options, strictest first: endpoints reject options they do not support with 400."""


def estimated_tokens(text: str) -> int:
    """Return an upper estimate of a text's tokens, used before an endpoint reports a count."""
    return len(text.encode()) // _BYTES_A_TOKEN + 1


class Budget:
    """The remaining budget of one run; *spent* is the usage of its earlier attempts."""

    def __init__(self, tokens: int, seconds: float, spent: Usage) -> None:
        self._tokens = tokens - spent.tokens
        self._before = spent
        self._used = 0
        self._reserved = 0
        self._began = time.monotonic()
        self._ends = self._began + seconds - spent.seconds

    @property
    def spent(self) -> Usage:
        """Return the usage of the run, including its earlier attempts."""
        seconds = self._before.seconds + time.monotonic() - self._began
        return Usage(self._before.tokens + self._used, round(seconds, 3))

    @property
    def seconds_left(self) -> float:
        """Return the remaining seconds; negative when the time is used up."""
        return self._ends - time.monotonic()

    def reserve(self, tokens: int) -> bool:
        """Reserve *tokens* for a request; return False if the run has too little left."""
        if self.seconds_left <= 0 or self._used + self._reserved + tokens > self._tokens:
            return False
        self._reserved += tokens
        return True

    def settle(self, reserved: int, used: int) -> None:
        """Replace a reservation by a request's actual usage."""
        self._reserved -= reserved
        self._used += used


if TYPE_CHECKING:
    from openai import AsyncOpenAI


class _Silent(Exception):  # noqa: N818 - an outcome
    """The endpoint did not answer. The message is a status or the name of an error."""


class _Exhausted(Exception):  # noqa: N818 - an outcome
    """The run's budget is too small for another request."""


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
class _Pending:
    """A criterion to be judged by the model."""

    number: int
    criterion: JSONMapping
    passages: list[int]
    was_silent: bool = False


class LanguageModel:
    """
    Judges by calling an endpoint, one request per criterion, a few concurrently.

    Rules judge criteria that request rules, do not apply, only compare facts, or have no matching passage.
    """

    kind = "model"
    batch = 1
    prompt_hash: str | None = PROMPT_HASH

    def __init__(self, endpoint: Endpoint, spent: Usage) -> None:
        self.model: str | None = endpoint.name
        self._endpoint = endpoint
        self._budget = Budget(endpoint.run_tokens, endpoint.run_seconds, spent)
        self._rules = Rules()
        self._form = 0
        self._silent_in_a_row = 0
        self._has_answered = False

    @property
    def spent(self) -> Usage:
        return self._budget.spent

    def judge(self, criteria: Sequence[JSONMapping], scale: tuple[float, float], inputs: Inputs) -> Judging:
        """Judge criteria as answers arrive; raise ModelUnavailable if the endpoint rejects the settings or is down."""
        waiting: deque[_Pending] = deque()
        for number, criterion in enumerate(criteria):
            passages = []
            if not _is_for_rules(criterion, inputs):
                passages = self._passages(criterion, scale, inputs)
            if passages:
                waiting.append(_Pending(number, criterion, passages))
            else:
                yield Judged(number, self._rules.judge_one(criterion, scale, inputs), "rules")
        if waiting:
            with closing(self._ask_all(waiting, scale, inputs)) as answers:
                yield from answers

    def _passages(self, criterion: JSONMapping, scale: tuple[float, float], inputs: Inputs) -> list[int]:
        """Return the chunks for the prompt: all chunks if they fit, otherwise the best matches first."""
        sources = (criterion.get("evidence") or {}).get("sources") or SOURCES
        by_rules = self._rules.judge_one(criterion, scale, inputs)
        candidates = []
        for support in by_rules.supports:
            candidates += [cited.chunk for cited in support.cited]
        chunks = inputs.of(sources)
        if sum(len(shown_text(inputs, chunk)) for chunk in chunks) > MAX_EVIDENCE:
            text = f"{criterion['title']} {criterion['requirement']}"
            candidates += self._rules.full_text(inputs).nearest(text, sources)
        # Word matching finds little in other languages: the remaining chunks follow in order.
        candidates += chunks
        chosen: list[int] = []
        room = MAX_EVIDENCE
        for chunk in dict.fromkeys(candidates):
            room -= len(shown_text(inputs, chunk))
            if room < 0:
                break
            chosen.append(chunk)
        return sorted(chosen)

    def _ask_all(self, waiting: deque[_Pending], scale: tuple[float, float], inputs: Inputs) -> Judging:
        # The loop runs only while waiting for answers, so that the caller can use the database in between.
        with asyncio.Runner() as runner:
            client = _client(self._endpoint)
            running: dict[asyncio.Task[Judgement], _Pending] = {}
            try:
                while waiting or running:
                    while waiting and len(running) < self._endpoint.parallel:
                        asked = waiting.popleft()
                        running[runner.get_loop().create_task(self._ask(client, asked, scale, inputs))] = asked
                    done, _ = runner.run(_first_of(running))
                    # Completed answers first: they are paid for, and an outage would discard them.
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
        self, task: asyncio.Task[Judgement], asked: _Pending, scale: tuple[float, float], inputs: Inputs
    ) -> Judged | None:
        """Return the result of a criterion; None to retry it after the others."""
        try:
            judgement = task.result()
        except _Silent as error:
            self._silent_in_a_row += 1
            log.warning("language model did not answer: %s", error)
            again = not asked.was_silent
            if self._silent_in_a_row >= _MAX_SILENT or not (again or self._has_answered):
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
            log.warning("language model gave an unusable answer: %s", error.why)
            note = UNUSABLE
        else:
            self._silent_in_a_row = 0
            self._has_answered = True
            return Judged(asked.number, judgement, "model")
        return Judged(asked.number, self._rules.judge_one(asked.criterion, scale, inputs), "rules", note)

    async def _ask(
        self, client: "AsyncOpenAI", asked: _Pending, scale: tuple[float, float], inputs: Inputs
    ) -> Judgement:
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
                    {"role": "assistant", "content": text[:_MAX_REPEATED]},
                    {"role": "user", "content": f"{fault} Answer again in the required form."},
                ]

    async def _complete(self, client: "AsyncOpenAI", conversation: list[Any]) -> str:
        """Return the text of one answer, or raise _Exhausted, _Silent or Unusable."""
        sent = sum(estimated_tokens(message["content"]) for message in conversation)
        reserved = sent + _MAX_ANSWER
        if not self._budget.reserve(reserved):
            raise _Exhausted
        used = sent  # what counts without an answer
        try:
            completion = await self._completion(client, conversation)
            choice = completion.choices[0] if completion.choices else _Choice(_Message())
            text = choice.message.content
            reported = completion.usage.total_tokens if completion.usage else None
            if reported and reported > 0:
                used = reported
            else:
                used = sent + estimated_tokens(text or "")
            if not text or choice.finish_reason in _ENDINGS:
                raise Unusable("The answer is incomplete.", _ENDINGS.get(choice.finish_reason or "", "it is empty"))
            return text
        finally:
            self._budget.settle(reserved, used)

    async def _completion(self, client: "AsyncOpenAI", conversation: list[Any]) -> _Completion:
        import openai

        form = self._form
        while True:
            try:
                # Twice the time of one request: the client retries by itself, and a response that trickles in
                # never triggers the client's own timeout.
                async with asyncio.timeout(max(0, min(self._budget.seconds_left, 2 * self._endpoint.timeout_s))):
                    answer = await client.chat.completions.with_raw_response.create(
                        model=self._endpoint.name, messages=conversation, **_FORMS[form]
                    )
                completion = msgspec.json.decode(answer.http_response.content, type=_Completion)
            except TimeoutError:
                if self._budget.seconds_left <= 0:
                    raise _Exhausted from None
                raise _Silent("timeout") from None
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                if form + 1 < len(_FORMS):
                    form += 1
                    continue
                raise Unusable("The request was rejected.", f"status {error.status_code}") from None
            except (openai.AuthenticationError, openai.PermissionDeniedError, openai.NotFoundError) as error:
                # The response may repeat the key: report only the status.
                raise ModelUnavailable(
                    f"The language model rejects this registry's requests with status {error.status_code}.",
                    for_good=True,
                ) from None
            except openai.APIStatusError as error:
                raise _Silent(f"status {error.status_code}") from None
            except openai.OpenAIError as error:
                raise _Silent(type(error).__name__) from None
            except (msgspec.DecodeError, RecursionError):
                raise Unusable("There is no answer.", "it does not follow the chat-completions protocol") from None
            self._form = max(self._form, form)
            return completion


def _is_for_rules(criterion: JSONMapping, inputs: Inputs) -> bool:
    condition = criterion.get("appliesIf")
    if condition is not None and not holds(condition, inputs)[0]:
        return True
    evaluator = criterion.get("evaluator", "auto")
    if evaluator != "auto":
        return bool(evaluator == "rules")
    checks = criterion.get("checks") or ()
    return bool(checks) and all(check["op"] not in PHRASES for check in checks)


async def _first_of(running: Mapping[asyncio.Task[Judgement], _Pending]) -> tuple[set[asyncio.Task[Judgement]], Any]:
    return await asyncio.wait(running, timeout=_TICK_S, return_when=asyncio.FIRST_COMPLETED)


async def _closed(client: "AsyncOpenAI", running: Mapping[asyncio.Task[Judgement], _Pending]) -> None:
    await asyncio.gather(*running, return_exceptions=True)
    await client.close()


def _client(endpoint: Endpoint) -> "AsyncOpenAI":
    try:
        import openai
    except ImportError:
        raise ModelUnavailable("The extra language-model is not installed.", for_good=True) from None
    client = openai.AsyncOpenAI(
        base_url=endpoint.url,
        api_key=endpoint.key or "none",  # with an empty key the library would read the environment
        timeout=endpoint.timeout_s,
        max_retries=2,
        http_client=openai.DefaultAsyncHttpxClient(follow_redirects=False),  # a redirect would leak the texts
    )
    client.organization = client.project = None  # the library reads them from the environment
    return client
