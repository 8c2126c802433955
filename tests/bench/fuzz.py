"""Mutate what comes from outside at random for some minutes, and see that nothing but an isograde error comes of it.

    python tests/bench/fuzz.py logprobs|datasets|rubric [--minutes 10] [--rng 0]

``logprobs``: bodies of servers, recorded and synthetic, through every reader. ``datasets``: JSONL, CSV and Parquet files through
``read_rows`` and the writers of results. ``rubric``: YAML files through the loader, and what loads through the prompt. A finding is
written down with the input that made it; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import math
import random
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from isograde import Grade, GradeFailure, IsogradeError, Item, LevelDistribution, load_rubric  # noqa: E402 - the path comes first
from isograde.backends.chat import _chosen_first, _stopped_short  # noqa: E402
from isograde.backends.learning import first_listed, same_values  # noqa: E402
from isograde.backends.replies import error_in, error_words, usage_in  # noqa: E402
from isograde.backends.systemone import read_decision  # noqa: E402
from isograde.datasets import read_rows  # noqa: E402
from isograde.logprobs import answer_position, each_choice, read_answer, read_response  # noqa: E402
from isograde.prompt import InvalidItemError, render  # noqa: E402
from isograde.runs.results import ResultWriter  # noqa: E402

LABELS = ("0", "1", "2", "3", "4")
CELLS = ["a", '"b', 'c""', '"d\ne"', "=1"]
ODD = [None, True, False, 0, 1, -1, 2**70, -(2**70), 0.0, -0.0, 1e400, -1e400, float("nan"), -9999.0, -3.4e38, "", " ", "4", "\u200b", "\ud800",
       "</think>", "<think>", "Level:", "\\xf0", "a" * 5000, [], {}, [[]], {"": None}, b"".decode(), "🙂", "٤", "４", "²"]  # fmt: skip


def mutated(value, rng: random.Random, rate: float):
    """Change a JSON value here and there."""
    if rng.random() < rate:
        kind = rng.randrange(4)
        if kind == 0:
            return copy.deepcopy(rng.choice(ODD))
        if kind == 1 and isinstance(value, str) and value:
            at = rng.randrange(len(value))
            return value[:at] + rng.choice(["", "\x00", "é", "<", "4", "\n", "\ud83d"]) + value[at + rng.randrange(2) :]
        if kind == 2 and isinstance(value, list):
            value = value * rng.randrange(3)
            rng.shuffle(value)
        if kind == 3 and isinstance(value, dict) and value:
            value = dict(value)
            name = rng.choice(list(value))
            value[rng.choice(["token", "logprob", "content", "choices", "probabilities", name + "x"])] = value.pop(name)
    if isinstance(value, dict):
        return {key: mutated(each, rng, rate) for key, each in value.items()}
    if isinstance(value, list):
        return [mutated(each, rng, rate) for each in value]
    return value


def sound(seen) -> None:
    """Check that a distribution is one, and a failure a failure."""
    assert isinstance(seen, LevelDistribution | GradeFailure), seen
    if isinstance(seen, LevelDistribution):
        assert math.isclose(math.fsum(seen.probabilities), 1, abs_tol=1e-6), seen
        assert all(0 <= p <= 1 + 1e-9 for p in seen.probabilities), seen
        low, high = seen.expected_level_bounds
        assert low - 1e-6 <= seen.expected_level <= high + 1e-6, seen


def logprobs(rng: random.Random) -> Callable[[], object]:
    """Read bodies."""
    recorded = [
        case["response"] for case in json.loads((ROOT / "tests" / "recorded" / "answer_token.json").read_text(encoding="utf-8"))
    ]
    decision = {"model": "m", "answers": {"level": {"type": "score", "score": 2.2, "confidence": 0.4, "legend": dict.fromkeys(LABELS, "x"),
                "probabilities": dict(zip(LABELS, (0.1, 0.2, 0.3, 0.2, 0.2), strict=True))}}, "usage": {"input_tokens": 1}}  # fmt: skip
    words = {"choices": [{"message": {"content": text}, "finish_reason": "stop"} for text in ("4", "Level: 3", "Hm")]}
    error = {"error": {"message": "no", "code": 429, "type": "x"}}
    seeds = [*recorded, decision, words, error]

    def once() -> object:
        body = mutated(copy.deepcopy(rng.choice(seeds)), rng, rng.choice([0.005, 0.02, 0.1]))
        for method in ("answer_token", "reasoning_first"):
            sound(read_response(body, LABELS, method=method, min_mass=rng.choice([0.0, 0.5])))
            answer_position(body, method=method)
        for each in [body, *each_choice(body)]:
            assert isinstance(read_answer(each, LABELS), str | GradeFailure)
        sound(read_decision(body, LABELS))
        first_listed(body)
        same_values(body, mutated(body, rng, 0.02))
        _stopped_short(body)
        _chosen_first(body)
        usage_in(body)
        error_in(body)
        error_words(body)
        return body

    return once


def file_bytes(rng: random.Random) -> tuple[str, bytes]:
    """Make the bytes of a file of rows, and damage them."""
    rows = [
        {"id": rng.choice(["a", "b", "=1", ""]), "input": "q", "output": rng.choice(["a", "", "é🙂", "</answer>"]), "expected": rng.choice(["x", ["x", "y"]]),
         "gold": rng.choice([0, 4, 2.5, None, "3"]), "gold_scale": rng.choice([[0, 4], None]), "context": rng.choice(["c", ["c", "d"], None]),
         "metadata": rng.choice([{}, {"k": 1}]), "n": {"deep": ["x"]}}
        for _ in range(rng.randrange(4))
    ]  # fmt: skip
    rows = [mutated(row, rng, rng.choice([0.0, 0.05, 0.2])) for row in rows]
    kind = rng.choice([".jsonl", ".csv", ".jsonl.gz", ".parquet"])
    if kind == ".parquet":
        import pyarrow as pa
        import pyarrow.parquet as pq

        buffer = io.BytesIO()
        plain = [
            {key: str(value) if rng.random() < 0.9 else None for key, value in row.items()}
            for row in rows
            if isinstance(row, dict)
        ]
        try:
            pq.write_table(pa.Table.from_pylist(plain), buffer)
        except (pa.ArrowException, UnicodeError, ValueError, TypeError):
            return kind, b"PAR1"
        content = buffer.getvalue()
    elif kind == ".csv":
        content = ("id,input,output,expected,gold\n" + "".join(f"{i},q,{rng.choice(CELLS)},x,3\n" for i in range(3))).encode()
    else:
        lines = [
            json.dumps(row) if rng.random() < 0.95 else rng.choice(["{", "[1]", "null", "NaN", "1e999", '{"a":' * 2000])
            for row in rows
        ]
        content = "\n".join(lines).encode()
        if kind == ".jsonl.gz":
            import gzip

            content = gzip.compress(content)
    if rng.random() < 0.5:
        content = damaged(content, rng)
    return kind, content


def damaged(content: bytes, rng: random.Random) -> bytes:
    """Flip, cut, repeat and insert bytes."""
    changed = bytearray(content)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(changed) + 1)
        kind = rng.randrange(4)
        if kind == 0 and at < len(changed):
            changed[at] = rng.randrange(256)
        elif kind == 1:
            del changed[at : at + rng.randrange(1, 8)]
        elif kind == 2:
            changed[at:at] = rng.choice(
                [
                    b"\x00",
                    b"\xff\xfe",
                    b"\xef\xbb\xbf",
                    b'"',
                    b"\n",
                    b"\r",
                    b",",
                    b"&a [*a]",
                    b"!!python/object:os.system x",
                    b"{",
                    b"- ",
                ]
            )
        else:
            changed[at:at] = changed[at : at + rng.randrange(1, 60)]
    return bytes(changed)


def datasets(rng: random.Random) -> Callable[[], object]:
    """Read files, and write what they hold with a grade and with a failure."""
    folder = Path(tempfile.mkdtemp())
    rubric = load_rubric("answer_correctness")
    seen = LevelDistribution(labels=LABELS, probabilities=(0.2,) * 5, observed_mass=1.0)
    grade = Grade(score=0.5, label="2.0 / 4", level=0, probabilities=dict.fromkeys(LABELS, 0.2), confidence=0.0, passed=False, distribution=seen,
                  rubric=rubric.name, rubric_fingerprint="r", prompt_fingerprint="p", model="m", method="answer_token")  # fmt: skip
    failure = GradeFailure(status="timeout", message="late", rubric=rubric.name)

    def once() -> object:
        kind, content = file_bytes(rng)
        path = folder / f"rows{kind}"
        path.write_bytes(content)
        gold = rng.choice([None, ["gold"], []])
        try:
            for row in read_rows(path, labels=LABELS, gold=gold, gold_scale=rng.choice([None, (0, 4)])):
                with suppress(InvalidItemError):
                    render(rubric, row.item)
                for ending in (".jsonl", ".csv"):
                    with ResultWriter(folder / f"out{ending}", {rubric.name: LABELS}, force=True) as writer:
                        writer.write(row, rng.choice([grade, failure]))
                [line] = (folder / "out.jsonl").read_text(encoding="utf-8").splitlines()
                json.loads(line)
        except IsogradeError as error:
            assert "\n" not in str(error), error
        return kind, content

    return once


def rubric(rng: random.Random) -> Callable[[], object]:
    """Load YAML, and ask by what loads."""
    folder = Path(tempfile.mkdtemp())
    seeds = [path.read_bytes() for path in sorted((ROOT / "rubrics").glob("*.yaml"))]
    item = Item(input="q", output="a {output} <x>", expected="e", context="c", metadata={"k": "v"})

    def once() -> object:
        content = damaged(rng.choice(seeds), rng)
        path = folder / "rubric.yaml"
        path.write_bytes(content)
        try:
            loaded = load_rubric(path)
            render(loaded, item, method=rng.choice(["answer_token", "reasoning_first"])).messages()
            assert 2 <= len(loaded.labels) <= 10
        except InvalidItemError:
            pass
        except IsogradeError as error:
            assert "\n" not in str(error), error
        return content

    return once


TARGETS = {"logprobs": logprobs, "datasets": datasets, "rubric": rubric}


def main() -> None:
    """Fuzz until the time is over."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--rng", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    until, n, found = time.monotonic() + 60 * asked.minutes, 0, dict[str, int]()
    rng = random.Random(asked.rng)
    once = TARGETS[asked.target](rng)
    while time.monotonic() < until:
        state = rng.getstate()
        n += 1
        try:
            once()
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # noqa: BLE001 - anything that is no isograde error is a finding
            where = traceback.extract_tb(error.__traceback__)[-1]
            kind = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
            found[kind] = found.get(kind, 0) + 1
            if found[kind] == 1:
                traceback.print_exc()
                Path(f"finding-{asked.target}-{len(found)}.txt").write_text(
                    f"input {n}, random state:\n{state}\n", encoding="utf-8"
                )
    print(f"{asked.target}: {n:,} inputs in {asked.minutes:g} min, {len(found)} kind(s) of finding: {found or 'none'}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
