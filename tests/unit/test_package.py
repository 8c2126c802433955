"""The built wheel is whole: it works from an empty folder, with what ships inside."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    [path] = folder.glob("*.whl")
    return path


def test_what_is_in_the_wheel(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"isograde/py.typed", "isograde/_shipped/calibration/demo.jsonl"} <= names
    assert {f"isograde/_shipped/calibration/embedded/{name}" for name in ("adapter.json", "answer_correctness.gguf")} <= names
    assert {f"isograde/_shipped/rubrics/{path.name}" for path in (ROOT / "rubrics").glob("*.yaml")} <= names
    assert not any(name.startswith(("tests", "src")) for name in names)
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_wheel_finds_its_rubrics(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "import isograde, isograde.rubric as r; print(isograde.__file__); print(r.rubric_names()); "
        "print(r.shipped_path('calibration', 'demo.jsonl').is_file())"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, capture_output=True, text=True)
    where, names, demo = done.stdout.splitlines()
    assert where.startswith(str(tmp_path))
    assert names == "['answer_correctness', 'factuality', 'faithfulness', 'relevance']"
    assert demo == "True"


def test_layers_hold():
    done = subprocess.run(
        [str(Path(sys.executable).parent / "lint-imports")], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout
