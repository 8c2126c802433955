"""What a judge's model shows, found out with a few requests of a few tokens each; nothing is taken from its name."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from isograde.backends.base import Backend, Reply
from isograde.backends.chat import ChatBackend
from isograde.backends.learning import MORE_LOGPROBS, first_listed, same_values
from isograde.backends.rejections import Parameters
from isograde.backends.systemone import SystemOneBackend, read_decision
from isograde.backends.wire import WAYS_OUT
from isograde.errors import NoLogprobsError, UserError
from isograde.logprobs import answer_position, read_response
from isograde.prompt import Prompt
from isograde.records import GradeFailure, LevelDistribution

__all__ = ["Finding", "examined"]

_PATIENCE_S = 30.0  # with a server that says too fast: somebody looks on
_GOOD_MASS = 0.9
_WHOLE = 1e-3  # what may be missing to 1 where everything is listed
_FEW_IDS = [10, 11, 12]  # any tokens: whether they are listed is what tells
_SPREAD = [{"role": "user", "content": "Name any animal, in one word."}]  # many answers are likely, so that scaling shows


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was found out.

    Attributes
    ----------
    name : str
        What was looked at.
    value : object
        What was found, as JSON has it.
    said : str
        The same for people.
    verdict : {"fine", "note", "problem"}
        A problem keeps the judge from grading.
    advice : str or None
        What to do about it.
    """

    name: str
    value: Any
    said: str
    verdict: Literal["fine", "note", "problem"] = "fine"
    advice: str | None = None


async def examined(backend: Backend, prompt: Prompt, labels: tuple[str, ...], *, min_mass: float = 0.5) -> list[Finding]:
    """Examine a backend about one example item.

    Parameters
    ----------
    backend : Backend
    prompt : Prompt
        A rubric's question about an example.
    labels : tuple of str
        The levels' labels.
    min_mass : float
        Observed mass below which items would fail.

    Returns
    -------
    list of Finding

    Raises
    ------
    ServerError
        If nothing answers, or the key or the model is refused.
    """
    if isinstance(backend, SystemOneBackend):
        with backend.wire.waiting_at_most(_PATIENCE_S):
            return await _decisions(backend, prompt, labels)
    if isinstance(backend, ChatBackend):
        with backend.wire.waiting_at_most(_PATIENCE_S):
            return await _Chat(backend, prompt, labels, min_mass).findings()
    return await _in_process(backend, prompt, labels, min_mass)


def _read(body: Any, labels: tuple[str, ...]) -> LevelDistribution | GradeFailure:
    """Read an answer, whatever its mass."""
    return read_response(body, labels, min_mass=0.0)


def _no_answer(failure: GradeFailure) -> Finding:
    """Say what to do about a server that gives no answer."""
    said, advice = failure.message, "try again later"
    if failure.status == "timeout":
        advice = "a larger --timeout gives it more time; is the server busy, or still loading the model?"
    elif "sent no JSON" in said:
        advice = "is the address right up to /v1?"
    elif said.startswith("HTTP 5"):
        advice = "the server is failing: look at its log"
    return Finding(name="answer", value=failure.status, said=said, verdict="problem", advice=advice)


def _of_distribution(seen: LevelDistribution, n_listed: int | None, asked: int | None, min_mass: float) -> list[Finding]:
    """Judge labels, mass and bounds."""
    found = []
    if n_listed is not None:
        said = f"{n_listed} tokens" + ("" if asked is None else f" of {asked} asked for")
        found.append(Finding(name="listed tokens", value=n_listed, said=said))
    missing = ", ".join(seen.missing_levels)
    found.append(
        Finding(name="labels", value={"missing": list(seen.missing_levels)}, said="each is one token")
        if not missing
        else Finding(
            name="labels",
            value={"missing": list(seen.missing_levels)},
            said=f"not listed: {missing} (unlikely here, or more than one token)",
            verdict="note",
        )
    )
    mass = seen.observed_mass
    little = "the model does not answer with a level at once: try --prefill, --max-tokens, or a more capable model"
    verdict: Literal["fine", "note", "problem"] = "problem" if mass < min_mass else "note" if mass < _GOOD_MASS else "fine"
    found.append(
        Finding(
            name="mass on levels", value=mass, said=f"{mass:.3f}", verdict=verdict, advice=None if verdict == "fine" else little
        )
    )
    low, high = seen.expected_level_bounds
    wide = high - low > 0.1
    found.append(
        Finding(
            name="unseen",
            value={"unseen_mass": seen.unseen_mass, "bounds": [low, high]},
            said=f"{seen.unseen_mass:.2g} of the probability; expected level between {low:.2f} and {high:.2f}",
            verdict="note" if wide else "fine",
            advice="what is not listed may lie on any level; a server that lists more tokens narrows this" if wide else None,
        )
    )
    return found


class _Chat:
    """The examination of a chat completions server."""

    def __init__(self, backend: ChatBackend, prompt: Prompt, labels: tuple[str, ...], min_mass: float) -> None:
        self._backend, self._prompt, self._labels, self._min_mass = backend, prompt, labels, min_mass
        self._first = backend.form("answer_token")

    async def findings(self) -> list[Finding]:
        """Ask once as a run would, then in the forms that show more."""
        try:
            answer = await self._backend.ask(self._prompt, self._labels)
        except NoLogprobsError as error:
            return [Finding(name="logprobs", value=False, said="refused", verdict="problem", advice=str(error))]
        if isinstance(answer, GradeFailure):
            return [_no_answer(answer)]
        form = self._backend.form("answer_token")
        served = _served(answer.body)
        found = [
            Finding(
                name="answer",
                value={"model": served, "latency_s": answer.latency_s},
                said=f"in {answer.latency_s:.2f} s, by {served}",
            )
        ]
        seen = _read(answer.body, self._labels)
        if isinstance(seen, GradeFailure):
            advice = WAYS_OUT if seen.status == "no_logprobs" else "look at the answer with --dry-run's request; try --max-tokens"
            name = "logprobs" if seen.status == "no_logprobs" else "answer token"
            found.append(Finding(name=name, value=False, said=f"none: {seen.message}", verdict="problem", advice=advice))
            return [*found, *self._parameters(form)]
        found.append(Finding(name="logprobs", value=True, said=_shape(answer.body)))
        n_listed, asked = _listed(answer.body, self._labels), form.top_logprobs
        found += _of_distribution(seen, n_listed, asked, self._min_mass)
        found.append(_cut(n_listed, asked, seen))
        found.append(await self._more(form, n_listed))
        found.append(await self._temperature(form))
        found.append(await self._thinking(form, answer))
        found += self._parameters(form)
        found.append(await self._prefilled(form, seen))
        found.append(await self._exact_ids(form))
        return found

    async def _try(self, form: Parameters, **more: Any) -> Any:
        """Send the example in a form; None where it is rejected or fails."""
        reply = await self._backend.tried(form, self._prompt, **more)
        return None if reply is None else reply.body

    async def _more(self, form: Parameters, n_listed: int) -> Finding:
        """See whether more tokens can be listed."""
        if form.top_logprobs >= MORE_LOGPROBS:
            return Finding(name="most tokens", value=n_listed, said=f"{n_listed}, and this is asked for")
        body = await self._try(replace(form, top_logprobs=MORE_LOGPROBS))
        more = 0 if body is None else _listed(body, self._labels)
        if more > n_listed:
            return Finding(name="most tokens", value=more, said=f"{more} at least, where more are needed")
        return Finding(name="most tokens", value=n_listed, said=f"{n_listed}" + (" (more are rejected)" if body is None else ""))

    async def _temperature(self, form: Parameters) -> Finding:
        """See whether logprobs change with temperature, on a question with many answers."""
        short = replace(form, greedy=False, prefill=False)
        bodies = {t: await self._try(short, messages=_SPREAD, temperature=t) for t in (1, 0.5)}
        if None in bodies.values():
            return Finding(name="temperature", value=None, said="cannot be set", verdict="note")
        one, half = first_listed(bodies[1]), first_listed(bodies[0.5])
        if same_values(bodies[1], bodies[0.5]):
            return Finding(name="temperature", value="raw", said="logprobs do not change with it (raw)")
        if _squared(one, half):
            return Finding(name="temperature", value="scaled", said="logprobs are scaled by it; 1 is asked for")
        said = "not clear whether logprobs are scaled by it; 1 is asked for"
        return Finding(name="temperature", value=None, said=said, verdict="note")

    async def _thinking(self, form: Parameters, answer: Reply) -> Finding:
        """See whether the model thinks before it answers, and whether that was switched off."""
        before = answer_position(answer.body)
        if _thinks(answer.body):
            said = f"comes first ({before} tokens) and cannot be switched off; {form.room('answer_token')} tokens are allowed"
            advice = "thinking costs tokens and time for each row; switch it off at the server where you can"
            return Finding(name="thinking", value="always", said=said, verdict="note", advice=advice)
        if before:
            return Finding(name="thinking", value="none", said=f"none, but {before} other token(s) come before the answer")
        for name in ("chat_template_kwargs", "reasoning_effort"):
            if name in form.extra:
                body = await self._try(replace(form, max_tokens=8, extra={k: v for k, v in form.extra.items() if k != name}))
                if body is not None and _thinks(body):
                    return Finding(name="thinking", value="switched off", said=f"is switched off (by {name})")
        return Finding(name="thinking", value="none", said="none: the level is the first token")

    def _parameters(self, form: Parameters) -> list[Finding]:
        """Say what the server took and what it rejected."""
        dropped = sorted(set(self._first.extra) - set(form.extra))
        changed = [f"{name} is not taken" for name in dropped]
        if form.token_limit != self._first.token_limit:
            changed.append(f"{form.token_limit} in place of {self._first.token_limit}")
        if form.top_logprobs < self._first.top_logprobs:
            changed.append(f"top_logprobs up to {form.top_logprobs}")
        changed += [f"{name} = {value!r} is needed" for name, value in form.extra.items() if name not in self._first.extra]
        role = "is taken" if form.system_role else "is rejected: the rubric opens the user's message"
        sent = {"token_limit": form.token_limit, "max_tokens": form.room("answer_token"), "top_logprobs": form.top_logprobs}
        sent |= {"temperature": 0} if form.greedy and "temperature" in form.extra else {}
        return [
            Finding(name="system message", value=form.system_role, said=role),
            Finding(name="parameters", value={**form.extra, **sent}, said="; ".join(changed) or "all are taken"),
        ]

    async def _prefilled(self, form: Parameters, seen: LevelDistribution) -> Finding:
        """See whether the assistant's turn can be opened."""
        body = await self._try(replace(form, prefill=not form.prefill))
        other = None if body is None else _read(body, self._labels)
        if not isinstance(other, LevelDistribution):
            return Finding(
                name="prefill", value=form.prefill, said="is taken" if form.prefill else "is rejected, or gives no level"
            )
        with_it, without = (seen, other) if form.prefill else (other, seen)
        better = with_it.observed_mass > without.observed_mass + 0.05
        said = f"is taken: mass {with_it.observed_mass:.3f} with it, {without.observed_mass:.3f} without"
        advice = "--prefill puts more of the probability on the levels" if better and not form.prefill else None
        return Finding(name="prefill", value=True, said=said, verdict="note" if advice else "fine", advice=advice)

    async def _exact_ids(self, form: Parameters) -> Finding:
        """See whether the tokens to list can be named by their ids."""
        body = await self._try(replace(form, top_logprobs=1), logprob_token_ids=_FEW_IDS)
        taken = body is not None and len(first_listed(body)) >= len(_FEW_IDS)
        return Finding(
            name="exact token ids", value=taken, said="can be asked for (logprob_token_ids)" if taken else "cannot be asked for"
        )


def _served(body: Any) -> str | None:
    """Name the model that says it has answered; of a file, which llama.cpp says, its name."""
    served = body.get("model") if isinstance(body, Mapping) else None
    return None if served is None else str(served).rpartition("/")[2] if str(served).startswith("/") else str(served)


def _shape(body: Any) -> str:
    """Name the shape of the logprobs."""
    logprobs = body["choices"][0]["logprobs"]
    if logprobs.get("content") is None:
        return "in the shape of legacy completions"
    first = logprobs["content"][0]
    beside = [name for name in ("bytes", "id") if first.get(name) is not None]
    return "in OpenAI's shape" + (f", with {' and '.join(beside)}" if beside else "")


def _listed(body: Any, labels: tuple[str, ...]) -> int:
    """Count the tokens with a value at the answer's position."""
    del labels
    at = answer_position(body) or 0
    try:
        listed = body["choices"][0]["logprobs"]["content"][at]["top_logprobs"]
        return sum(1 for token in listed if token["logprob"] is not None and token["logprob"] > -9999)
    except (KeyError, IndexError, TypeError):
        return 0


def _cut(n_listed: int, asked: int, seen: LevelDistribution) -> Finding:
    """See whether a sampler has cut the distribution: fewer tokens than asked for, and nothing is missing."""
    if n_listed < asked and seen.unseen_mass < _WHOLE:
        said = f"is cut: {n_listed} tokens hold everything"
        advice = "a top_p, top_k or min_p at the server, or speculative decoding, cuts off what is less likely; switch it off"
        return Finding(name="distribution", value="cut", said=said, verdict="note", advice=advice)
    return Finding(name="distribution", value="whole", said="is whole")


def _squared(one: dict[str, float], half: dict[str, float]) -> bool:
    """Tell whether the second list is the first at temperature 0.5: differences of logprobs twice as large."""
    common = sorted(set(one) & set(half), key=lambda token: -one[token])[:5]
    if len(common) < 2:
        return False
    first, *others = common
    return all(
        math.isclose(half[first] - half[token], 2 * (one[first] - one[token]), rel_tol=0.1, abs_tol=0.2) for token in others
    )


def _thinks(body: Any) -> bool:
    """Tell whether an answer begins with thinking, among the content or apart from it."""
    try:
        message = body["choices"][0]["message"]
        apart = any(message.get(name) for name in ("reasoning", "reasoning_content"))
        said = "".join(position["token"] for position in (body["choices"][0].get("logprobs") or {}).get("content") or [])
        return bool(apart or (said or message.get("content") or "").lstrip().startswith("<think"))
    except (KeyError, IndexError, TypeError, AttributeError):
        return False


async def _in_process(backend: Backend, prompt: Prompt, labels: tuple[str, ...], min_mass: float) -> list[Finding]:
    """Examine the embedded model."""
    try:
        answer = await backend.ask(prompt, labels)
    except UserError as error:
        return [
            Finding(name="labels", value=False, said=str(error), verdict="problem", advice="use another model or other labels")
        ]
    if isinstance(answer, GradeFailure):
        return [Finding(name="answer", value=answer.status, said=answer.message, verdict="problem")]
    seen = _read(answer.body, labels)
    if isinstance(seen, GradeFailure):
        return [Finding(name="logprobs", value=False, said=seen.message, verdict="problem")]
    request = backend.request(prompt, labels)
    caveat = None if prompt.asked is None else backend.caveat(prompt.asked)
    adapter = None if prompt.asked is None else backend.adapter(prompt.asked)
    return [
        Finding(name="answer", value={"latency_s": answer.latency_s}, said=f"in {answer.latency_s:.2f} s, in process"),
        Finding(
            name="adapter",
            value=adapter,
            said="none" if adapter is None else f"{adapter}, trained for this rubric",
            verdict="note" if caveat else "fine",
            advice=caveat,
        ),
        Finding(name="logprobs", value=True, said="of the whole vocabulary where needed"),
        *_of_distribution(seen, _listed(answer.body, labels), int(request["n_probs"]), min_mass),
        Finding(name="temperature", value="raw", said="logprobs do not change with it (raw)"),
        Finding(name="thinking", value="none", said="none: the turn is opened with «Level: »"),
        Finding(name="content", value="token ids", said="is sent as token ids: nothing in it becomes a special token"),
    ]


async def _decisions(backend: SystemOneBackend, prompt: Prompt, labels: tuple[str, ...]) -> list[Finding]:
    """Examine a decision model's server."""
    answer = await backend.ask(prompt, labels)
    if isinstance(answer, GradeFailure):
        return [_no_answer(answer)]
    body = answer.body
    served = _served(body)
    found = [
        Finding(
            name="answer",
            value={"model": served, "latency_s": answer.latency_s},
            said=f"in {answer.latency_s:.2f} s, by {served}",
        )
    ]
    seen = read_decision(body, labels)
    if isinstance(seen, GradeFailure):
        said = seen.message
        tester = f"jevcompat test {(backend.server or '').removesuffix('/v1')}"
        advice = f"{tester} names each rule that the server breaks; jevcompat proxy mends some of them"
        return [*found, Finding(name="distribution", value=False, said=said, verdict="problem", advice=advice)]
    own = body["answers"]["level"]
    found.append(
        Finding(name="distribution", value=list(seen.probabilities), said="a probability for each level, adding up to 1")
    )
    score = own.get("score")
    if isinstance(score, int | float) and abs(score - seen.expected_level) > 0.05:
        said = f"its score is {score:.3g}, its probabilities give {seen.expected_level:.3g}; the probabilities are taken"
        found.append(Finding(name="score", value=score, said=said, verdict="note"))
    again = await backend.ask(prompt, labels)
    other = read_decision(again.body, labels) if isinstance(again, Reply) else again
    if isinstance(other, LevelDistribution):
        apart = abs(other.expected_level - seen.expected_level)
        said = "the same answer twice" if apart < 1e-6 else f"two answers to one question are {apart:.2g} levels apart"
        found.append(Finding(name="repeat", value=apart, said=said, verdict="note" if apart > 0.05 else "fine"))
    counted = answer.usage is not None and answer.usage.input_tokens is not None
    found.append(Finding(name="usage", value=counted, said="tokens are counted" if counted else "tokens are not counted"))
    found.append(Finding(name="content", value="fields", said="is sent in fields of its own, apart from the question"))
    return found
