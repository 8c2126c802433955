"""Bodies as the servers of the field were seen, or are documented, to send them; ``QUIRKS`` names them all.

Run live against this project: llama.cpp. Seen in specifications and users' reports: OpenAI, vLLM, Ollama, SGLang, TGI, LiteLLM,
DeepSeek. Played from the documentation alone, never run live: Azure, Gemini, Together, OpenRouter, Groq.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from servers.stub import completion

__all__ = ["NOT_RUN_LIVE", "QUIRKS", "RECORDED", "refusal"]

Request = Mapping[str, Any]
NOT_RUN_LIVE = frozenset({"azure", "gemini", "together", "openrouter", "groq"})

RECORDED: dict[str, Any] = {
    case["id"]: case["response"]
    for case in json.loads((Path(__file__).parents[1] / "recorded" / "answer_token.json").read_text(encoding="utf-8"))
}
"""Bodies of the recorded cases by their id."""


def refusal(message: str, *, status: int = 400, code: str | None = None, **more: Any) -> tuple[int, dict[str, Any]]:
    """An error as OpenAI words it."""
    return status, {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code, **more}}


def _position(body: dict[str, Any]) -> dict[str, Any]:
    """The answer token's entry."""
    position: dict[str, Any] = body["choices"][0]["logprobs"]["content"][0]
    return position


def _listing(body: dict[str, Any], entries: list[dict[str, Any]]) -> dict[str, Any]:
    """The same body with other alternatives listed."""
    _position(body)["top_logprobs"] = entries
    return body


def _padded(probabilities: Mapping[str, float], nothing: float, wanted: int) -> dict[str, Any]:
    """Fill the list up to what was asked for with tokens that have no value."""
    body = completion(probabilities)
    listed = _position(body)["top_logprobs"]
    more = [{"token": f"w{i}", "logprob": nothing, "bytes": None} for i in range(max(0, wanted - len(listed)))]
    return _listing(body, listed + more)


def openai(request: Request, probabilities: Mapping[str, float]) -> Any:
    """−9999.0 stands for zero; at most five alternatives; ``max_tokens`` is refused."""
    if "max_tokens" in request:
        return refusal(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
            code="unsupported_parameter",
        )
    if request.get("top_logprobs", 0) > 5:
        return refusal(
            "Invalid value for 'top_logprobs': integer above maximum value. Expected a value <= 5, but got 20 instead."
        )
    return _padded(probabilities, -9999.0, request.get("top_logprobs", 5))


def openai_reasoning(request: Request, probabilities: Mapping[str, float]) -> Any:
    """No logprobs unless the effort is none; temperature must be left alone."""
    if request.get("temperature", 1) != 1:
        return refusal(
            "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
        )
    if request.get("reasoning_effort") != "none":
        return refusal("logprobs are not supported with reasoning models unless reasoning effort is none", status=403)
    return completion(probabilities)


def azure(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Its content filter answers 400; an empty list of choices comes with a prompt that was only annotated."""
    said = str(request["messages"])
    if "violence" in said:
        return refusal(
            "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
            code="content_filter",
            innererror={"code": "ResponsibleAIPolicyViolation"},
        )
    return {**completion(probabilities), "choices": []} if "annotated" in said else completion(probabilities)


def vllm(request: Request, probabilities: Mapping[str, float]) -> Any:
    """The sampled token stands first and the list is not sorted; zero is −9999.0."""
    body = _padded(probabilities, -9999.0, request.get("top_logprobs", 20))
    chosen, *others = _position(body)["top_logprobs"]
    return _listing(body, [chosen, *reversed(others)])


def vllm_reasoning(request: Request, probabilities: Mapping[str, float]) -> Any:
    """The thought is in ``message.reasoning`` and its tokens are in the list, before the answer."""
    del request
    body = completion(probabilities)
    body["choices"][0]["message"]["reasoning"] = "Level 1 is too low."
    thought = [{"token": each, "logprob": -0.1, "top_logprobs": [{"token": each, "logprob": -0.1}]} for each in ("1", " is", "…")]
    body["choices"][0]["logprobs"]["content"] = [*thought, _position(body)]
    return body


def llama_cpp(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Every entry has an ``id``; zero is −3.4e38."""
    body = _padded(probabilities, -3.4028234663852886e38, request.get("top_logprobs", 20))
    return _listing(body, [{"id": i, **entry} for i, entry in enumerate(_position(body)["top_logprobs"])])


def speculative(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Speculative decoding: every value is 0.0."""
    del request
    body = completion(probabilities)
    _position(body)["logprob"] = 0.0
    return _listing(body, [{**entry, "logprob": 0.0} for entry in _position(body)["top_logprobs"]])


def ollama(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Twenty alternatives at most; empty fields are left out; long prompts are cut and the count says what is left."""
    if request.get("top_logprobs", 0) > 20:
        return refusal("top_logprobs must be between 0 and 20")
    body = completion(probabilities)
    for entry in (*_position(body)["top_logprobs"], _position(body)):
        entry.pop("bytes")
    characters = sum(len(message["content"]) for message in request["messages"])
    body["usage"]["prompt_tokens"] = min(2048, max(1, characters // 4))
    return body


def sglang(request: Request, probabilities: Mapping[str, float]) -> Any:
    """A value of −inf ends in HTTP 500 unless fewer alternatives are asked for."""
    if request.get("top_logprobs", 0) > 10:
        return 500, {"object": "error", "message": "Out of range float values are not JSON compliant", "code": 500}
    return completion(probabilities)


def sglang_scaled(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Logprobs are scaled by the temperature: p^(1/T), normalised."""
    temperature = max(request.get("temperature", 1), 1e-3)
    powers = {token: math.exp(math.log(p) / temperature) for token, p in probabilities.items()}
    whole = sum(powers.values())
    return completion({token: max(power / whole, 1e-300) for token, power in powers.items()})


def tgi(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Five alternatives, none with bytes; a narrow top_p leaves one candidate at 0.0."""
    if request.get("top_logprobs", 0) > 5:
        return 422, {"error": "Input validation error: `top_n_tokens` / top_logprobs must be <= 5", "error_type": "validation"}
    if request.get("top_p", 1) < 0.5:
        probabilities = {max(probabilities, key=probabilities.__getitem__): 1.0}
    body = completion(probabilities)
    return _listing(body, [{"token": each["token"], "logprob": each["logprob"]} for each in _position(body)["top_logprobs"]][:5])


def litellm(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Once a bare number came in place of the structure."""
    del request
    return completion(probabilities, logprobs=-0.4)


def openrouter(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Null where the provider has none and was not required to; an error of the provider comes with status 200."""
    if "moderated" in str(request["messages"]):
        return {"error": {"code": 403, "message": "Input was flagged by the provider's moderation"}}
    required = request.get("provider", {}).get("require_parameters")
    return completion(probabilities) if required else completion(probabilities, logprobs=None)


def groq(request: Request, probabilities: Mapping[str, float]) -> Any:
    """It has no logprobs and says so."""
    return refusal("'logprobs' is not supported with this model") if request.get("logprobs") else completion(probabilities)


def ignoring(request: Request, probabilities: Mapping[str, float]) -> Any:
    """LM Studio's chat, Anthropic's compatible layer: the parameter is ignored and the field is missing."""
    del request
    body = completion(probabilities)
    del body["choices"][0]["logprobs"]
    return body


def deepseek(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Some versions return 0 and −9999 only, with an empty list."""
    del request
    body = completion(probabilities)
    _position(body)["logprob"] = 0.0
    return _listing(body, [])


def together(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Logprobs are asked for as a number and come as parallel lists."""
    if request.get("logprobs") is True:
        return refusal("logprobs: Input should be a valid integer between 0 and 20", status=422)
    values = {token: math.log(p) for token, p in probabilities.items()}
    chosen = max(values, key=values.__getitem__)
    return completion(
        probabilities,
        logprobs={"tokens": [chosen], "token_logprobs": [values[chosen]], "token_ids": [19], "top_logprobs": [values]},
    )


def gemini(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Many models answer 400; where they do not, candidates come in lists of their own."""
    if request.get("logprobs") is True:
        return 400, [{"error": {"code": 400, "message": "Logprobs is not enabled for this model.", "status": "INVALID_ARGUMENT"}}]
    found = [{"token": token, "log_probability": math.log(p)} for token, p in probabilities.items()]
    return completion(probabilities, logprobs={"chosen_candidates": found[:1], "top_candidates": [{"candidates": found}]})


def gemma(request: Request, probabilities: Mapping[str, float]) -> Any:
    """Templates without a system role."""
    if request["messages"][0]["role"] == "system":
        return refusal("System role not supported", status=400)
    return completion(probabilities)


QUIRKS: dict[str, Callable[[Request, Mapping[str, float]], Any]] = {
    each.__name__: each
    for each in (
        openai, openai_reasoning, azure, vllm, vllm_reasoning, llama_cpp, speculative, ollama, sglang, sglang_scaled, tgi, litellm,
        openrouter, groq, ignoring, deepseek, together, gemini, gemma,
    )
}  # fmt: skip
