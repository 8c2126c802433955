"""Answers already paid for, in one SQLite file: asked once, kept by everything that shapes them.

An answer's key is a hash, so no text of an item, no key and no credential is in the file; what is kept is what the server sent.
Each answer is committed before the call that brought it returns: a process that is killed loses at most what was under way.
Several processes may share a file.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import sqlite3
import threading
import time
import weakref
import zlib
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Self
from urllib.parse import urlsplit, urlunsplit

from isograde.errors import UserError
from isograde.records import Usage

__all__ = ["Answer", "Store", "answer_key"]

_APPLICATION = 0x69736F67  # «isog», in the file's header
_VERSION = 1
_SMALLEST = 512  # bytes of the smallest page that SQLite has
_PATIENCE_S = 30.0  # for another process that writes
_SCHEMA = """
CREATE TABLE answers (
    key BLOB PRIMARY KEY, body BLOB NOT NULL, input_tokens INTEGER, output_tokens INTEGER, cached_tokens INTEGER,
    latency_s REAL, prompt_fingerprint TEXT, created REAL NOT NULL
);
CREATE TABLE servers (server TEXT NOT NULL, model TEXT NOT NULL, facts TEXT NOT NULL, learned REAL NOT NULL,
    PRIMARY KEY (server, model));
"""
_READ = "SELECT body, input_tokens, output_tokens, cached_tokens, latency_s, prompt_fingerprint FROM answers WHERE key = ?"
_Waiting = tuple[bytes, "Answer", asyncio.AbstractEventLoop, "asyncio.Future[None]"]
_WRITE = "INSERT OR IGNORE INTO answers VALUES (?, ?, ?, ?, ?, ?, ?, ?)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a server sent.

    Attributes
    ----------
    body : object
        The decoded JSON.
    usage : Usage or None
        Tokens, where the server counted them.
    latency_s : float or None
        Seconds that it took.
    prompt_fingerprint : str or None
        Of the shape in which the prompt was sent.
    raw : bytes or None
        The body's JSON as it came, which saves writing it again.
    """

    body: Any
    usage: Usage | None = None
    latency_s: float | None = None
    prompt_fingerprint: str | None = None
    raw: bytes | None = field(default=None, repr=False, compare=False)


def answer_key(*, kind: str, server: str | None, model: str, request: Any, adapter: str | None = None, repeat: int = 0) -> bytes:
    """Hash everything that shapes an answer.

    Parameters
    ----------
    kind : str
        What is asked for, such as ``"level"``, ``"text"`` or ``"embedding"``.
    server : str or None
        Address without credentials; None in process.
    model : str
    request : object
        All parameters and the whole content, as JSON has it.
    adapter : str or None
        Fingerprint of an adapter beside the weights.
    repeat : int
        The how-manieth time that the same is asked on purpose, from 0.

    Returns
    -------
    bytes
        32 of them.

    Examples
    --------
    >>> first = answer_key(kind="level", server=None, model="m", request={"temperature": 1, "prompt": "Level?"})
    >>> len(first), first == answer_key(kind="level", server=None, model="m", request={"temperature": 0, "prompt": "Level?"})
    (32, False)
    """
    whole = (kind, server, model, adapter, repeat, request)
    return hashlib.sha256(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()).digest()


class Store:
    """A file of answers; made at the first use.

    Parameters
    ----------
    path : str or pathlib.Path
        Its folder must be there.

    Raises
    ------
    UserError
        If the file is damaged, belongs to something else or to a newer isograde, or cannot be written. It is never overwritten.

    Examples
    --------
    >>> import asyncio, tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/answers.sqlite") as store:
    ...     key = answer_key(kind="level", server="http://localhost:8000/v1", model="m", request="Level?")
    ...     print(store.get(key))
    ...     asyncio.run(store.keep(key, Answer(body={"choices": []})))
    ...     print(store.get(key).body)
    None
    {'choices': []}
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._process = os.getpid()
        self._lock = threading.Lock()
        try:
            self._connection = _opened(self.path)
        except _TROUBLE as error:
            raise _named(self.path, error) from None
        self._writer = _Writer(self.path)
        self._close = weakref.finalize(self, _close, self._connection, self._writer)

    def get(self, key: bytes) -> Answer | None:
        """Find a kept answer.

        Raises
        ------
        UserError
            If the file turns out to be damaged.
        """
        self._check()
        try:
            with self._lock:
                found = self._connection.execute(_READ, (key,)).fetchone()
            if found is None:
                return None
            body, *tokens, latency_s, fingerprint = found
            decoded = json.loads(zlib.decompress(body))
        except _TROUBLE as error:
            raise _named(self.path, error) from None
        usage = Usage(**dict(zip(("input_tokens", "output_tokens", "cached_tokens"), tokens, strict=True)))
        return Answer(body=decoded, usage=usage, latency_s=latency_s, prompt_fingerprint=fingerprint)

    async def keep(self, key: bytes, answer: Answer) -> None:
        """Keep an answer; it is on file when this returns. What was kept before under the same key stays.

        A thread commits all that waits at once, so that the caller's loop has the time for something better.

        Raises
        ------
        UserError
            If the file cannot be written.
        """
        self._check()
        loop = asyncio.get_running_loop()
        kept: asyncio.Future[None] = loop.create_future()
        self._writer.queue.put((key, answer, loop, kept))
        await kept

    def remember(self, server: str | None, model: str, facts: Mapping[str, Any]) -> None:
        """Keep what was learned about a model at a server, in place of what was known.

        Parameters
        ----------
        server : str or None
            Its address; credentials in it are left out. None is in process.
        model : str
        facts : mapping
            Anything that JSON has.
        """
        self._check()
        row = (_bare(server), model, json.dumps(dict(facts), sort_keys=True), time.time())
        self._execute("INSERT OR REPLACE INTO servers VALUES (?, ?, ?, ?)", row)

    def facts(self, server: str | None, model: str) -> dict[str, Any] | None:
        """Recall what was learned about a model at a server; None where nothing was."""
        self._check()
        asked = (_bare(server), model)
        found = self._execute("SELECT facts FROM servers WHERE server = ? AND model = ?", asked)
        return dict(json.loads(found[0][0])) if found else None

    @property
    def n_answers(self) -> int:
        """How many are kept."""
        self._check()
        return int(self._execute("SELECT count(*) FROM answers", ())[0][0])

    def _execute(self, statement: str, values: tuple[Any, ...]) -> list[Any]:
        """Run one statement; outside a transaction each is one, and is committed."""
        try:
            with self._lock:
                return self._connection.execute(statement, values).fetchall()
        except _TROUBLE as error:
            raise _named(self.path, error) from None

    def close(self) -> None:
        """Close the file; a closed store is not used again."""
        self._close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check(self) -> None:
        """Refuse what would wait for ever."""
        if os.getpid() != self._process:  # it keeps none of the threads, and SQLite forbids it
            raise UserError("a store does not survive a fork: open it inside the worker process")
        if not self._close.alive:
            raise UserError(f"store {self.path}: is closed")


class _Writer:
    """A thread that commits what waits, all of it at once."""

    def __init__(self, path: Path) -> None:
        self.queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._path = path
        self.thread = threading.Thread(target=self._run, name="isograde-store", daemon=True)
        self.thread.start()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while (first := self.queue.get()) is not None:
            batch = [first]
            with suppress(Empty):
                while (another := self.queue.get_nowait()) is not None:
                    batch.append(another)
                self.queue.put(None)  # the end, to be met again
            problem: Exception | None = None
            try:
                connection = connection or _opened(self._path)
                _write(connection, [(key, answer) for key, answer, _, _ in batch])
            except _TROUBLE as error:
                problem = _named(self._path, error)
            except Exception as error:  # noqa: BLE001 - whatever it is, those who wait must be told
                problem = error
            by_loop: dict[asyncio.AbstractEventLoop, list[asyncio.Future[None]]] = {}
            for _, _, loop, kept in batch:
                by_loop.setdefault(loop, []).append(kept)
            for loop, waiting in by_loop.items():
                with suppress(RuntimeError):  # the loop was closed; nobody waits
                    loop.call_soon_threadsafe(_settle, waiting, problem)
        if connection is not None:
            connection.close()


def _write(connection: sqlite3.Connection, answers: list[tuple[bytes, Answer]]) -> None:
    """Write answers in one transaction."""
    now = time.time()
    rows = []
    for key, answer in answers:
        usage = answer.usage or Usage()
        content = answer.raw if answer.raw is not None else json.dumps(answer.body, separators=(",", ":")).encode()
        tokens = (usage.input_tokens, usage.output_tokens, usage.cached_tokens)
        rows.append((key, zlib.compress(content, 1), *tokens, answer.latency_s, answer.prompt_fingerprint, now))
    if len(rows) == 1:
        connection.execute(_WRITE, rows[0])  # a transaction of its own
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        connection.executemany(_WRITE, rows)
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # SQLite has rolled back by itself where the disk is full
            connection.execute("ROLLBACK")
        raise


def _settle(waiting: list[asyncio.Future[None]], problem: Exception | None) -> None:
    """Tell those who wait."""
    for kept in waiting:
        if kept.done():  # its task was cancelled
            continue
        if problem is None:
            kept.set_result(None)
        else:
            kept.set_exception(problem)


def _close(connection: sqlite3.Connection, writer: _Writer) -> None:
    """Let the writer finish, and close both connections."""
    writer.queue.put(None)
    if threading.current_thread() is not writer.thread:
        writer.thread.join(_PATIENCE_S)
    connection.close()


def _opened(path: Path) -> sqlite3.Connection:
    """Connect to a store, made where there is none."""
    if path.is_dir():
        raise UserError(f"store {path}: is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise UserError(f"store {path}: the folder {path.parent} is not there")
    with suppress(FileExistsError):  # a file that is there is never opened but by SQLite: closing it would drop SQLite's locks
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))  # what servers said is for its owner alone
    if 0 < path.stat().st_size < _SMALLEST:  # SQLite would take a single byte for an empty file
        raise UserError(f"store {path}: is another kind of file, and is left as it is; {_WAYS_OUT}")
    connection = sqlite3.connect(path, timeout=_PATIENCE_S, isolation_level=None, check_same_thread=False)
    try:
        _prepare(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables, or make sure that they are ours."""
    _refuse_foreign(connection, path)
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")  # those who read do not wait for who writes
            break
        except sqlite3.OperationalError as error:  # SQLite does not wait here by itself
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)
    # a killed process loses nothing; a power cut may lose the last moments, never the file
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _refuse_foreign(connection, path):
            for statement in filter(str.strip, _SCHEMA.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
    finally:
        connection.execute("COMMIT")


def _refuse_foreign(connection: sqlite3.Connection, path: Path) -> bool:
    """Refuse what is not ours before anything in it is changed; tell whether there is nothing in it yet."""
    application, version, n_tables = (
        connection.execute(asked).fetchone()[0]
        for asked in ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
    )
    if application != _APPLICATION and (n_tables or application):
        raise UserError(f"store {path}: is the database of another program, and is left as it is; {_WAYS_OUT}")
    if application == _APPLICATION and version > _VERSION:
        raise UserError(f"store {path}: was written by a newer isograde, and is left as it is; update, or {_WAYS_OUT}")
    return bool(application != _APPLICATION)


_WAYS_OUT = "name another one (--store PATH), or go without (--no-store)"


_TROUBLE = (sqlite3.Error, zlib.error, ValueError, OSError)


def _named(path: Path, error: Exception) -> UserError:
    """Say what befell a file in one line that names it."""
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return UserError(f"store {path}: is another kind of file, and is left as it is; {_WAYS_OUT}")
    if isinstance(error, sqlite3.DatabaseError | zlib.error | ValueError) and not isinstance(error, sqlite3.OperationalError):
        return UserError(f"store {path}: is damaged ({error}), and is left as it is; {_WAYS_OUT}")
    return UserError(f"store {path}: cannot be used: {getattr(error, 'strerror', None) or error}; {_WAYS_OUT}")


def _bare(server: str | None) -> str:
    """Leave credentials, query and fragment out of an address."""
    if server is None:
        return ""
    parts = urlsplit(server)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", "")).rstrip("/")
