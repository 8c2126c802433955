"""Write the tokenised training set and evaluation parts (`train.npz`, `eval.npz`, `eval.json`) to a work folder."""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

from comparing import second_run_examples, validation_rows
from examples import evaluation_rows, training_examples
from targets import Example
from tokens import Tokenizer, save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="SmolLM2-135M-Instruct.Q4_1.gguf")
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument(
        "--run", type=int, choices=(1, 2), default=1, help="2: the second run, with validation rows to evaluate on"
    )
    parser.add_argument("--per-set", type=int, default=150, help="evaluation rows of each part")
    parser.add_argument("--max-tokens", type=int, default=900, help="longer examples are not trained on")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(args.model)
    rng = random.Random(4)
    picked, texts = [], []
    for name, rows in (evaluation_rows() if args.run == 1 else validation_rows()).items():
        for row in rng.sample(rows, min(args.per_set, len(rows))):
            low, high = row["gold_scale"]
            picked.append({"set": name, "group": row["group"], "level": 4 * (row["gold"] - low) / (high - low)})
            texts.append({key: row[key] for key in ("input", "expected", "output")})
    save(
        args.work / "eval.npz",
        tokenizer,
        [Example(source=p["set"], target=(0, 0, 0, 0, 0), **t) for p, t in zip(picked, texts, strict=True)],
    )
    (args.work / "eval.json").write_text(json.dumps([p | t for p, t in zip(picked, texts, strict=True)]))
    examples = training_examples() if args.run == 1 else second_run_examples()
    save(args.work / "train.npz", tokenizer, examples, max_tokens=args.max_tokens)


if __name__ == "__main__":
    main()
