"""Mistral Vibe: session folders (2.x) and the unified store (2.26, 3.x) side by side in `logs/session`.

```
session_20261130_210435_6608c432/{messages.jsonl,meta.json}       the prefix can be configured; the time is UTC
session_20261130_210528_6a03d39c/agents/explore_.../{same}        a sub-agent of that session
session_20250101_120000_0a1b2c3d.json                             1.x: one document, metadata and messages
unified/<session id>/{CURRENT,generations,chunks,journal,meta.json}
unified/child-<24 hex digits>/                                    a sub-agent, without meta.json
```

Headless `--continue` and `--resume` of 2.x copy the whole folder and go on in the copy, with the same message ids:
such folders are one session. Rewinding copies a part of it: two sessions with a common beginning. Compaction (up to
2.18) begins a new folder. What else lies there (`active`, `plugins`, caches with a dot) is no session.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import Any

from ..notices import Unreadable
from ..record import Record, one_line
from ..regular import open_regular
from ..times import from_epoch, rfc3339
from ._vibe_legacy import Folder, document_head, folder_files, head, identities
from ._vibe_lineage import Found, families, unified_head
from ._vibe_text import FRAME, HARNESS, SCRATCHPAD
from ._vibe_unified import Unified
from .base import Entry, Place, Reference, State, Store, newest_first, stamp, stands

_CONFIG_BYTES = 1 << 20
_SAVE_DIR = re.compile(rb"""\bsave_dir["']?\s*=\s*["']*([^"'\n]*)""")
_STAMPED = re.compile(r".*_\d{8}_\d{6}_\w+\Z")  # how folders and documents of sessions are named, after the prefix


class Vibe(Store):
    """The sessions of Mistral Vibe.

    `Reference.key` is a JSON object: `layout` (`folder` or `unified`); of a folder also `parent` (the session whose
    sub-agent it is), `forked_from`, `copied` (the offset up to which its lines are another's) and `start_time`.
    """

    harness = HARNESS

    @classmethod
    def locate(cls, environ: Mapping[str, str]) -> Place | None:
        variable = "TOTAL_RECALL_VIBE_ROOT"
        override = environ.get(variable, "").strip()
        home, user = environ.get("VIBE_HOME", "").strip(), environ.get("HOME", "").strip()
        if override:
            root = override
        elif home or user:
            base = home or os.path.join(user, ".vibe")
            root = _configured(base, user) or os.path.join(base, "logs", "session")
        else:
            return None
        root = os.path.abspath(root)
        return Place(root, variable, bool(override), os.path.join(os.path.dirname(root), ".tantivy"))

    # -- which sessions there are ------------------------------------------------------------------------------

    def sessions(self, since: float = 0.0, directory: str = "") -> list[Reference]:
        """All sessions. The heads of folders are read, for ids and for what is one session; they are remembered."""
        try:
            with os.scandir(self.root) as entries:
                names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise Unreadable(self.root, error) from error
        found = [*self._references(list(self._folders(names))), *self._unified()]
        return newest_first(found, since)

    def _folders(self, names: list[str]) -> Iterator[Found]:
        visited = {os.path.realpath(self.root)}
        for name in names:
            path = os.path.join(self.root, name)
            if name.endswith(".json"):
                if _STAMPED.match(name[:-5]) and name[:-5] not in names:
                    yield self._document(path)
            elif name != "unified":
                yield from self._folder(path, None, visited)

    def _folder(self, path: str, parent: str | None, visited: set[str]) -> Iterator[Found]:
        """A session's folder and, below it, those of its sub-agents."""
        messages, meta = folder_files(path)
        stamps = stamp(messages) + stamp(meta)
        if not stamps[2]:
            if not (_STAMPED.match(path) and stands(messages)):
                return
            self.notices.fail(path, _barred(path, messages))
        about = self.remember("head", path, stamps, lambda _: head(meta, messages))
        yield Found(path, (messages, meta), stamps, about, parent)
        agents = os.path.join(path, "agents")
        try:
            children = sorted(os.listdir(agents))
        except OSError:
            return
        if (real := os.path.realpath(agents)) not in visited:
            visited.add(real)
            for name in children:
                yield from self._folder(os.path.join(agents, name), path, visited)

    def _document(self, path: str) -> Found:
        """A session of 1.x; a folder of the same name is what 2.x made of it."""
        about = self.remember("head", path, stamp(path), lambda _: document_head(path))
        return Found(path, (path,), stamp(path), about, None)

    def _references(self, found: list[Found]) -> Iterator[Reference]:
        """Folders with a common beginning share the first message's id; only those are compared."""
        groups: dict[str, list[Found]] = {}
        for each in found:
            groups.setdefault(each.head["first"] or each.path, []).append(each)
        known = [family for group in groups.values() for family in families(group, self._chain)]
        owners = {each.path: family.session_id for family in known for each in family.members}
        for family in known:
            here = family.canonical
            names = {each.name: None for each in family.members} | {each.session_id: None for each in family.members}
            names.pop(here.session_id)
            updated = max(here.stamps[1::3]) or stamp(here.path)[1]
            yield Reference(
                HARNESS,
                here.session_id,
                here.path,
                max(updated / 1e9, 0.0),
                sum(here.stamps[::3]),
                here.files,
                tuple(names),
                family.key(owners),
            )

    def _chain(self, each: Found) -> list[list[Any]]:
        return self.remember("ids", each.path, each.stamps, lambda _: identities(each.files[0]))

    def _unified(self) -> Iterator[Reference]:
        folder = os.path.join(self.root, "unified")
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: (entry.is_symlink(), entry.name))
        except FileNotFoundError:
            return
        except OSError as error:
            self.notices.fail(HARNESS, Unreadable(folder, error))
            return
        known = set()
        for entry in entries:
            inode = stamp(entry.path)[2] if entry.is_symlink() else entry.inode()
            if entry.name.startswith(".") or inode in known:
                continue  # a link to a session is no other session
            known.add(inode)
            if session := _unified_reference(entry.name, entry.path):
                yield session

    # -- one session -------------------------------------------------------------------------------------------

    def signature(self, session: Reference) -> tuple[Any, ...]:
        """The stamps of the session's files, and what another session's folder makes of this one."""
        return (*super().signature(session), session.key.get("copied", 0))

    def text_files(self, session: Reference) -> tuple[str, ...]:
        """A 2.x folder's lines are written with every letter as it is; of a 3.x session that is less sure."""
        if session.key["layout"] != "folder":
            return ()
        return tuple(path for path in session.files if path.endswith(".jsonl"))

    def parent(self, session: Reference) -> str | None:
        """A folder under `agents` tells its parent by its place, a unified child by its head."""
        if session.key["layout"] == "folder":
            return session.key["parent"]
        return self._head(session)["parent"] if session.session_id.startswith("child-") else None

    def _head(self, session: Reference) -> Record:
        """What the documents round a session say, remembered until one of them changes."""
        if session.key["layout"] == "unified":
            stamps = stamp(os.path.join(session.path, "CURRENT")) + stamp(os.path.join(session.path, "meta.json"))
            sources = os.path.dirname(session.path)
            return self.remember("head", session.path, stamps, lambda _: unified_head(session.path, sources))
        if session.path.endswith(".json"):
            return self._document(session.path).head
        messages, meta = folder_files(session.path)
        return self.remember("head", session.path, stamp(messages) + stamp(meta), lambda _: head(meta, messages))

    def describe(self, session: Reference, facts: Record) -> Record:
        """Titles, times and places out of the head; a compaction's frame is no title."""
        about = self._head(session)
        known = {key: about[key] for key in ("directory", "git_branch", "model", "archived", "title")}
        if about.get("bytes"):
            known["file_size"] = about["bytes"] + session.size
        known["forked_from"] = session.key.get("forked_from") or about.get("forked_from")
        start = session.key.get("start_time") or rfc3339(about["start_time"])
        end = rfc3339(about["end_time"]) or from_epoch(session.updated)
        known["start_time"] = facts["counts"]["start_time"] or start
        known["end_time"] = facts["counts"]["end_time"] or end
        title = about["title"] or ""
        if title and FRAME.startswith(title.rstrip("…")):
            known["title"] = None
        elif title.startswith(SCRATCHPAD) and session.key.get("parent") and facts["first_prompt"]:
            # A sub-agent's prompt begins with two sentences of the program's own.
            known["title"] = one_line(facts["first_prompt"].partition("\n\n")[2]) or title
        return known

    def entries(self, session: Reference, state: State, *, whole: bool = False) -> Iterator[Entry]:
        about = self._head(session)
        if about["damage"] and os.path.isdir(session.path):
            self.notices.say(f"{os.path.join(session.path, 'meta.json')}: {about['damage']}; the messages were read")
        if session.key["layout"] == "unified":
            yield from self._transcript(session, self._origin(session)).entries(state, whole=whole)
        else:
            for _, entry in self._lines(session).entries(state, whole=whole):
                yield entry

    def _lines(self, session: Reference) -> Folder:
        return Folder(
            session.files[0],
            session.session_id,
            self.notices,
            delegated=session.key["parent"] is not None,
            copied=session.key["copied"],
        )

    def _transcript(self, session: Reference, origin: Folder | None = None) -> Unified:
        child = self._head(session)["parent"] is not None
        return Unified(session.path, session.session_id, self.notices, child=child, legacy=origin)

    def _origin(self, session: Reference) -> Folder | None:
        """The folder that a unified session was imported from; exactly that, whatever other folders go on with it."""
        origin = self._head(session)["legacy"]
        if origin is None:
            return None
        try:
            names = sorted(os.listdir(self.root))
        except OSError:
            names = []
        for name in names:
            messages, meta = folder_files(os.path.join(self.root, name))
            if name.endswith("_" + origin[:8]) and head(meta, messages)["session_id"] == origin:
                return self._imported(session, messages)
        self.notices.say(f"{session.path}: the folder of {origin}, which it was imported from, is not there")
        return None

    def entry_at(self, session: Reference, ref: Record) -> Entry | None:
        """The entry, read out of the one file that holds it; its records are numbered from 1."""
        path, name = ref.get("path"), ref.get("entry")
        if not isinstance(path, str) or not os.path.abspath(path).startswith(self.root + os.sep):
            return None
        try:
            if session.key["layout"] == "unified" and isinstance(name, str):
                return self._transcript(session).entry_at(path, name)
            if session.key["layout"] == "unified":
                return self._imported(session, path).entry_at(ref)
            return self._lines(session).entry_at(ref) if path == session.files[0] else None
        except FileNotFoundError:
            return None

    def _imported(self, session: Reference, path: str) -> Folder:
        """The legacy lines that stand at the beginning of a unified session: copies, all of them."""
        return Folder(path, session.session_id, self.notices, copied=float("inf"))

    def resume(self, row: Record) -> list[str]:
        return ["vibe", "--resume", row["session_id"]]


def _configured(base: str, user: str) -> str | None:
    """The folder of sessions that Vibe's `config.toml` names (`session_logging.save_dir`); None where it names none."""
    try:
        with open_regular(os.path.join(base, "config.toml")) as file:
            text = file.read(_CONFIG_BYTES)
    except (OSError, Unreadable):
        return None
    # The program writes its settings out, the usual folder among them: a parser is loaded for another one only.
    if not (named := _SAVE_DIR.search(text)) or named[1] in (b"", os.fsencode(os.path.join(base, "logs", "session"))):
        return None
    import tomllib

    try:
        logging = tomllib.loads(text.decode()).get("session_logging")
    except ValueError:
        return None
    folder = logging.get("save_dir") if isinstance(logging, dict) else None
    if not isinstance(folder, str) or not folder:
        return None
    return os.path.join(user, folder[2:]) if user and folder.startswith("~/") else os.path.expanduser(folder)


def _barred(folder: str, path: str) -> Unreadable:
    """Why a file that is there cannot be reached."""
    try:
        os.stat(path)
    except OSError as error:
        return Unreadable(folder, error)
    return Unreadable(folder, "it changes while it is read")


def _unified_reference(name: str, path: str) -> Reference | None:
    """A session of the unified store, by its files' stamps alone; None if the folder holds none."""
    journal = os.path.join(path, "journal")
    try:
        segments = [os.path.join(journal, each) for each in sorted(os.listdir(journal)) if each.endswith(".jsonl")]
    except OSError:
        segments = []
    files = (os.path.join(path, "CURRENT"), os.path.join(path, "meta.json"), *segments)
    stamps = [stamp(each) for each in files]
    if not stamps[0][2] and not segments and not os.path.isdir(os.path.join(path, "generations")):
        return None
    updated = max(each[1] for each in stamps) or stamp(path)[1]
    files = tuple(each for each, known in zip(files, stamps, strict=True) if known[2])
    size = sum(each[0] for each in stamps)
    return Reference(HARNESS, name, path, max(updated / 1e9, 0.0), size, files, (), {"layout": "unified"})
