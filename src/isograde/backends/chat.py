"""The chat completions wire: any OpenAI-compatible server, through the openai SDK."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from isograde.backends.base import Memory, Reply
from isograde.backends.learning import Learnt, settle
from isograde.backends.rejections import TOP_LOGPROBS, Parameters, mend
from isograde.backends.wire import Rejected, Wire
from isograde.errors import ServerError
from isograde.prompt import Prompt, is_blank, prompt_fingerprint
from isograde.records import GradeFailure, Method
from isograde.rubric import Rubric

if TYPE_CHECKING:
    import openai

__all__ = ["ChatBackend"]

_MENDS = 10  # forms that one request may take before it is given up
_CHANCES = 3  # samples after one that happened to be no answer
_HOSTED = ("api.openai.com", ".openai.azure.com", ".cognitiveservices.azure.com")


class ChatBackend:
    """Ask an OpenAI-compatible server.

    Parameters
    ----------
    model : str
        Name of the model at the server.
    base_url : str or None
        Address up to ``/v1``; None is OpenAI's (or ``OPENAI_BASE_URL``).
    api_key : str or None
        None takes ``OPENAI_API_KEY`` where ``base_url`` is None, and sends none elsewhere.
    client : openai.AsyncOpenAI or None
        A client of one's own, such as ``AsyncAzureOpenAI``, in place of address and key. The judge runs it on a loop of its own;
        do not share it.
    top_logprobs : int
        How many tokens are asked for; lowered once where the server rejects it, raised once where it leaves levels unseen.
    max_tokens : int or None
        How many tokens are asked for; raised once where the answer does not come first. None is as many as the method needs:
        1 for the answer token, 16 for a sampled answer, 1024 for reasoning.
    prefill : bool
        Whether the assistant's turn is opened with «Level: »; the server must continue a last assistant message.
    timeout : float
        Seconds for one try.
    max_retries : int
        Tries after the first, with jitter, as the SDK makes them; at most one until the server has answered for the first time.
    concurrency : int
        Requests that are under way at once.
    memory : Memory or None
        Where what is learnt of the server is kept from run to run.

    Raises
    ------
    UserError
        If there is no key for OpenAI, or the client is no asynchronous one.
    """

    methods: tuple[Method, ...] = ("answer_token", "sampling", "reasoning_first")

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        client: openai.AsyncOpenAI | None = None,
        top_logprobs: int = TOP_LOGPROBS,
        max_tokens: int | None = None,
        prefill: bool = False,
        timeout: float = 60.0,
        max_retries: int = 4,
        concurrency: int = 16,
        memory: Memory | None = None,
    ) -> None:
        self.model = model
        self.concurrency = concurrency
        self.wire = Wire(base_url=base_url, api_key=api_key, client=client, timeout=timeout, max_retries=max_retries)
        self.server: str | None = self.wire.server
        host = self.wire.host
        first = Parameters.first(
            hosted=any(host == name.lstrip(".") or host.endswith(name) for name in _HOSTED),
            openrouter=host == "openrouter.ai",
            top_logprobs=top_logprobs,
            max_tokens=max_tokens,
            prefill=prefill,
        )
        self._configured = first
        self._learnt = Learnt(first, server=self.wire.server, model=model, memory=memory)
        self._learning = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self.server!r})"

    @property
    def prompt_fingerprint(self) -> str:
        """Fingerprint of the prompt's version and shape."""
        form = self._learnt.form("answer_token")
        return prompt_fingerprint(system_role=form.system_role, prefill=form.prefill)

    def remember_in(self, memory: Memory) -> None:
        """Keep what is learnt of the server, and take up what was learnt before."""
        self._learnt.use(memory)

    def save_in(self, memory: Memory) -> None:
        """Keep what was learnt of the server, in place of what was learnt before."""
        self._learnt.save(memory)

    def adapter(self, rubric: Rubric) -> str | None:
        """None: what stands behind a server's model name is the server's."""
        del rubric
        return None

    def caveat(self, rubric: Rubric) -> str | None:
        """None: nothing is known of a server's model."""
        del rubric
        return None

    def asked(self, prompt: Prompt, labels: tuple[str, ...]) -> dict[str, Any]:
        """Write the request as it was configured, whatever the server's answers made of it since; answers are kept by it."""
        del labels
        return {"model": self.model, **self._configured.body(prompt)}

    def request(self, prompt: Prompt, labels: tuple[str, ...]) -> dict[str, Any]:
        """Show the exact request that :meth:`ask` would send."""
        del labels  # every label is read from the list; none is forced
        return {"model": self.model, **self._learnt.form(prompt.method).body(prompt)}

    async def ask(self, prompt: Prompt, labels: tuple[str, ...]) -> Reply | GradeFailure:
        """Ask, mending what the server rejects; the first answer shows which form suits, and at most two more try others."""
        if self._learning or self._learnt.settled(prompt.method):
            return await self._mended(prompt)
        self._learning = True  # whoever asks meanwhile is answered in the form that is known so far
        try:
            answer = await self._mended(prompt)
            if isinstance(answer, GradeFailure):
                return answer
            found, answer = await settle(
                lambda form: self.tried(form, prompt), self._learnt.form(prompt.method), answer, prompt, labels
            )
            if found is not None:
                self._learnt.settle(prompt.method, found)
            return answer
        finally:
            self._learning = False

    def form(self, method: Method) -> Parameters:
        """Give the form that requests have, as far as the server is known."""
        return self._learnt.form(method)

    async def tried(self, form: Parameters, prompt: Prompt, **more: Any) -> Reply | None:
        """Send a prompt in another form, and with more parameters; None where that does not suit the server."""
        try:
            answer = await self.wire.post("/chat/completions", {"model": self.model, **form.body(prompt), **more})
        except (Rejected, ServerError):
            return None
        return answer if isinstance(answer, Reply) else None

    async def _mended(self, prompt: Prompt) -> Reply | GradeFailure:
        """Ask in the form that is known, and in others until the server rejects nothing and the answer fits in."""
        answer: Reply | GradeFailure = GradeFailure(status="server_error", message="every form of the request was rejected")
        asked = self._learnt.form(prompt.method)
        again = _CHANCES
        for _ in range(_MENDS):
            remembered = True
            changed: Parameters | None
            try:
                answer = await self.wire.post("/chat/completions", {"model": self.model, **asked.body(prompt)})
            except Rejected as rejected:
                changed = mend(asked, rejected.status, rejected.message)
                if changed is None:
                    return await self.wire.failure(rejected, self.model)
            else:
                if isinstance(answer, GradeFailure) or prompt.method == "reasoning_first":
                    return answer
                short = _stopped_short(answer.body)
                if short and prompt.method == "sampling":  # hidden thinking uses tokens up; a blank sample is one like any other
                    short = "thinking" if _ran_out(answer.body) else None
                changed = short and asked.roomier(prompt.method, thinking=short == "thinking")
                if changed is None:
                    return answer
                remembered = short == "thinking" or _chosen_first(answer.body)
                if not remembered and again:  # sampled by chance, which says nothing of other items, nor of the next sample
                    again -= 1
                    continue
            if remembered and self._learnt.form(prompt.method) is asked:
                self._learnt.changed(prompt.method, changed)
            asked = changed
        return answer

    async def aclose(self) -> None:
        """Close the connections, unless the client is the user's."""
        await self.wire.aclose()


def _stopped_short(body: Any) -> Literal["blank", "thinking"] | None:
    """Tell what the allowed tokens hold in place of an answer: blanks or the end of the turn, or the beginning of a thought."""
    choices = body.get("choices") if isinstance(body, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, Mapping) or choice.get("error") or choice.get("finish_reason") == "content_filter":
        return None
    message = choice.get("message")
    content = (message.get("content") if isinstance(message, Mapping) else None) or ""
    try:  # the content would do, but for servers that repeat a prefilled turn in it
        said = "".join(position["token"] for position in choice["logprobs"]["content"])
    except (KeyError, TypeError):
        said = content
    if not isinstance(said, str) or not isinstance(content, str):
        return None
    if said.lstrip().startswith("<think") and "</think>" not in said:
        return "thinking"
    if is_blank(said) and choice.get("finish_reason") == "length" and isinstance(message, Mapping) and _thought(message):
        return "thinking"
    return "blank" if is_blank(said) or said.strip().startswith(("<|", "</s>")) else None


def _ran_out(body: Any) -> bool:
    """Tell whether the first choice used up its tokens."""
    return bool(body["choices"][0].get("finish_reason") == "length")


def _thought(message: Mapping[str, Any]) -> bool:
    """Tell whether a server that keeps thinking apart from the answer sent some."""
    return any(message.get(name) for name in ("reasoning", "reasoning_content"))


def _chosen_first(body: Any) -> bool:
    """Tell whether the chosen token was the most probable of the listed."""
    try:
        position = body["choices"][0]["logprobs"]["content"][0]
        return bool(position["logprob"] >= max(token["logprob"] for token in position["top_logprobs"]))
    except (KeyError, IndexError, TypeError, ValueError):
        return False  # the end of the turn was sampled, or half a character: llama.cpp lists nothing then
