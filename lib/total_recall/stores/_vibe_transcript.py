"""Vibe's unified store (2.26, 3.x) on disk: the transcript of one session as generations, chunks and journal.

A session is a folder. CURRENT names a generation; its manifest names three documents, of which two are read here:
the projection (the transcript) and the checkpoint (the model's context). Their lists lie in `chunks/`, arrays of about
64 KiB named by digest, in the manifest's order; what happened since the generation was written lies in the journal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from ..notices import Notices, Unreadable
from ..record import Record
from ..regular import open_regular
from ._jsonl import Lines, objects, parse
from ._vibe_text import document, fields
from .base import stamp

KNOWN_MINOR = 10  # the newest store_format_minor that has been seen


class Placed(NamedTuple):
    """One transcript entry, its number, the file that holds it, and the beginning of its piece.

    `mark` is [place of the piece, its digest, the number of its first entry, its offset]: from there a walk can go on.
    """

    number: int
    path: str
    mark: list[Any]
    entry: dict[str, Any]


class Generation(NamedTuple):
    """A snapshot that can be read: its manifest, its projection document, and the session's folder."""

    folder: str
    name: str
    manifest: dict[str, Any]
    projection: dict[str, Any]

    @property
    def sequence(self) -> int:
        """The number of the last journal record that is in the snapshot."""
        sequence = self.manifest.get("snapshot_sequence")
        return sequence if isinstance(sequence, int) else -1

    @property
    def snapshot(self) -> dict[str, Any]:
        return fields(self.projection.get("snapshot"))

    def path(self, document_name: str) -> str:
        """The path of one of the manifest's documents: `projection_state`, `runtime_state` or `checkpoint`."""
        default = document_name.replace("_", "-") + ".json"
        return os.path.join(
            self.folder, "generations", self.name, _file(fields(self.manifest.get(document_name)).get("path"), default)
        )

    def chunks(self, document_name: str) -> list[tuple[str, str]]:
        """(path, digest) of each chunk of a document."""
        names = fields(self.manifest.get(document_name)).get("chunks")
        digests = [_file(name, "") for name in names] if isinstance(names, list) else []
        return [(os.path.join(self.folder, "chunks", digest + ".json"), digest) for digest in digests if digest]


def _file(name: Any, default: str) -> str:
    """A name out of the store, if it is that of a file and leads nowhere else."""
    return name if isinstance(name, str) and name not in ("", ".", "..") and not set("/\\\0") & set(name) else default


def open_generation(folder: str, notices: Notices) -> Generation | None:
    """The generation that CURRENT names, else the newest that can be read, with a notice.

    None when there is a journal but no generation. Raises Unreadable, and FileNotFoundError when the folder is gone.
    """
    damage = ""
    for _ in range(2):  # a live session may drop the generation between two reads
        named, minor, damage = _current(folder)
        try:
            if named:
                generation = _generation(folder, named)
                _warn_of_newer(folder, minor, notices)
                return generation
        except (Unreadable, FileNotFoundError) as error:
            damage = f"generation {named} is damaged ({error})"
    for name in _generations(folder):
        try:
            generation = _generation(folder, name)
        except (Unreadable, FileNotFoundError):
            continue
        notices.say(f"{folder}: {damage}; read generation {name} and the journal after it")
        return generation
    if segments(folder, -1):
        notices.say(f"{folder}: {damage}; read the journal alone")
        return None
    if not os.path.isdir(folder):
        raise FileNotFoundError(folder)
    raise Unreadable(folder, f"{damage}, and no other generation can be read")


def _current(folder: str) -> tuple[str, Any, str]:
    """What CURRENT says: the generation's name, the store format's minor number; and why it says nothing."""
    try:
        current = fields(document(os.path.join(folder, "CURRENT")))
    except FileNotFoundError:
        return "", None, "CURRENT is missing"
    except Unreadable as error:
        return "", None, f"CURRENT is damaged ({error.reason})"
    return _file(current.get("generation"), ""), current.get("store_format_minor"), "CURRENT names no generation"


def _generation(folder: str, name: str) -> Generation:
    path = os.path.join(folder, "generations", name, "manifest.json")
    manifest = document(path)
    if not isinstance(fields(manifest).get("projection_state"), dict):
        raise Unreadable(path, "no projection_state in it")
    generation = Generation(folder, name, manifest, {})
    projection = document(generation.path("projection_state"))
    if not isinstance(projection, dict):
        raise Unreadable(generation.path("projection_state"), "not a JSON object")
    return generation._replace(projection=projection)


def _generations(folder: str) -> list[str]:
    """The names of all generations, newest first: they are numbers of equal length."""
    try:
        return sorted(os.listdir(os.path.join(folder, "generations")), reverse=True)
    except OSError:
        return []


def _warn_of_newer(folder: str, minor: Any, notices: Notices) -> None:
    if isinstance(minor, int) and minor > KNOWN_MINOR:
        notices.say(f"{folder}: written by a newer Vibe (store format 1.{minor}); what is new in it is not interpreted")


def segments(folder: str, sequence: int) -> list[str]:
    """The journal files that begin after record `sequence`, in order. Raises Unreadable."""
    journal = os.path.join(folder, "journal")
    try:
        names = os.listdir(journal)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise Unreadable(journal, error) from error
    numbered = sorted((int(name[:-6]), name) for name in names if name.endswith(".jsonl") and name[:-6].isdecimal())
    return [os.path.join(journal, name) for number, name in numbered if number > sequence]


class _Journal:
    """What the journal changes: entries replaced, removed and appended, each with the file that says so."""

    def __init__(self) -> None:
        self.rewritten = False  # whether the journal holds the whole transcript
        self.replaced: dict[str, tuple[str, dict[str, Any]]] = {}
        self.removed: set[str] = set()
        self.appended: list[tuple[str, dict[str, Any]]] = []

    def read(self, path: str, notices: Notices, whole: bool) -> None:
        """Apply one segment. A blank line stands between its records; the last may be torn."""
        for _, _, value in Lines(path, notices, lambda value: "payload" in value and "type" in value, whole=whole):
            for change in changes(value) if value is not None else ():
                self._apply(change, path)

    def _apply(self, change: dict[str, Any], path: str) -> None:
        name, entry = change.get("id"), change.get("entry")
        match change.get("op"):
            case "append_entry" if isinstance(entry, dict):
                self.appended.append((path, entry))
            case "replace_entry" if isinstance(entry, dict) and isinstance(name, str):
                places = [place for place, (_, known) in enumerate(self.appended) if known.get("id") == name]
                if places:
                    self.appended[places[0]] = (path, entry)
                else:
                    self.replaced[name] = (path, entry)
            case "remove_entry" if isinstance(name, str):
                self.appended = [(where, known) for where, known in self.appended if known.get("id") != name]
                self.removed.add(name)
            case "set_history_entries":
                entries = change.get("entries")
                if isinstance(entries, list):
                    self.appended = [(path, known) for known in entries if isinstance(known, dict)]
                    self.rewritten = True


def changes(record: dict[str, Any]) -> list[dict[str, Any]]:
    """The operations on the transcript in one journal record; most records hold none."""
    payload = fields(record.get("payload"))
    if record.get("type") == "projection_delta" and isinstance(payload.get("delta"), list):
        return [change for change in payload["delta"] if isinstance(change, dict)]
    if record.get("type") == "projection_advanced":  # up to store format 1.1: the whole state
        history = fields(fields(payload.get("snapshot")).get("history"))
        if isinstance(history.get("entries"), list):
            return [{"op": "set_history_entries", "entries": history["entries"]}]
    return []


class Transcript:
    """The transcript entries of one session. The chunks are read one after the other, the journal is held in memory.

    Raises Unreadable, and FileNotFoundError when the folder is gone.
    """

    def __init__(self, folder: str, notices: Notices, *, whole: bool = False) -> None:
        self.folder = folder
        self._notices = notices
        self.generation = open_generation(folder, notices)
        sequence = self.generation.sequence if self.generation else -1
        self._journal = _Journal()
        for path in segments(folder, sequence):
            try:
                self._journal.read(path, notices, whole)
            except FileNotFoundError:
                pass  # its generation was replaced meanwhile
        self._pieces: list[tuple[str, str]] = []
        if self.generation and not self._journal.rewritten:
            self._pieces.append((self.generation.path("projection_state"), ""))
            self._pieces += self.generation.chunks("projection_state")

    def entries(self, mark: list[Any] | None = None, *, snapshot: bool = False) -> Iterator[Placed]:
        """The entries, from the piece that `mark` names on if it is still there, else from the beginning.

        With `snapshot`, those that only the journal holds are left out.
        """
        start: list[Any] = mark if mark and self._stands(mark) else [0, "", 0, 0]
        place, _, number, offset = start
        for piece in range(place, len(self._pieces)):
            path, digest = self._pieces[piece]
            values, size = self._piece(piece)
            mark = [piece, digest, number, offset]
            for value in values:
                if (live := self._live(path, value)) is not None:
                    yield Placed(number, live[0], mark, live[1])
                    number += 1
            offset += size
        mark = [len(self._pieces), "journal", number, offset]
        for path, value in () if snapshot else self._journal.appended:
            yield Placed(number, path, mark, value)
            number += 1

    def _stands(self, mark: list[Any]) -> bool:
        place, digest = mark[:2]
        if digest == "journal":
            return place == len(self._pieces)
        return place < len(self._pieces) and self._pieces[place][1] == digest

    def _piece(self, piece: int) -> tuple[list[Any], int]:
        """The stored entries of one piece, and its size in bytes."""
        if piece == 0 and self.generation:
            entries = fields(self.generation.snapshot.get("history")).get("entries")
            return (entries if isinstance(entries, list) else []), 0
        return self._array(self._pieces[piece][0])

    def _array(self, path: str) -> tuple[list[Any], int]:
        """The values of a chunk; of a damaged one those that are whole, with a notice."""
        try:
            with open_regular(path) as source:
                text = source.read()
        except FileNotFoundError:
            self._notices.say(f"{path}: missing, its records are lost; everything else was read")
            return [], 0
        except (OSError, Unreadable) as error:
            self._notices.say(f"{error}; everything else was read")
            return [], 0
        try:
            values = orjson.loads(text)
        except ValueError:
            values = parse(text)
        if values is None:
            values = [value for _, value in objects(text) if _whole_record(value)]
            self._notices.say(f"{path}: damaged; {len(values)} of its records and everything else were read")
        if not isinstance(values, list):
            self._notices.say(f"{path}: not a list of records; everything else was read")
            return [], len(text)
        return values, len(text)

    def _live(self, path: str, value: Any) -> tuple[str, dict[str, Any]] | None:
        """A stored entry as the journal left it, with the file that says so; None if it is gone."""
        if not isinstance(value, dict):
            return None
        name = value.get("id")
        if not isinstance(name, str):
            return path, value
        return None if name in self._journal.removed else self._journal.replaced.get(name, (path, value))

    def size(self) -> int:
        """The bytes of the snapshot's transcript."""
        return sum(stamp(path)[0] for path, _ in self._pieces)

    def find(self, name: str, mark: list[Any] | None = None) -> Placed | None:
        """The entry with this id, looked for from `mark` on."""
        return next((placed for placed in self.entries(mark) if placed.entry.get("id") == name), None)

    def checkpoint(self) -> dict[str, Any]:
        """The document of the model's context, without its messages; empty when it cannot be read."""
        try:
            return fields(document(self.generation.path("checkpoint"))) if self.generation else {}
        except FileNotFoundError:
            return {}
        except Unreadable as error:
            self._notices.say(f"{error}; everything else was read")
            return {}

    def context(self) -> list[dict[str, Any]]:
        """The messages that the model had before it when the generation was written."""
        if self.generation is None:
            return []
        stored = fields(self.checkpoint().get("context")).get("messages")
        messages = list(stored) if isinstance(stored, list) else []
        for path, _ in self.generation.chunks("checkpoint"):
            messages += self._array(path)[0]
        return [value for value in messages if isinstance(value, dict)]


def _whole_record(value: dict[str, Any]) -> bool:
    """Whether an object out of a damaged chunk is a record and not a piece of one."""
    return "message" in value or ("createdAt" in value and "type" in value)


def entry_in(path: str, name: str, notices: Notices) -> dict[str, Any] | None:
    """The entry with this id in one file of a session: a chunk, a projection document or a journal segment."""
    if path.endswith(".jsonl"):
        found = None
        for _, _, value in Lines(path, notices, lambda value: "payload" in value, whole=True):
            for change in changes(value) if value is not None else ():
                entries = change.get("entries") if change.get("op") == "set_history_entries" else [change.get("entry")]
                for entry in entries if isinstance(entries, list) else ():
                    if fields(entry).get("id") == name:
                        found = entry
        return found
    stored = document(path)
    if isinstance(stored, dict):
        stored = fields(fields(stored.get("snapshot")).get("history")).get("entries")
    entries = stored if isinstance(stored, list) else []
    return next((entry for entry in entries if fields(entry).get("id") == name), None)


def runtime_state(generation: Generation) -> Record:
    """The document that says what a session is: `identity`, `session_metadata`, `import_provenance`."""
    try:
        return fields(document(generation.path("runtime_state")))
    except (Unreadable, FileNotFoundError):
        return {}
