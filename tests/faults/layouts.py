"""Small stores made from real records, one for each way in which a harness lays down a session.

A layout has a target, to which faults are done, and a witness, a session that nobody touches and that every command
must still find. What the target is made of are its units: lines of a file, rows of a table, files of a tree. A new
harness is one row more in LAYOUTS.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import zstandard
from sample import FIXTURES
from total_recall.notices import Notices
from total_recall.stores.base import Reference, Store
from total_recall.stores.registry import adapter

from tests.stores.rich_transcripts import ID, RICH, pi_entry
from tests.stores.transcripts import ROOTS, moment

Units = Sequence[bytes | None]  # None is a unit that is taken out


class Laid:
    """A store in a scratch folder, as lines of one file.

    `root` is what the harness's override names, `path` the file that holds the target's units.
    """

    lines = True

    def __init__(self, harness: str, root: Path, target: str, witness: str, path: Path) -> None:
        self.harness = harness
        self.root = root
        self.target = target
        self.witness = witness
        self.path = path

    def units(self) -> list[bytes]:
        return [line for line in self.path.read_bytes().split(b"\n") if line.strip()]

    def put(self, units: Units) -> None:
        """Write other units in the place of the present ones."""
        self.path.write_bytes(b"".join(unit + b"\n" for unit in units if unit is not None))

    def spoil(self, place: int, unit: bytes | None) -> None:
        """Put another unit in the place of one."""
        units: list[bytes | None] = list(self.units())
        units[place] = unit
        self.put(units)

    def remove(self) -> None:
        """Delete the target, as its harness does."""
        self.path.unlink(missing_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        return {f"TOTAL_RECALL_{self.harness.upper()}_ROOT": str(self.root)}

    def store(self) -> Store:
        kind = adapter(self.harness)
        place = kind.locate(self.environment)
        assert place is not None
        return kind(place, Notices())

    def session(self, store: Store, session_id: str = "") -> Reference:
        known = {session.session_id: session for session in store.sessions()}
        wanted = session_id or self.target
        # What names a session may be what was damaged.
        return known[wanted] if wanted in known else next(s for s in known.values() if s.path == str(self.path))

    def messages(self, session_id: str = "") -> list[dict]:
        store = self.store()
        return list(store.messages(self.session(store, session_id)))


def told(messages: Sequence[dict]) -> list[dict]:
    """What messages say, without what depends on other records: their places, and the tokens of their response."""
    moving = ("id", "ref", "usage")
    return [{key: value for key, value in message.items() if key not in moving} for message in messages]


def copied(source: Path, folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return Path(shutil.copyfile(source, folder / source.name))


# -- Claude Code -----------------------------------------------------------------------------------------------

CLAUDE = FIXTURES / "claude" / ".claude" / "projects"
ALPHA, BETA = "-home-dev-projects-alpha", "-home-dev-projects-beta"


def _claude(session_id: str) -> Callable[[Path], Laid]:
    def lay(scratch: Path) -> Laid:
        root, witness = scratch / "projects", "132262bd-16fc-48a6-afe1-c4044b2958a0"
        copied(CLAUDE / ALPHA / f"{witness}.jsonl", root / ALPHA)
        path = copied(CLAUDE / BETA / f"{session_id}.jsonl", root / BETA)
        return Laid("claude", root, session_id, witness, path)

    return lay


def _claude_agent(scratch: Path) -> Laid:
    parent, child = "2e1284c2-3d25-4b07-9a11-674ef856c285", "agent-a5d4b94cefe249c50"
    root = scratch / "projects"
    copied(CLAUDE / BETA / f"{parent}.jsonl", root / BETA)
    path = copied(CLAUDE / BETA / parent / "subagents" / f"{child}.jsonl", root / BETA / parent / "subagents")
    return Laid("claude", root, child, parent, path)


# -- Codex CLI -------------------------------------------------------------------------------------------------

CODEX = FIXTURES / "codex" / ".codex" / "sessions"
DAY = Path("2026/11/30")


def _codex(name: str) -> Callable[[Path], Laid]:
    def lay(scratch: Path) -> Laid:
        root, witness = scratch / "sessions", "rollout-2026-11-30T21-25-08-01a22e58-e892-7303-9227-b6937abe33d5"
        copied(CODEX / DAY / f"{witness}.jsonl", root / DAY)
        path = copied(CODEX / DAY / f"{name}.jsonl", root / DAY)
        return Laid("codex", root, name[-36:], witness[-36:], path)

    return lay


class Compressed(Laid):
    """A rollout that Codex compressed."""

    def units(self) -> list[bytes]:
        with zstandard.ZstdDecompressor().stream_reader(self.path.read_bytes()) as plain:
            return [line for line in plain.read().split(b"\n") if line.strip()]

    def put(self, units: Units) -> None:
        plain = b"".join(unit + b"\n" for unit in units if unit is not None)
        self.path.write_bytes(zstandard.compress(plain))


def _codex_zst(scratch: Path) -> Laid:
    laid = _codex("rollout-2026-11-30T21-25-50-01a22e59-8ec3-7d02-b463-9c84e5f8d3ba")(scratch)
    units = laid.units()
    laid.path.unlink()
    laid = Compressed(laid.harness, laid.root, laid.target, laid.witness, laid.path.with_suffix(".jsonl.zst"))
    laid.put(units)
    return laid


# -- Mistral Vibe ----------------------------------------------------------------------------------------------

VIBE = FIXTURES / "vibe"


class Folder(Laid):
    """A session that is a folder; `path` is the file that grows."""

    def remove(self) -> None:
        for folder in self.root.rglob(f"*{self.target[:8]}*"):
            shutil.rmtree(folder, ignore_errors=True)


def _vibe(scratch: Path) -> Laid:
    root, sessions = scratch / "logs" / "session", VIBE / "legacy-2.18.4" / "logs" / "session"
    names = ("session_20261130_210435_6608c432", "session_20261130_210457_7bc9c667")
    for name in names:
        shutil.copytree(sessions / name, root / name)
    target, witness = (orjson.loads((root / name / "meta.json").read_bytes())["session_id"] for name in names)
    return Folder("vibe", root, target, witness, root / names[0] / "messages.jsonl")


def _vibe_unified(scratch: Path) -> Laid:
    root, sessions = scratch / "logs" / "session", VIBE / "mixed-3.0.3" / "logs" / "session" / "unified"
    target, witness = "c571e370-583f-8990-1bb0-c8d0b4fd50b6", "23d1ec3d-51bf-885b-9c2a-ebdc10f5090f"
    for name in (target, witness):
        shutil.copytree(sessions / name, root / "unified" / name)
    return Folder("vibe", root, target, witness, root / "unified" / target / "journal" / "0000000000000020.jsonl")


# -- OpenCode --------------------------------------------------------------------------------------------------

OPENCODE = FIXTURES / "opencode"
_IN_TABLES = ("ses_dd1c0450effekBAGP48BmpmOTZ", "ses_dd1bfbaeeffeabnKmQ7EEyGC95")
_IN_TREE = ("ses_dd1aa321dffejsy9IgIUQyl0xe", "ses_dd1aa124fffesPaxbryO5vvjFK")


@cache
def small_database() -> bytes:
    """The database of a real store with two of its sessions, and without the log of events."""
    source = f"file:{OPENCODE / 'main-1.18.33' / 'opencode' / 'opencode.db'}?immutable=1"
    with closing(sqlite3.connect(source, uri=True)) as real, closing(sqlite3.connect(":memory:")) as made:
        real.backup(made)
        for table, key in (("session", "id"), ("message", "session_id"), ("part", "session_id")):
            made.execute(f"DELETE FROM {table} WHERE {key} NOT IN (?, ?)", _IN_TABLES)
        made.execute("DELETE FROM event")
        made.commit()
        made.execute("VACUUM")
        return made.serialize()


class Rows(Laid):
    """The parts of a session in OpenCode's database."""

    lines = False

    def _rows(self, database: sqlite3.Connection) -> list[tuple[int, bytes]]:
        order = "SELECT p.rowid, CAST(p.data AS BLOB) FROM part p JOIN message m ON m.id = p.message_id"
        order += " WHERE p.session_id = ? ORDER BY m.time_created, m.id, p.id"
        return database.execute(order, (self.target,)).fetchall()

    def units(self) -> list[bytes]:
        with closing(sqlite3.connect(self.path)) as database:
            return [data for _, data in self._rows(database)]

    def put(self, units: Units) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            for (row, before), unit in zip(self._rows(database), units, strict=True):
                if unit is None:
                    database.execute("DELETE FROM part WHERE rowid = ?", (row,))
                elif unit != before:
                    database.execute("UPDATE part SET data = CAST(? AS TEXT) WHERE rowid = ?", (unit, row))
            database.commit()

    def remove(self) -> None:
        with closing(sqlite3.connect(self.path)) as database:
            for table, key in (("part", "session_id"), ("message", "session_id"), ("session", "id")):
                database.execute(f"DELETE FROM {table} WHERE {key} = ?", (self.target,))
            database.commit()


def _opencode(scratch: Path) -> Laid:
    root = scratch / "opencode"
    root.mkdir(parents=True)
    (root / "opencode.db").write_bytes(small_database())
    return Rows("opencode", root, *_IN_TABLES, root / "opencode.db")


class Files(Laid):
    """The parts of a session in OpenCode's JSON tree; `path` is the folder of all parts."""

    lines = False

    def files(self) -> list[Path]:
        """The parts' files in their order."""
        stored = map(
            orjson.loads, (file.read_bytes() for file in (self.path.parent / "message" / self.target).iterdir())
        )
        messages = sorted((message["time"]["created"], message["id"]) for message in stored)
        return [file for _, message in messages for file in sorted((self.path / message).glob("*.json"))]

    def units(self) -> list[bytes]:
        return [file.read_bytes() for file in self.files()]

    def put(self, units: Units) -> None:
        for file, unit in zip(self.files(), units, strict=True):
            if unit is None:
                file.unlink()
            elif unit != file.read_bytes():
                file.write_bytes(unit)

    def remove(self) -> None:
        storage = self.path.parent
        for file in storage.glob(f"session/*/{self.target}.json"):
            file.unlink()
        for message in (storage / "message" / self.target).glob("*.json"):
            shutil.rmtree(self.path / message.stem, ignore_errors=True)
        shutil.rmtree(storage / "message" / self.target, ignore_errors=True)


def _opencode_tree(scratch: Path) -> Laid:
    root, source = scratch / "opencode", OPENCODE / "json-1.1.65" / "opencode" / "storage"
    storage = root / "storage"
    for file in source.glob("session/*/*.json"):
        if file.stem in _IN_TREE:
            copied(file, storage / file.parent.relative_to(source))
    for session in _IN_TREE:
        shutil.copytree(source / "message" / session, storage / "message" / session)
        for message in (source / "message" / session).iterdir():
            if (source / "part" / message.stem).is_dir():
                shutil.copytree(source / "part" / message.stem, storage / "part" / message.stem)
    return Files("opencode", root, *_IN_TREE, storage / "part")


# -- Gemini CLI, Qwen Code, Pi, Copilot CLI --------------------------------------------------------------------


def _transcript(harness: str, witness: str) -> Callable[[Path], Laid]:
    def lay(scratch: Path) -> Laid:
        target = RICH[harness](scratch)
        target.write()
        shutil.copytree(FIXTURES / harness / ROOTS[harness], target.root, dirs_exist_ok=True)
        return Laid(harness, target.root, ID, witness, target.path)

    return lay


LAYOUTS: dict[str, Callable[[Path], Laid]] = {
    "claude": _claude("b8fc6a97-7c0a-45d4-ad32-39e352bb436e"),
    "claude 2.0": _claude("fddd7876-f01c-4a01-b4a9-05fce0ec7eae"),
    "claude 1.0": _claude("4dc982ac-6166-455d-ae91-4a9dfceb50ef"),
    "claude agent": _claude_agent,
    "codex": _codex("rollout-2026-11-30T21-25-45-01a22e59-7a90-7503-a343-20ce36c1b4b6"),
    "codex 0.45": _codex("rollout-2026-11-30T21-25-50-01a22e59-8ec3-7d02-b463-9c84e5f8d3ba"),
    "codex 0.20": _codex("rollout-2026-11-30T21-25-51-8f1c7b9f-5cdc-4693-9836-c233f615e185"),
    "codex zst": _codex_zst,
    "vibe": _vibe,
    "vibe unified": _vibe_unified,
    "gemini": _transcript("gemini", "6d6adfca-0030-4b33-b040-b63202ed4a5a"),
    "qwen": _transcript("qwen", "81ae830b-c7d6-49bc-9849-6b3c0df2eacb"),
    "pi": _transcript("pi", "01a22e4e-cc36-73e9-bcc0-d0fa39f461d3"),
    "copilot": _transcript("copilot", "6a993b45-8751-48dd-85f2-5b6eca4149fb"),
    "opencode": _opencode,
    "opencode tree": _opencode_tree,
}
LINES = [name for name in LAYOUTS if not name.startswith("opencode")]
# One layout of each harness, the present one: for faults that have nothing to do with how records are written.
HARNESSES = ["claude", "codex", "vibe", "vibe unified", "opencode", "gemini", "qwen", "pi", "copilot"]


def lay_all(scratch: Path) -> Iterator[Laid]:
    """One store of each harness."""
    for name in ("claude", "codex", "vibe", "opencode", "gemini", "qwen", "pi", "copilot"):
        yield LAYOUTS[name](scratch / name)


# -- under another id ------------------------------------------------------------------------------------------


def _renamed_file(laid: Laid, session_id: str) -> None:
    laid.path = laid.path.rename(laid.path.with_name(f"{session_id}.jsonl"))


def _renamed_record(*keys: str) -> Callable[[Laid, str], None]:
    def rename(laid: Laid, session_id: str) -> None:
        first = orjson.loads(laid.units()[0])
        holder = first
        for key in keys[:-1]:
            holder = holder[key]
        holder[keys[-1]] = session_id
        laid.spoil(0, orjson.dumps(first))

    return rename


def _renamed_folder(laid: Laid, session_id: str) -> None:
    laid.path = laid.path.parent.rename(laid.path.parent.with_name(session_id)) / laid.path.name


def _renamed_document(laid: Laid, session_id: str) -> None:
    path = laid.path.with_name("meta.json")
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"session_id": session_id}))


def _renamed_row(laid: Laid, session_id: str) -> None:
    with closing(sqlite3.connect(laid.path)) as database:
        for table, key in (("session", "id"), ("message", "session_id"), ("part", "session_id")):
            database.execute(f"UPDATE {table} SET {key} = ? WHERE {key} = ?", (session_id, laid.target))
        database.commit()


_RENAMED = {
    "claude": _renamed_file,
    "codex": _renamed_record("payload", "id"),
    "vibe": _renamed_document,
    "opencode": _renamed_row,
    "gemini": _renamed_record("sessionId"),
    "qwen": _renamed_file,
    "pi": _renamed_record("id"),
    "copilot": _renamed_folder,
}


def renamed(laid: Laid, session_id: str) -> None:
    """Give the target another id, where its harness takes it from."""
    _RENAMED[laid.harness](laid, session_id)
    laid.target = session_id


# -- in another directory --------------------------------------------------------------------------------------

_FOLDERS = ("cwd", "working_directory", "directory")


def _elsewhere(value: Any, directory: str) -> Any:
    """A record with another working directory wherever it has one."""
    if isinstance(value, dict):
        return {key: directory if key in _FOLDERS else _elsewhere(held, directory) for key, held in value.items()}
    return [_elsewhere(held, directory) for held in value] if isinstance(value, list) else value


def placed(laid: Laid, directory: str, since: float = 0) -> None:
    """Let the target have worked in a directory; where its records say it, in their part from `since` on."""
    if laid.harness == "gemini":
        (laid.path.parent.parent / ".project_root").write_text(directory)
    elif isinstance(laid, Rows):
        with closing(sqlite3.connect(laid.path)) as database:
            database.execute("UPDATE session SET directory = ? WHERE id = ?", (directory, laid.target))
            database.commit()
    elif laid.harness in ("vibe", "opencode"):
        for path in laid.root.rglob("*.json"):
            if laid.target in path.read_text():
                path.write_bytes(orjson.dumps(_elsewhere(orjson.loads(path.read_bytes()), directory)))
    else:
        units = laid.units()
        moved = [orjson.dumps(_elsewhere(orjson.loads(unit), directory)) for unit in units]
        laid.put([*units[: round(len(units) * since)], *moved[round(len(units) * since) :]])


# -- under another title ---------------------------------------------------------------------------------------


def _with_record(record: Callable[[str, str], dict]) -> Callable[[Laid, str], None]:
    def entitle(laid: Laid, title: str) -> None:
        laid.put([*laid.units(), orjson.dumps(record(laid.target, title))])

    return entitle


def _qwen_title(session_id: str, title: str) -> dict:
    payload = {"subtype": "custom_title", "systemPayload": {"customTitle": title}}
    return {"uuid": title, "sessionId": session_id, "timestamp": moment(30), "type": "system"} | payload


def _with_document(laid: Laid, title: str) -> None:
    path = laid.path.with_name("meta.json")
    path.write_bytes(orjson.dumps(orjson.loads(path.read_bytes()) | {"title": title}))


def _with_row(laid: Laid, title: str) -> None:
    with closing(sqlite3.connect(laid.path)) as database:
        database.execute("UPDATE session SET title = ? WHERE id = ?", (title, laid.target))
        database.commit()


def _with_index(laid: Laid, title: str) -> None:
    line = orjson.dumps({"id": laid.target, "thread_name": title, "updated_at": moment(0)})
    (laid.root.parent / "session_index.jsonl").write_bytes(line + b"\n")


def _with_file_beside(laid: Laid, title: str) -> None:
    laid.path.with_name("workspace.yaml").write_bytes(b"name: " + orjson.dumps(title) + b"\n")


_ENTITLED = {
    "claude": _with_record(lambda session, title: {"type": "ai-title", "aiTitle": title, "sessionId": session}),
    "codex": _with_index,
    "vibe": _with_document,
    "opencode": _with_row,
    "gemini": _with_record(lambda _, title: {"$set": {"summary": title}}),
    "qwen": _with_record(_qwen_title),
    "pi": _with_record(lambda _, title: pi_entry(title, "ed", 30, "session_info", name=title)),
    "copilot": _with_file_beside,
}


def entitled(laid: Laid, title: str) -> None:
    """Give the target a title, where its harness keeps it."""
    _ENTITLED[laid.harness](laid, title)
