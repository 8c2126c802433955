"""A text → its claims: by one generating call, or, where the model cannot write, by sentences. References are kept."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from typing import Any, Literal, TypeAlias

from isograde.correctness.asking import Asker, Ledger, json_prompt
from isograde.correctness.reading import claims_of
from isograde.correctness.sentences import check_segmenter, sentences
from isograde.prompt import Prompt, is_blank

__all__ = ["CLAIMS_SCHEMA", "ClaimMaker", "ClaimMethod", "claims_prompt"]

ClaimMethod: TypeAlias = Literal["generated", "sentences"]

_INSTRUCTIONS = """\
Split a text into its claims. A claim is one fact that is true or false by itself. Write each as a short full sentence in \
the text's own language that can be understood alone: put what is meant in place of pronouns, and where the text is a short \
answer (a name, a number, yes or no) say with the question what it states. Keep numbers, units, dates, names and limits exactly \
as they stand. Add nothing, leave nothing out, judge nothing, say nothing twice. A list or a table has a claim for each entry. \
Greetings, questions and filler are no claims; a text that states nothing has none."""
_EXAMPLE = '{"claims": ["...", "..."]}'
CLAIMS_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"claims": {"type": "array", "items": {"type": "string"}}},
    "required": ["claims"],
    "additionalProperties": False,
}
_KEPT = 20_000  # references of a run whose claims are kept


def claims_prompt(question: str, text: str) -> Prompt:
    """Write the prompt that asks for a text's claims."""
    return json_prompt("claims", _INSTRUCTIONS, _EXAMPLE, {"question": question.strip(), "text": text.strip()}, "Claims?")


class ClaimMaker:
    """Makes claims, and remembers those of references.

    Parameters
    ----------
    asker : Asker or None
        None: claims are sentences.

    Raises
    ------
    UserError
        If the segmenter is needed and not installed.
    """

    def __init__(self, asker: Asker | None) -> None:
        if asker is None:
            check_segmenter()
        self._asker = asker
        self.method: ClaimMethod = "sentences" if asker is None else "generated"
        self._kept: OrderedDict[tuple[str, str], asyncio.Task[list[str]]] = OrderedDict()

    async def of_response(self, question: str, text: str, ledger: Ledger) -> list[str]:
        """Make the claims of a text.

        Raises
        ------
        PartFailed
            If the model's replies cannot be used.
        """
        if is_blank(text):
            return []
        if self._asker is None:
            with ledger.timed("claims"):
                return sentences(text)
        prompt = claims_prompt(question, text)
        return await self._asker.ask(prompt, CLAIMS_SCHEMA, claims_of, part="claims", ledger=ledger)

    async def of_reference(self, question: str, text: str, ledger: Ledger) -> list[str]:
        """Make the claims of a reference once, however many answers are measured against it; whoever asks first pays."""
        key = (question, text)
        task = self._kept.get(key)
        if task is None:
            task = self._kept[key] = asyncio.create_task(self.of_response(question, text, ledger))
            task.add_done_callback(lambda ended: self._forget_failure(key, ended))
            while len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(key)
        return list(await asyncio.shield(task))

    def _forget_failure(self, key: tuple[str, str], ended: asyncio.Task[list[str]]) -> None:
        """Let the next item of a reference try again."""
        if (ended.cancelled() or ended.exception() is not None) and self._kept.get(key) is ended:
            del self._kept[key]
