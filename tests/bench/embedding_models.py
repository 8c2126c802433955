"""How well the cosine of two embeddings follows human grades, and what an embedding costs.

    python tests/bench/embedding_models.py [--rows 500] [--function package.module:function] [--prefix "query: "]

Without ``--function`` the embedded default. For each set: Spearman's ρ of cosine and gold level over a fixed sample of rows, the
5th, 50th and 95th percentile of the cosine, and processor milliseconds a text. Then 18 sentences in six languages, each with a
paraphrase that shares few words and an unrelated sentence: how often the paraphrase is nearer.
"""

from __future__ import annotations

import argparse
import gzip
import importlib
import json
import os
import random
import time
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from isograde.backends.embeddings import CallableEmbeddings
from isograde.backends.embeddings_local import LocalEmbeddings
from isograde.backends.loop import run
from isograde.correctness.similarity import cosine

DATA = Path(os.environ.get("ISOGRADE_SHARED", Path(__file__).resolve().parents[3] / "shared")) / "data"
SETS = ("saf2_en", "saf1_de", "scientsbank_3way", "evouna_nq", "evouna_tq")
SENTENCES = {
    "en": [
        ("The contract ends after twelve months.", "The agreement expires after one year.", "Water boils at a hundred degrees."),
        ("SpaceX was founded by Elon Musk", "Elon Musk is the founder of SpaceX", "The cat is asleep on the sofa."),
        ("The train was an hour late.", "The train arrived sixty minutes behind schedule.", "This book is very expensive."),
    ],
    "de": [
        ("Berlin ist die Hauptstadt Deutschlands.", "Die deutsche Hauptstadt ist Berlin.", "Die Katze schläft auf dem Sofa."),
        ("Der Zug hatte eine Stunde Verspätung.", "Die Bahn kam sechzig Minuten zu spät an.", "Dieses Buch ist sehr teuer."),
        (
            "Der Vertrag endet nach zwölf Monaten.",
            "Die Vereinbarung läuft nach einem Jahr aus.",
            "Wasser siedet bei hundert Grad.",
        ),
    ],
    "pl": [
        ("Warszawa jest stolicą Polski.", "Stolicą Polski jest Warszawa.", "Kot śpi na kanapie."),
        ("Umowa wygasa po dwunastu miesiącach.", "Kontrakt kończy się po upływie roku.", "Woda wrze w temperaturze stu stopni."),
        ("Pociąg spóźnił się o godzinę.", "Pociąg przyjechał z godzinnym opóźnieniem.", "Lekarz przepisał mi antybiotyk."),
    ],
    "hi": [
        ("ताजमहल आगरा में स्थित है।", "ताजमहल आगरा शहर में है।", "बिल्ली सोफे पर सो रही है।"),
        ("यह किताब बहुत महँगी है।", "इस पुस्तक की कीमत बहुत ज़्यादा है।", "कल बारिश होगी।"),
        ("न्यूनतम शेष राशि दस हज़ार रुपये है।", "खाते में कम से कम ₹10,000 होने चाहिए।", "वह हर सुबह दौड़ने जाता है।"),
    ],
    "ar": [
        ("القاهرة هي عاصمة مصر.", "عاصمة مصر هي مدينة القاهرة.", "القطة نائمة على الأريكة."),
        ("تأخر القطار ساعة كاملة.", "وصل القطار متأخراً بستين دقيقة.", "هذا الكتاب غالي الثمن."),
        ("ينتهي العقد بعد سنة واحدة.", "تنقضي مدة الاتفاقية بعد اثني عشر شهراً.", "يغلي الماء عند مئة درجة."),
    ],
    "ja": [
        ("東京は日本の首都です。", "日本の首都は東京である。", "猫がソファで寝ています。"),
        ("電車が一時間遅れました。", "列車は六十分遅延して到着した。", "この本はとても高いです。"),
        ("契約は一年後に終了します。", "契約期間は十二か月で満了となる。", "水は百度で沸騰する。"),
    ],
}


def sample(name: str, n: int) -> list[tuple[str, str, float]]:
    """Answers, references and gold levels, drawn once for all."""
    lines = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).decode().split("\n")[:-1]
    rows = [row for row in map(json.loads, lines) if row["output"].strip() and row["expected"]]
    random.Random(1).shuffle(rows)
    found = []
    for row in rows[:n]:
        lo, hi = row["gold_scale"]
        expected = row["expected"] if isinstance(row["expected"], str) else row["expected"][0]
        found.append((row["output"], expected, (row["gold"] - lo) / (hi - lo)))
    return found


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--function", help="of a list of texts, gives as many vectors")
    parser.add_argument("--prefix", help="of the embedded default, in place of its own")
    given = parser.parse_args()
    if given.function is None:
        embeddings = LocalEmbeddings(prefix=given.prefix)
    else:
        module, _, name = given.function.partition(":")
        embeddings = CallableEmbeddings(getattr(importlib.import_module(module), name), name=given.function)
    print(embeddings.name)
    run(embeddings.embed(["warm"]))
    for name in SETS:
        rows = sample(name, given.rows)
        texts = list(dict.fromkeys(text for output, expected, _ in rows for text in (output, expected)))
        before = time.process_time()
        vectors = dict(zip(texts, run(embeddings.embed(texts)).vectors, strict=True))
        spent = 1000 * (time.process_time() - before) / len(texts)
        cosines = [cosine(vectors[output], vectors[expected]) for output, expected, _ in rows]
        rho = spearmanr(cosines, [gold for *_, gold in rows]).statistic
        low, middle, high = np.quantile(cosines, [0.05, 0.5, 0.95])
        print(
            f"{name:18} n {len(rows)}  ρ {rho:.3f}  cosine {low:.2f} {middle:.2f} {high:.2f}  {spent:.1f} ms a text", flush=True
        )
    right = 0
    for language, triples in SENTENCES.items():
        pairs = []
        for triple in triples:
            a, b, c = run(embeddings.embed(triple)).vectors
            pairs.append((cosine(a, b), cosine(a, c)))
        right += sum(near > far for near, far in pairs)
        print(
            language, "  ".join(f"{near:.2f} > {far:.2f}" if near > far else f"{near:.2f} ≤ {far:.2f} !" for near, far in pairs)
        )
    print(f"paraphrase nearer in {right} of {sum(map(len, SENTENCES.values()))}")


if __name__ == "__main__":
    main()
