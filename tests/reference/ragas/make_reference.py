"""Drive RAGAS 0.4.3 with a scripted model and scripted embeddings and store what it says; see README.md beside this file.

Run in an environment of its own (``requirements.txt``): ``python make_reference.py``. It writes ``ragas_0_4_3.json``.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import math
import os
import random
import warnings
from importlib.metadata import version
from pathlib import Path

os.environ["RAGAS_DO_NOT_TRACK"] = "true"
warnings.simplefilter("ignore")

from langchain_core.outputs import Generation, LLMResult  # noqa: E402 - RAGAS reads the environment when it is imported
from ragas.dataset_schema import SingleTurnSample  # noqa: E402
from ragas.embeddings.base import BaseRagasEmbedding  # noqa: E402
from ragas.llms.base import BaseRagasLLM, InstructorBaseRagasLLM  # noqa: E402
from ragas.metrics import AnswerCorrectness as OldAnswerCorrectness  # noqa: E402
from ragas.metrics.collections import AnswerCorrectness, FactualCorrectness, SemanticSimilarity  # noqa: E402
from ragas.run_config import RunConfig  # noqa: E402

OUT = Path(__file__).with_name("ragas_0_4_3.json")
HUGE = 1e9  # F-beta at this beta is the recall to the last bit


class Script:
    """What the model is to say: statements of the response, then of the reference, then how they are sorted."""

    def __init__(self, case):
        self.case = case
        self.statements = [case["response_statements"], case["reference_statements"]]
        self.asked = []

    def __call__(self, fields):
        if "statements" in fields:
            self.asked.append("statements")
            return {"statements": self.statements.pop(0)}
        self.asked.append("classification")
        return {
            side: [{"statement": text, "reason": "scripted"} for text in texts]
            for side, texts in self.case["classification"].items()
        }


class NewModel(InstructorBaseRagasLLM):
    """The interface of ragas.metrics.collections."""

    def __init__(self, script):
        self.script = script

    def generate(self, prompt, response_model):
        return response_model(**self.script(response_model.model_fields))

    async def agenerate(self, prompt, response_model):
        return self.generate(prompt, response_model)


class OldModel(BaseRagasLLM):
    """The interface of ragas.metrics."""

    def __init__(self, script):
        super().__init__(run_config=RunConfig(), cache=None)
        self.script = script

    def generate_text(self, prompt, n=1, temperature=0.01, stop=None, callbacks=None):
        fields = ("TP", "FP", "FN") if '"TP"' in prompt.to_string() else ("statements",)
        return LLMResult(generations=[[Generation(text=json.dumps(self.script(fields)))]])

    async def agenerate_text(self, prompt, n=1, temperature=None, stop=None, callbacks=None):
        return self.generate_text(prompt)

    def is_finished(self, response):
        return True


class Vectors(BaseRagasEmbedding):
    def __init__(self, case):
        super().__init__()
        self.vectors = {case["response"]: case["response_vector"], case["reference"]: case["reference_vector"]}

    def embed_text(self, text, **kwargs):
        return self.vectors[text]

    async def aembed_text(self, text, **kwargs):
        return self.embed_text(text)


def sorted_case(name, tp, fp, fn, *, similarity=0.72, weights=(0.75, 0.25), beta=1.0, tp_reference=None, vectors=None, **texts):
    """A case by its counts: as many response statements are true, reference statements covered, and so on."""
    tp_reference = tp if tp_reference is None else tp_reference
    response = [f"R{i}." for i in range(1, tp + fp + 1)]
    reference = [f"E{i}." for i in range(1, tp_reference + fn + 1)]
    first, second = vectors or ([1.0, 0.0], [similarity, math.sqrt(max(0.0, 1 - similarity**2))])
    case = {
        "name": name,
        "user_input": "What holds?",
        "response": f"The response of {name}.",
        "reference": f"The reference of {name}.",
        "response_statements": response,
        "reference_statements": reference,
        "classification": {"TP": response[:tp], "FP": response[tp:], "FN": reference[tp_reference:]},
        "response_vector": first,
        "reference_vector": second,
        "weights": list(weights),
        "beta": beta,
        "difference": None,
    }
    return case | texts


def plain_cases():
    """Every factor in turn, then all together."""
    for tp, fp, fn in [(2, 2, 2), (1, 0, 0), (0, 1, 1), (3, 0, 0), (3, 1, 0), (3, 0, 2), (0, 4, 3), (1, 9, 0), (1, 0, 9),
                       (10, 0, 4), (17, 5, 11), (1, 1, 1), (7, 3, 1), (250, 40, 90), (400, 1, 1), (1, 200, 200)]:  # fmt: skip
        yield sorted_case(f"counts {tp} {fp} {fn}", tp, fp, fn)
    for beta in (0.1, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 10.0):
        yield sorted_case(f"beta {beta}", 5, 2, 6, beta=beta)
    for weights in (
        [1.0, 0.0],
        [0.0, 1.0],
        [0.5, 0.5],
        [0.75, 0.25],
        [3, 1],
        [0.6, 0.6],
        [1e-3, 7.0],
        [0.37, 0.11],
        [1, 0],
        [0, 1],
    ):
        yield sorted_case(f"weights {weights}", 2, 2, 2, weights=weights)
    for similarity in (1.0, 0.999999, 0.938, 0.72, 0.5, 0.1, 1e-9, 0.0):
        yield sorted_case(f"similarity {similarity}", 2, 1, 1, similarity=similarity)
    rng = random.Random(20261201)
    for number in range(12):  # vectors as models give them: many numbers, of any length
        first, second = ([rng.gauss(0.3, 1) * 10 ** rng.randint(-1, 2) for _ in range(8)] for _ in range(2))
        second = [0.7 * a + 0.3 * b for a, b in zip(first, second, strict=True)]
        counts = [rng.randint(0, 12) for _ in range(3)]
        counts[0] += 1
        weights = [round(rng.uniform(0, 1), 3), round(rng.uniform(0, 1), 3)]
        yield sorted_case(
            f"drawn {number}", *counts, weights=weights, beta=round(rng.uniform(0.2, 4), 2), vectors=(first, second)
        )


def issue_cases():
    """Texts that people know the answers to."""
    minimum, rate = "The minimum balance is ₹10,000 for urban branches.", "The interest rate is 3.5% per annum."
    fee, passbook = "The non-maintenance fee is ₹350 + taxes.", "The passbook is issued free of charge."
    penalty, banking = "The penalty fee is ₹400 per month.", "Internet banking is available at no cost."
    savings = {
        "user_input": "What are the terms of the savings account?",
        "response": f"{minimum} {penalty} {banking} {rate}",
        "reference": f"{minimum} {rate} {fee} {passbook}",
        "response_statements": [minimum, penalty, banking, rate],
        "reference_statements": [minimum, rate, fee, passbook],
        "classification": {"TP": [minimum, rate], "FP": [penalty, banking], "FN": [fee, passbook]},
    }
    for weights in ([0.75, 0.25], [1.0, 0.0], [0.5, 0.5], [0.0, 1.0]):
        yield sorted_case(f"savings account {weights}", 0, 0, 0, weights=weights, **savings)
    yield sorted_case("savings account 0.938", 0, 0, 0, similarity=0.938, **savings)
    for number, (question, response, reference) in enumerate(spacex(), 1):
        yield sorted_case(
            f"SpaceX {number}", 0, 0, 0, similarity=0.9, user_input=question, response=response, reference=reference,
            response_statements=[f"{response}."], reference_statements=[reference],
            classification={"TP": [f"{response}."], "FP": [], "FN": []},
        )  # fmt: skip
    tesla, musk = "SpaceX was founded by Nikola Tesla", "SpaceX was founded by Elon Musk"
    yield sorted_case(
        "Tesla", 0, 0, 0, similarity=0.9, user_input="Who founded SpaceX?", response=tesla, reference=musk,
        response_statements=[tesla], reference_statements=[musk], classification={"TP": [], "FP": [tesla], "FN": [musk]},
    )  # fmt: skip


def spacex():
    """The batch of three rows: question, response, reference."""
    return [
        ("What is SpaceX?", "It is an American aerospace company", "SpaceX is an American aerospace company"),
        ("Who found it?", "SpaceX founded by Elon Musk", "Founded by Elon Musk."),
        (
            "What exactly does SpaceX do?",
            "SpaceX produces and operates the Falcon 9 and Falcon rockets",
            "SpaceX produces and operates the Falcon 9 and Falcon Heavy rockets",
        ),
    ]


def odd_cases():
    """Where the definitions part, or a model answers out of order: ``difference`` says how."""
    yield sorted_case("no statements in the response", 0, 0, 3, difference="one_side_empty")
    yield sorted_case("no statements in the reference", 0, 3, 0, difference="one_side_empty")
    yield sorted_case("no statements at all", 0, 0, 0, difference="both_empty")
    yield sorted_case("negative cosine", 2, 1, 1, similarity=-0.4, difference="negative_cosine")
    yield sorted_case("opposite vectors", 0, 1, 1, similarity=-1.0, difference="negative_cosine")
    yield sorted_case("negative cosine alone", 1, 0, 0, similarity=-0.4, weights=[0.0, 1.0], difference="negative_cosine")
    yield sorted_case("zero vector", 2, 1, 1, vectors=([0.0, 0.0], [1.0, 0.0]), difference="zero_vector")
    yield sorted_case("ten restatements of one of five", 10, 0, 4, tp_reference=1, difference="recall_over")
    yield sorted_case("one sentence that covers five facts", 1, 0, 0, tp_reference=5, difference="recall_over")
    yield sorted_case("nothing true said but all covered", 0, 2, 0, tp_reference=3, difference="recall_over")
    lost = sorted_case("a statement is sorted nowhere", 3, 1, 1, difference="unsorted")
    lost["classification"]["FP"] = []
    yield lost
    twice = sorted_case("a statement is sorted twice", 3, 1, 1, difference="sorted_twice")
    twice["classification"]["FP"].append(twice["classification"]["TP"][0])
    yield twice
    made_up = sorted_case("a statement is made up", 3, 1, 1, difference="made_up")
    made_up["classification"]["TP"].append("Nobody said this.")
    yield made_up
    nothing = sorted_case("nothing is sorted", 2, 2, 2, difference="unsorted")
    nothing["classification"] = {"TP": [], "FP": [], "FN": []}
    yield nothing


async def measure(case):
    """Ask both of RAGAS's implementations; what cannot be seen is null."""
    row = {name: case[name] for name in ("user_input", "response", "reference")}

    async def new(weights, beta):
        script = Script(case)
        metric = AnswerCorrectness(llm=NewModel(script), embeddings=Vectors(case), weights=weights, beta=float(beta))
        return (await metric.ascore(**row)).value, script.asked

    async def old(weights, beta):
        metric = OldAnswerCorrectness(llm=OldModel(Script(case)), embeddings=Vectors(case), weights=weights, beta=float(beta))
        metric.init(RunConfig())
        return await metric.single_turn_ascore(SingleTurnSample(**row))

    score, asked = await new(case["weights"], case["beta"])
    f_beta, _ = await new([1.0, 0.0], case["beta"])
    old_score = await old(case["weights"], case["beta"])
    # F-beta at beta 0 is the precision and at a huge beta the recall, unless both are 0 and neither can be seen
    seen = f_beta > 0 and "classification" in asked
    similarity = (
        await SemanticSimilarity(embeddings=Vectors(case)).ascore(response=row["response"], reference=row["reference"])
    ).value
    ragas = {
        "score": score,
        "f_beta": f_beta,
        "precision": (await new([1.0, 0.0], 0.0))[0] if seen else None,
        "recall": (await new([1.0, 0.0], HUGE))[0] if seen else None,
        "similarity": (await new([0.0, 1.0], case["beta"]))[0],
        "semantic_similarity": similarity,
        "calls": asked,
        "old_score": old_score,
        "old_f_beta": await old([1.0, 0.0], case["beta"]),
    }
    return case | {"ragas": {key: None if isinstance(x, float) and math.isnan(x) else x for key, x in ragas.items()}}


async def factual(response_verdicts, reference_verdicts, beta):
    """RAGAS's other metric: claims asked one by one, rounded to two digits."""

    class Model(InstructorBaseRagasLLM):
        def generate(self, prompt, response_model):
            raise NotImplementedError

        async def agenerate(self, prompt, response_model):
            side, verdicts = ("r", response_verdicts) if self.turn < 2 else ("e", reference_verdicts)
            self.turn += 1 if verdicts else 2  # without claims nothing is verified
            claims = [f"{side}{i}" for i in range(len(verdicts))]
            if "claims" in response_model.model_fields:
                return response_model(claims=claims)
            return response_model(
                statements=[
                    {"statement": claim, "reason": "scripted", "verdict": int(verdict)}
                    for claim, verdict in zip(claims, verdicts, strict=True)
                ]
            )

    told = {}
    for mode in ("precision", "recall", "f1"):
        model = Model()
        model.turn = 0
        metric = FactualCorrectness(llm=model, mode=mode, beta=beta)
        told[mode] = (await metric.ascore(response="A response.", reference="A reference.")).value
    return {"response_verdicts": response_verdicts, "reference_verdicts": reference_verdicts, "beta": beta, "ragas": told}


async def factual_cases():
    sides = [[True, True, False, False], [True] * 10, [True, False, False, False, False], [False, False], [True], []]
    return [await factual(one, other, beta) for one, other in itertools.product(sides, sides) for beta in (1.0, 2.0)]


def rejected():
    """What RAGAS says of settings: the message, or null where it takes them."""
    case = sorted_case("settings", 1, 1, 1)
    settings = [
        {"weights": [0.75, 0.25], "embeddings": True}, {"weights": [0.75, 0.25], "embeddings": False},
        {"weights": [1.0, 0.0], "embeddings": False}, {"weights": [0.0, 0.0], "embeddings": True},
        {"weights": [-0.1, 1.1], "embeddings": True}, {"weights": [1.0], "embeddings": True},
        {"weights": [0.5, 0.3, 0.2], "embeddings": True}, {"weights": [3, 1], "embeddings": True},
        {"weights": [1.0, 0.0], "embeddings": False, "beta": 1}, {"weights": [1.0, 0.0], "embeddings": False, "beta": 0.0},
        {"weights": [1.0, 0.0], "embeddings": False, "beta": -1.0},
    ]  # fmt: skip
    for each in settings:
        try:
            AnswerCorrectness(
                llm=NewModel(Script(case)), embeddings=Vectors(case) if each["embeddings"] else None,
                weights=each["weights"], beta=each.get("beta", 1.0),
            )  # fmt: skip
        except ValueError as error:
            yield each | {"error": str(error)}
        else:
            yield each | {"error": None}


async def main():
    assert version("ragas") == "0.4.3"
    cases = [await measure(case) for case in itertools.chain(plain_cases(), issue_cases(), odd_cases())]
    body = {
        "ragas": version("ragas"),
        "numpy": version("numpy"),
        "cases": cases,
        "factual_correctness": await factual_cases(),
        "settings": list(rejected()),
    }
    parts = [f'"{key}": ' + ("[\n" + ",\n".join(json.dumps(x, ensure_ascii=False) for x in value) + "\n]" if isinstance(value, list) else json.dumps(value))
             for key, value in body.items()]  # fmt: skip
    OUT.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")
    print(len(cases), "cases,", len(body["factual_correctness"]), "of factual correctness,", OUT.stat().st_size, "bytes")


if __name__ == "__main__":
    asyncio.run(main())
