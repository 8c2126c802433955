"""The judge: one item, many items, streams."""

from __future__ import annotations

import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from isograde.applied import Calibration
from isograde.backends import Backend, Reply
from isograde.backends.loop import run
from isograde.datasets import Row, read_rows
from isograde.errors import CaveatWarning, NoLogprobsError, ServerError, UserError
from isograde.flow import bounded
from isograde.logprobs import read_response
from isograde.prompt import InvalidItemError, is_blank, render
from isograde.records import Grade, GradeFailure, Item, LevelDistribution, Method, verdict
from isograde.rubric import Rubric, load_rubric

if TYPE_CHECKING:
    import openai

    from isograde.calibration import Calibrator

__all__ = ["Judge", "grades"]

_SERVER_OPTIONS = {"top_logprobs", "max_tokens", "prefill", "timeout", "max_retries"}
_HOPELESS = 5  # failures in a row, without any answer before, after which the server is given up


class Judge:
    """Ask a model one rubric question and read a probability per level.

    Parameters
    ----------
    model : str or None
        Name of the model at a server, or path of a GGUF file for the embedded llama.cpp. None is the embedded default model.
    rubric : str, pathlib.Path or Rubric
        A shipped rubric's name, a file, or a rubric.
    base_url : str or None
        Address of an OpenAI-compatible server, up to ``/v1``.
    api_key : str or None
        Its key. None takes ``OPENAI_API_KEY`` where ``base_url`` is None, and sends none elsewhere.
    client : openai.AsyncOpenAI or None
        A client of one's own, in place of address and key.
    backend : Backend or None
        Another wire, in place of all of these.
    concurrency : int or None
        Requests that are under way at once; None is the backend's choice.
    min_mass : float
        Observed mass below which an item fails.
    calibrator : Calibrator, str, pathlib.Path or None
        A fitted calibrator or its JSON file; every grade then carries ``calibrated`` beside the raw values. It must have been
        fitted on this very judge. None is applied unasked.
    top_logprobs, max_tokens, prefill, timeout, max_retries
        See :class:`isograde.backends.chat.ChatBackend`; for servers only.

    Raises
    ------
    UserError
        If the rubric, the model or the combination is none.

    Examples
    --------
    >>> judge = Judge(model="gpt-4.1-mini", api_key="sk-…")  # nothing is sent yet
    >>> judge.rubric.name
    'answer_correctness'
    >>> judge.score(input="2 + 2?", output=" ", expected="4").level  # nothing to ask: the rubric gives a blank output level 0
    0
    """

    def __init__(
        self,
        model: str | Path | None = None,
        *,
        rubric: str | Path | Rubric = "answer_correctness",
        base_url: str | None = None,
        api_key: str | None = None,
        client: openai.AsyncOpenAI | None = None,
        backend: Backend | None = None,
        concurrency: int | None = None,
        min_mass: float = 0.5,
        calibrator: Calibrator | str | Path | None = None,
        **options: Any,
    ) -> None:
        self.rubric = load_rubric(rubric)
        self.min_mass = min_mass
        if backend is None:
            backend = _backend(model, base_url=base_url, api_key=api_key, client=client, **options)
        elif options or any(given is not None for given in (model, base_url, api_key, client)):
            raise UserError(
                "backend stands in place of model, base_url, api_key, client and their options; give one or the other"
            )
        self.backend = backend
        self.concurrency = backend.concurrency if concurrency is None else concurrency
        if self.concurrency < 1:
            raise UserError(f"concurrency must be at least 1, is {self.concurrency}")
        self._trust = _Trust()
        self._calibration = None if calibrator is None else Calibration(calibrator, self.rubric)

    @property
    def proven(self) -> bool:
        """Whether the model has given one distribution; until then it is asked one item at a time."""
        return self._trust.proven

    def with_rubric(self, rubric: str | Path | Rubric) -> Judge:
        """Give a judge of another rubric on the same backend; a calibrator stays behind with its own rubric."""
        other = Judge(rubric=rubric, backend=self.backend, concurrency=self.concurrency, min_mass=self.min_mass)
        other._trust = self._trust
        return other

    def score(self, item: Item | Mapping[str, Any] | None = None, /, **fields: Any) -> Grade | GradeFailure:
        """Grade one item.

        Parameters
        ----------
        item : Item or mapping, optional
            The item, or
        **fields
            its fields, by isograde's names or a neighbour's: ``input``, ``output``, ``expected``, ``context`` …

        Returns
        -------
        Grade or GradeFailure

        Raises
        ------
        DataError
            If a field is none that can be read.
        ServerError
            If the model cannot be used.
        """
        return run(self.ascore(item, **fields))

    async def ascore(self, item: Item | Mapping[str, Any] | None = None, /, **fields: Any) -> Grade | GradeFailure:
        """Grade one item; the same as :meth:`score`, to be awaited."""
        if item is not None and fields:
            raise UserError("give an item or fields, not both")
        row = next(iter(read_rows([fields if item is None else item])))
        if unknown := sorted(set(row.item.metadata) & set(fields) - set(self.rubric.fields)):
            raise UserError(
                f"no field is named {', '.join(map(repr, unknown))}; the rubric needs {', '.join(self.rubric.fields)}"
            )
        return await self.grade(row.item)

    def score_batch(self, items: Any, *, columns: Mapping[str, Any] | None = None) -> list[Grade | GradeFailure]:
        """Grade many items.

        Parameters
        ----------
        items : iterable of Item or mapping, DataFrame, Dataset, or path
            What :func:`isograde.datasets.read_rows` reads.
        columns : mapping, optional
            Field to column: a name, a dotted path or a callable.

        Returns
        -------
        list of Grade or GradeFailure
            In the order of the items.
        """

        async def collect() -> list[Grade | GradeFailure]:
            rows = read_rows(items, columns=columns, labels=self.rubric.labels)
            async with aclosing(grades(rows, [self], ordered=True)) as graded:
                return [grade async for _, grade in graded]

        return run(collect())

    async def stream(self, items: Any, *, columns: Mapping[str, Any] | None = None) -> AsyncIterator[Grade | GradeFailure]:
        """Grade many items and yield each as it is finished, with its ``index``; a bounded number is under way at once.

        Parameters
        ----------
        items, columns
            As for :meth:`score_batch`; a generator is read as the grading goes on.

        Yields
        ------
        Grade or GradeFailure
        """
        rows = read_rows(items, columns=columns, labels=self.rubric.labels)
        async with aclosing(grades(rows, [self], ordered=False)) as graded:
            async for _, grade in graded:
                yield grade

    def close(self) -> None:
        """Release what the backend holds."""
        run(self.backend.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def grade(self, item: Item, *, index: int | None = None) -> Grade | GradeFailure:
        """Grade one item against each of its references and keep the best.

        Parameters
        ----------
        item : Item
        index : int or None
            Its position, kept on the grade.

        Returns
        -------
        Grade or GradeFailure
        """
        about: dict[str, Any] = {"item": item, "index": index, "rubric": self.rubric.name}
        if (
            "output" in self.rubric.fields
            and item.output is not None
            and is_blank(item.output)
            and self.rubric.blank_output != "ask"
        ):
            if self.rubric.blank_output == "fail":
                return GradeFailure(
                    status="blank_output", message=f"the output is blank, and {self.rubric.name} fails it", **about
                )
            return self._built(_certain_lowest(self.rubric), method="blank_output", **about)
        several = len(item.references) if "expected" in self.rubric.fields else 1
        best: Grade | None = None
        for reference in range(max(1, several)):
            grade = await self._ask(item, reference, about)
            if isinstance(grade, GradeFailure):
                return (
                    grade if several <= 1 else replace(grade, message=f"reference {reference + 1} of {several}: {grade.message}")
                )
            if several > 1:
                grade = replace(grade, reference_index=reference)
            if best is None or _rank(grade) > _rank(best):
                best = grade
        assert best is not None  # noqa: S101 - the loop runs at least once
        return best

    async def _ask(self, item: Item, reference: int, about: dict[str, Any]) -> Grade | GradeFailure:
        """Ask about one item against one reference."""
        try:
            prompt = render(self.rubric, item, reference=reference)
        except InvalidItemError as error:
            return GradeFailure(status="invalid_item", message=str(error), **about)
        self._trust.check()
        if caveat := self.backend.caveat(self.rubric):
            _warn_once(caveat)
        reply = await self.backend.ask(prompt, self.rubric.labels)
        seen = reply if isinstance(reply, GradeFailure) else read_response(reply.body, self.rubric.labels, min_mass=self.min_mass)
        if isinstance(seen, GradeFailure):
            self._trust.failed(seen)
            return replace(seen, **about)
        self._trust.proven = True
        return self._built(seen, method="answer_token", reply=reply if isinstance(reply, Reply) else None, **about)

    def _built(self, seen: LevelDistribution, *, method: Method, reply: Reply | None = None, **about: Any) -> Grade:
        """Write the grade with all that it was made from."""
        grade = Grade(
            **verdict(seen, self.rubric),
            **about,
            distribution=seen,
            rubric_fingerprint=self.rubric.fingerprint,
            prompt_fingerprint=self.backend.prompt_fingerprint,
            model=self.backend.model,
            adapter=self.backend.adapter(self.rubric),
            caveat=None if reply is None else self.backend.caveat(self.rubric),
            server=self.backend.server,
            method=method,
            usage=None if reply is None else reply.usage,
            latency_s=None if reply is None else reply.latency_s,
        )
        return grade if self._calibration is None else self._calibration.applied(grade)


def grades(
    rows: Iterable[Row], judges: Sequence[Judge], *, ordered: bool
) -> AsyncGenerator[tuple[Row, Grade | GradeFailure], None]:
    """Grade every row by every judge; the judges share one backend (:meth:`Judge.with_rubric`).

    Yields
    ------
    tuple of Row and Grade or GradeFailure
        With ``ordered`` row by row, each by the judges in their order; else as they are finished.
    """

    async def work(task: tuple[Judge, Row]) -> tuple[Row, Grade | GradeFailure]:
        judge, row = task
        return row, await judge.grade(row.item, index=row.index)

    return bounded(
        ((judge, row) for row in rows for judge in judges),
        work,
        concurrency=judges[0].concurrency,
        ordered=ordered,
        ready=lambda: judges[0].proven,
    )


def _backend(
    model: str | Path | None, *, base_url: str | None, api_key: str | None, client: openai.AsyncOpenAI | None, **options: Any
) -> Backend:
    """Choose the wire that the arguments speak of."""
    if unknown := sorted(set(options) - _SERVER_OPTIONS):
        raise UserError(f"Judge has no argument {', '.join(map(repr, unknown))}")
    if model is not None and not isinstance(model, str | Path):
        raise UserError(f"model must be a name or a path, is {type(model).__name__}")
    if client is None and base_url is None and (model is None or str(model).endswith(".gguf")):
        from isograde.backends.embedded import EmbeddedBackend

        if options or api_key is not None:
            given = ", ".join([*options, *(["api_key"] if api_key is not None else [])])
            raise UserError(f"{given}: only for a model at a server (model and base_url); the embedded one takes none of these")
        return EmbeddedBackend(model, progress=_tell)
    from isograde.backends.chat import ChatBackend

    if model is None:
        raise UserError("model is missing (--model): a server must be told which of its models to ask")
    if client is not None and (base_url is not None or api_key is not None):
        raise UserError("client brings its own address and key; leave out base_url and api_key")
    return ChatBackend(str(model), base_url=base_url, api_key=api_key, client=client, **options)


@lru_cache(maxsize=256)
def _warn_once(caveat: str) -> None:
    """Say what speaks against a judge, once a process."""
    warnings.warn(caveat, CaveatWarning, stacklevel=3)


def _tell(said: str) -> None:
    """Say on standard error that something is fetched, which happens once."""
    sys.stderr.write(f"isograde: {said}\n")


def _rank(grade: Grade) -> float:
    """Order the grades against several references: by expected level, or by credit for a choice."""
    return grade.expected_level if grade.score is None else grade.score


def _certain_lowest(rubric: Rubric) -> LevelDistribution:
    """All mass on level 0, which the rubric gives a blank output."""
    return LevelDistribution(labels=rubric.labels, probabilities=(1.0, *[0.0] * (len(rubric.labels) - 1)), observed_mass=1.0)


class _Trust:
    """What is known of a server: asked one item at a time until it has given one distribution, given up where it never does."""

    def __init__(self) -> None:
        self.proven = False
        self._failures = 0
        self._last: GradeFailure

    def failed(self, failure: GradeFailure) -> None:
        """Stop the run where the server never showed what is needed."""
        if self.proven or failure.status in {"filtered", "too_long", "low_mass"}:
            return
        if failure.status == "no_logprobs":
            raise NoLogprobsError(
                f"the server's first answer shows no usable logprobs ({failure.message}); use a model or a server that shows "
                "them, or the embedded model (no --model)"
            )
        self._failures += 1
        self._last = failure

    def check(self) -> None:
        """Stop before another request where the first ones all failed."""
        if not self.proven and self._failures >= _HOPELESS:
            said = f"the first {self._failures} requests all failed, the last with {self._last.status}: {self._last.message}"
            raise ServerError(said, retryable=True)
