"""The judge: one item, many items, streams."""

from __future__ import annotations

import sys
import warnings
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from isograde.applied import Calibration
from isograde.asked import Asked, Trust, truncation
from isograde.backends import Backend
from isograde.backends.loop import run
from isograde.datasets import Row, read_rows
from isograde.errors import CaveatWarning, UserError
from isograde.flow import bounded
from isograde.methods import Seen, certain_lowest, way_of
from isograde.prompt import InvalidItemError, is_blank
from isograde.records import Grade, GradeFailure, Item, Method, verdict
from isograde.rubric import Rubric, load_rubric
from isograde.store import Store

if TYPE_CHECKING:
    import openai

    from isograde.calibration import Calibrator

__all__ = ["Judge", "graded", "grades"]

_SERVER_OPTIONS = {"top_logprobs", "max_tokens", "prefill", "timeout", "max_retries"}


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
    method : {"answer_token", "sampling", "reasoning_first"} or None
        How the model is read: from the logprobs of one answer token; by counting sampled answers, where a server shows no
        logprobs; or from the answer token after a reasoning. None is the backend's own way. Written on every grade, and
        calibrated apart.
    samples : int or None
        Answers an item: 10 for sampling, 1 for reasoning first unless given.
    store : Store, str, pathlib.Path or None
        Where answers are kept as they arrive: what is on file is not asked again. None keeps nothing.
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
        method: str | None = None,
        samples: int | None = None,
        store: Store | str | Path | None = None,
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
        self.way = way_of(method, samples, backend.methods, prefill=bool(options.get("prefill")))
        self.concurrency = backend.concurrency if concurrency is None else concurrency
        if not isinstance(self.concurrency, int) or self.concurrency < 1:
            raise UserError(f"concurrency must be a whole number of at least 1, is {self.concurrency!r}")
        if not (isinstance(min_mass, int | float) and 0 <= min_mass <= 1):
            raise UserError(f"min_mass must be a number from 0 to 1, is {min_mass!r}")
        self._trust = Trust(decides=self.way.method == "decision_model")
        self.calibration = None if calibrator is None else Calibration(calibrator, self.rubric)
        self.store = Store(store) if isinstance(store, str | Path) else store
        self._owns_store = self.store is not store
        if self.store is not None and hasattr(backend, "remember_in"):
            backend.remember_in(self.store)

    @property
    def proven(self) -> bool:
        """Whether the model has given one distribution; until then it is asked one item at a time."""
        return self._trust.proven

    def with_rubric(self, rubric: str | Path | Rubric) -> Judge:
        """Give a judge of another rubric on the same backend; a calibrator stays behind with its own rubric."""
        shared: dict[str, Any] = {"backend": self.backend, "store": self.store}
        other = Judge(rubric=rubric, concurrency=self.concurrency, min_mass=self.min_mass, **shared)
        other._trust, other.way = self._trust, self.way
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
        if self.store is not None and self._owns_store:
            self.store.close()

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
        if self._by_rule(item):
            if self.rubric.blank_output == "fail":
                return GradeFailure(
                    status="blank_output", message=f"the output is blank, and {self.rubric.name} fails it", **about
                )
            return self._built(certain_lowest(self.rubric), method="blank_output", **about)
        several = len(item.references) if "expected" in self.rubric.fields else 1
        asked = self._asked()
        best: Grade | None = None
        for reference in range(max(1, several)):
            grade = await self._ask(asked, item, reference, about)
            if isinstance(grade, GradeFailure):
                return (
                    grade if several <= 1 else replace(grade, message=f"reference {reference + 1} of {several}: {grade.message}")
                )
            if several > 1:
                grade = replace(grade, reference_index=reference)
            if best is None or _rank(grade) > _rank(best):
                best = grade
        assert best is not None  # noqa: S101 - the loop runs at least once
        return replace(best, question_fingerprint=asked.fingerprint, stored=asked.n_new == 0)

    def question_fingerprint(self, item: Item) -> str | None:
        """Tell what the grade of an item would say as its own ``question_fingerprint``, without asking."""
        if self._by_rule(item):
            return None
        asked = self._asked()
        try:
            for reference in range(max(1, len(item.references) if "expected" in self.rubric.fields else 1)):
                asked.about(self.way.prompt(self.rubric, item, reference), self.rubric.labels)
        except InvalidItemError:
            return None
        return asked.fingerprint

    def _by_rule(self, item: Item) -> bool:
        """Tell whether the rubric's rule for blank outputs decides."""
        blank = "output" in self.rubric.fields and item.output is not None and is_blank(item.output)
        return blank and self.rubric.blank_output != "ask"

    def _asked(self) -> Asked:
        """Begin to ask about one item."""
        return Asked(self.backend, self.store, adapter=self.backend.adapter(self.rubric))

    async def _ask(self, asked: Asked, item: Item, reference: int, about: dict[str, Any]) -> Grade | GradeFailure:
        """Ask about one item against one reference."""
        try:
            prompt = self.way.prompt(self.rubric, item, reference)
        except InvalidItemError as error:
            return GradeFailure(status="invalid_item", message=str(error), **about)
        self._trust.check()
        if caveat := self.backend.caveat(self.rubric):
            _warn_once(caveat)
        before = asked.n_new
        seen = await self.way.seen(asked, prompt, self.rubric.labels, min_mass=self.min_mass)
        if isinstance(seen, Seen):
            seen = truncation(prompt, seen.usage) or seen
        if isinstance(seen, GradeFailure):
            if asked.n_new > before:
                self._trust.failed(seen)
            return replace(seen, **about)
        if asked.n_new > before:
            self._trust.proven = True
            await asked.keep()
        return self._built(seen, method=self.way.method, shape=asked.shape, **about)

    def _built(self, seen: Seen, *, method: Method, shape: str | None = None, **about: Any) -> Grade:
        """Write the grade with all that it was made from."""
        grade = Grade(
            **verdict(seen.distribution, self.rubric),
            **about,
            distribution=seen.distribution,
            rubric_fingerprint=self.rubric.fingerprint,
            prompt_fingerprint=self.way.fingerprint(shape or self.backend.prompt_fingerprint),
            model=self.backend.model,
            adapter=self.backend.adapter(self.rubric),
            caveat=None if method == "blank_output" else self.backend.caveat(self.rubric),
            server=self.backend.server,
            method=method,
            samples=seen.samples,
            usage=seen.usage,
            latency_s=seen.latency_s,
        )
        return grade if self.calibration is None else self.calibration.applied(grade)


def grades(
    rows: Iterable[Row], judges: Sequence[Judge], *, ordered: bool, stopped: Callable[[], bool] = lambda: False
) -> AsyncGenerator[tuple[Row, Grade | GradeFailure], None]:
    """Grade every row by every judge; the judges share one backend (:meth:`Judge.with_rubric`).

    Parameters
    ----------
    rows : iterable of Row
    judges : sequence of Judge
    ordered : bool
    stopped : callable
        Once it says True, nothing further is begun; what is under way is waited for.

    Yields
    ------
    tuple of Row and Grade or GradeFailure
        With ``ordered`` row by row, each by the judges in their order; else as they are finished.
    """
    return graded(((judge, row) for row in rows for judge in judges), judges, ordered=ordered, stopped=stopped)


def graded(
    tasks: Iterable[tuple[Judge, Row]], judges: Sequence[Judge], *, ordered: bool, stopped: Callable[[], bool] = lambda: False
) -> AsyncGenerator[tuple[Row, Grade | GradeFailure], None]:
    """Grade each of some rows by the judge that stands beside it; as :func:`grades`."""

    async def work(task: tuple[Judge, Row]) -> tuple[Row, Grade | GradeFailure]:
        judge, row = task
        return row, await judge.grade(row.item, index=row.index)

    return bounded(
        tasks,
        work,
        concurrency=judges[0].concurrency,
        ordered=ordered,
        ready=lambda: judges[0].proven,
        stopped=stopped,
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
