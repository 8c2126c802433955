"""Answer correctness: what RAGAS calls so, with its parts in sight, its edges defined, and the rubric grade beside it."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from isograde.backends.embedded import EmbeddedBackend
from isograde.backends.embeddings import embeddings_of
from isograde.backends.generation import generator_of
from isograde.backends.loop import on_loop, run
from isograde.backends.vectors import Embeddings
from isograde.correctness.asking import Asker
from isograde.correctness.batch import Scores
from isograde.correctness.calibrated import SignalCalibration
from isograde.correctness.claims import CLAIMS_SCHEMA, ClaimMaker, claims_prompt
from isograde.correctness.combine import Settings
from isograde.correctness.counts import RecallOver, checked_weights
from isograde.correctness.results import ClaimVerdicts, Correctness, CorrectnessFailure
from isograde.correctness.scorer import FIELDS, Scorer
from isograde.correctness.similarity import Similarity
from isograde.correctness.verdicts import claim_judge
from isograde.datasets import Row, read_rows
from isograde.errors import UserError
from isograde.flow import bounded
from isograde.judge import Judge
from isograde.prompt import InvalidItemError, render
from isograde.records import Item

if TYPE_CHECKING:
    from isograde.calibration import SignalCalibrator

__all__ = ["AnswerCorrectness"]


class AnswerCorrectness:
    """Measure an answer against a reference by its claims (F-beta) and by similarity, with the rubric grade beside them.

    Parameters
    ----------
    judge : Judge or None
        Whose model makes and judges the claims, and whose own rubric grades the item beside them. None is the embedded judge.
    embeddings : Embeddings, callable or None
        What the similarity is made with: :func:`isograde.backends.embeddings.http_embeddings`, or a function of a list of texts
        that gives as many vectors. None with an embedded judge is the embedded default.
    weights : sequence of two float
        Of F-beta and of similarity; two non-negative numbers, not both 0. They are divided by their sum.
    beta : float
        Over 1 recall weighs more, under 1 precision.
    recall_over : {"reference", "response"} or None
        ``"reference"``: recall = tp_reference ÷ (tp_reference + fn), the share of the reference's claims that the response
        covers, so that ten restatements of one of five facts have precision 10/10 and recall 1/5. ``"response"`` is RAGAS's:
        recall = tp_response ÷ (tp_response + fn). None: ``"reference"`` with logprobs, else ``"response"``.
    verdicts : {"logprobs", "generated"}
        ``"logprobs"``: each claim is asked about by itself, as a rubric of two levels, and has a probability. ``"generated"``:
        all claims are sorted in one call, as RAGAS does it, and the count is checked.
    calibrator : SignalCalibrator, str, pathlib.Path or None
        A fitted calibrator of several signals or its JSON file; every result then carries ``calibrated`` beside the raw values.
        It must have been fitted on signals of this very making. None is applied unasked.

    Raises
    ------
    UserError
        If weights, beta or a choice is none, a similarity weight stands without embeddings, or generated verdicts are asked of a
        model that cannot write.

    Notes
    -----
    Claims are made by one generating call a text; those of a reference once, however many answers are measured against it.
    The embedded model cannot write: there, claims are sentences.

    value = (w₁·F + w₂·similarity) ÷ (w₁ + w₂), F = (1 + β²)·P·R ÷ (β²·P + R), P = tp_response ÷ (tp_response + fp). A claim
    counts from a probability of 0.5 on; ``expected_f_beta`` takes the probabilities as they are.

    Where RAGAS differs: with statements on one side only its factuality is 1, here it is 0; without any it is 1 there and None
    here. An answer that equals its reference is 1 without a call, one that only refuses has F 0 (1 where both refuse).

    References
    ----------
    Es, S., James, J., Espinosa Anke, L., & Schockaert, S. (2024). RAGAs: Automated evaluation of retrieval augmented generation.
    EACL 2024, system demonstrations. doi:10.18653/v1/2024.eacl-demo.16

    Examples
    --------
    >>> metric = AnswerCorrectness(Judge(model="gpt-4.1-mini", api_key="sk-…"), weights=(1.0, 0.0))  # nothing is sent yet
    >>> result = metric.score(user_input="2 + 2?", response="Four.", reference="Four")  # nothing to ask: they are equal
    >>> result.value, result.identical
    (1.0, True)
    """

    def __init__(
        self,
        judge: Judge | None = None,
        embeddings: Embeddings | Callable[[list[str]], Any] | None = None,
        weights: Sequence[float] = (0.75, 0.25),
        beta: float = 1.0,
        recall_over: RecallOver | None = None,
        verdicts: ClaimVerdicts = "logprobs",
        *,
        calibrator: SignalCalibrator | str | Path | None = None,
    ) -> None:
        self.weights, self.beta = checked_weights(weights, beta)
        if verdicts not in ("logprobs", "generated"):
            raise UserError(f"verdicts {verdicts!r}: either 'logprobs' or 'generated'")
        if recall_over not in ("reference", "response", None):
            raise UserError(f"recall_over {recall_over!r}: either 'reference' or 'response'")
        self.verdicts: ClaimVerdicts = verdicts
        self.recall_over: RecallOver = recall_over or ("reference" if verdicts == "logprobs" else "response")
        self.judge = Judge() if judge is None else judge
        generator = generator_of(self.judge.backend)
        if verdicts == "generated" and generator is None:
            raise UserError(
                "generated verdicts need a model that writes, at a server (model, base_url); the embedded one has "
                "verdicts='logprobs'"
            )
        self.embeddings = _embeddings(embeddings, self.judge, self.weights)
        self._owns_embeddings = embeddings is None
        self._calibration = None if calibrator is None else SignalCalibration(calibrator, self.judge.rubric, self)
        asker = None if generator is None else Asker(generator, self.judge.store)
        sorter = asker if verdicts == "generated" else None
        few = self.judge.concurrency < 4  # one after the other, so that a text stays in the prefix cache
        self.concurrency = 1 if few else self.judge.concurrency // 2  # items at once; each has up to two requests under way
        self._scorer = Scorer(
            self.judge,
            claims=ClaimMaker(asker),
            verdicts=sorter or claim_judge(self.judge),
            similarity=None if self.embeddings is None else Similarity(self.embeddings),
            settings=Settings(weights=self.weights, beta=self.beta, recall_over=self.recall_over),
            parallel=not few,
        )

    def score(self, item: Item | Mapping[str, Any] | None = None, /, **fields: Any) -> Correctness | CorrectnessFailure:
        """Score one item.

        Parameters
        ----------
        item : Item or mapping, optional
            The item, or
        **fields
            its fields, by isograde's names or a neighbour's: ``user_input``, ``response``, ``reference`` …

        Returns
        -------
        Correctness or CorrectnessFailure

        Raises
        ------
        DataError
            If a field is none that can be read.
        ServerError
            If the model cannot be used.
        """
        return run(self.ascore(item, **fields))

    async def ascore(self, item: Item | Mapping[str, Any] | None = None, /, **fields: Any) -> Correctness | CorrectnessFailure:
        """Score one item; the same as :meth:`score`, to be awaited."""
        if item is not None and fields:
            raise UserError("give an item or fields, not both")
        row = next(iter(read_rows([fields if item is None else item])))
        if unknown := sorted(set(row.item.metadata) & set(fields)):
            raise UserError(f"no field is named {', '.join(map(repr, unknown))}; answer correctness needs {', '.join(FIELDS)}")
        return await on_loop(self._scored(row.item, None))

    def score_batch(self, items: Any, *, columns: Mapping[str, Any] | None = None) -> Scores:
        """Score many items.

        Parameters
        ----------
        items : iterable of Item or mapping, DataFrame, Dataset, or path
            What :func:`isograde.datasets.read_rows` reads.
        columns : mapping, optional
            Field to column: a name, a dotted path or a callable.

        Returns
        -------
        Scores
            A list in the order of the items, with ``to_pandas()``, ``histogram()`` and ``binary()``.
        """

        async def collect() -> Scores:
            rows = read_rows(items, columns=columns, labels=self.judge.rubric.labels)
            async with aclosing(self.results(rows, ordered=True)) as results:
                return Scores([result async for _, result in results])

        return run(collect())

    async def stream(
        self, items: Any, *, columns: Mapping[str, Any] | None = None
    ) -> AsyncIterator[Correctness | CorrectnessFailure]:
        """Score many items and yield each as it is finished, with its ``index``; a bounded number is under way at once.

        Parameters
        ----------
        items, columns
            As for :meth:`score_batch`; a generator is read as the scoring goes on.

        Yields
        ------
        Correctness or CorrectnessFailure
        """
        rows = read_rows(items, columns=columns, labels=self.judge.rubric.labels)
        async with aclosing(self.results(rows, ordered=False)) as results:
            async for _, result in results:
                yield result

    def results(
        self, rows: Iterable[Row], *, ordered: bool, stopped: Callable[[], bool] = lambda: False
    ) -> AsyncGenerator[tuple[Row, Correctness | CorrectnessFailure], None]:
        """Score every row; with ``ordered`` in their order, else as they are finished; begin none once ``stopped`` says True.

        Yields
        ------
        tuple of Row and Correctness or CorrectnessFailure
        """

        async def work(row: Row) -> tuple[Row, Correctness | CorrectnessFailure]:
            return row, await on_loop(self._scored(row.item, row.index))

        return bounded(
            rows,
            work,
            concurrency=self.concurrency,
            ordered=ordered,
            ready=lambda: self._scorer.proven,
            stopped=stopped,
        )

    @property
    def writes(self) -> bool:
        """Whether a model writes the claims; else they are sentences."""
        return generator_of(self.judge.backend) is not None

    def first_request(self, item: Item) -> dict[str, Any] | None:
        """Show the exact request for the claims of an item's response, or the rubric's; None where the item cannot be asked."""
        generator = generator_of(self.judge.backend)
        if generator is not None and item.input and item.output:
            return generator.request(claims_prompt(item.input, item.output), CLAIMS_SCHEMA, name="claims")
        try:
            prompt = render(self.judge.rubric, item)
        except InvalidItemError:
            return None
        return self.judge.backend.request(prompt, self.judge.rubric.labels)

    async def _scored(self, item: Item, index: int | None) -> Correctness | CorrectnessFailure:
        """Score an item, and calibrate the result."""
        result = await self._scorer.score(item, index)
        if self._calibration is None or isinstance(result, CorrectnessFailure):
            return result
        if result.rubric is None and self._calibration.needs_rubric:  # an answer that equals its reference was not graded
            result = replace(result, rubric=await self.judge.grade(item, index=index))
        return self._calibration.applied(result)

    def close(self) -> None:
        """Release what the judge holds, and the embedded embeddings; embeddings of one's own are left alone."""
        self.judge.close()
        if self.embeddings is not None and self._owns_embeddings:
            run(self.embeddings.aclose())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _embeddings(embeddings: Any, judge: Judge, weights: tuple[float, float]) -> Embeddings | None:
    """Take the embeddings that were given, or the embedded default beside an embedded judge."""
    if embeddings is not None:
        return embeddings_of(embeddings)
    if weights[1] == 0:
        return None
    if isinstance(judge.backend, EmbeddedBackend):
        from isograde.backends.embeddings_local import LocalEmbeddings

        return LocalEmbeddings(progress=_tell)
    raise UserError(
        f"similarity has the weight {weights[1]:g} and there are no embeddings: pass embeddings=…, or weights=[1.0, 0.0] for "
        "claims alone"
    )


def _tell(said: str) -> None:
    """Say on standard error that something is fetched, which happens once."""
    sys.stderr.write(f"isograde: {said}\n")
