"""One session on its way into the index: a document for each text of its records, and one for the session itself."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import tantivy

from . import analysis
from .indexed import number_of
from .notices import Unreadable
from .passages import keys, passages
from .ranking import KINDS, STORED
from .record import Record, encoded, packed, scrubbed, title_of
from .stores.base import GONE, Reference, Store, Tally
from .times import epoch

_MOST_KEYS = 1000
_MOST_LEFT_OUT = 1 << 20  # characters
UNTIMED = -1  # the time of a record that has none
_PLACE = {kind: place for place, kind in enumerate(KINDS)}


class Indexed:
    """One session on its way into the index."""

    def __init__(
        self,
        writer: tantivy.IndexWriter,
        schema: tantivy.Schema,
        store: Store,
        session: Reference,
        kept: Record | None,
        *,
        new: bool,
    ) -> None:
        self.store = store
        self.session = session
        self.number = number_of(session.session_id)
        self.added = 0
        self.documents = kept["documents"] if kept else 0
        self.records = kept["records"] if kept else 0
        self.cut = kept["cut"] if kept else 0
        self.opaque = kept["opaque"] if kept else 0
        self.keys = set(kept["keys"] if kept else ())
        self.begun = new  # nothing is there that would have to go
        self.size = 0
        self._writer = writer
        self._schema = schema
        self._whole = kept is None
        self._signature: tuple[Any, ...] = ()
        self._indexed_as = 0
        marks = store.remember.get("bookmarks", store.memory_key(session)) if kept else None
        self._tally = Tally(kept["facts"] if kept else None, marks[1] if marks else [])

    def _begin(self) -> None:
        # Only now: what is indexed of a session that cannot be opened today is worth keeping.
        if not self.begun:
            delete(self._writer, self._schema, self.session.session_id, whole=self._whole)
            self.begun = True

    def read(self) -> str | None:
        """Add the documents of what is not indexed yet; what kept it from being read to the end."""
        tally = self._tally
        try:
            self._signature = self.store.signature(self.session)
            self._indexed_as = signature_of(self.store, self.session, self._signature)
            for entry in self.store.entries(self.session, tally.state, whole=True):
                self._begin()
                tally.add(entry)
                for part, message in enumerate(entry.messages):
                    self._message(message, part)
        except Unreadable as error:
            return error.reason
        except FileNotFoundError:
            return GONE
        except Exception as error:
            # Whatever is wrong with one session, the others are to be found.
            return f"unexpected {type(error).__name__}: {error}"
        return None

    def _message(self, message: Record, part: int) -> None:
        texts = passages(message)
        if not texts:
            return
        self.records += 1
        moment = datetime.fromisoformat(message["ts"]).timestamp() if message["ts"] else None
        stored = packed(
            {
                "id": message["id"],
                "ts": message["ts"],
                "role": message["role"],
                "authorship": message["authorship"],
                "tool_name": message["tool_name"],
                "ref": message.get("ref"),
                "part": part,
            }
        )
        for call in message["tool_calls"]:
            self.keys.update(keys(call["arguments"]))
        for passage in texts:
            document = self._document(message["id"], passage.kind, passage.text)
            document.add_text("role", message["role"])
            if message["tool_name"]:
                document.add_text("tool_name", message["tool_name"])
            elif passage.kind == "tool-input":
                for name in {call["name"] for call in message["tool_calls"]}:
                    document.add_text("tool_name", name)
            document.add_integer("ts", UNTIMED if moment is None else round(moment * 1000))
            if len(passage.left_out) > _MOST_LEFT_OUT:
                self.opaque += 1
            elif passage.left_out:
                self._add(document, "rest", passage.left_out)
            document.add_bytes("stored", stored)
            self._writer.add_document(document)
            self.cut += passage.cut
            self.size += len(passage.text)
            self.documents += 1
            self.added += 1

    def _document(self, record: int, kind: str, text: str) -> tantivy.Document:
        place = _PLACE[kind]
        document = tantivy.Document()
        self._add(document, "text", text)
        document.add_text("class", kind)
        document.add_unsigned("session", self.number)
        document.add_unsigned("key", (self.number + record * 16 + place) % 2**64)
        document.add_unsigned("weight", STORED[place])
        return document

    def _add(self, document: tantivy.Document, field: str, text: str) -> None:
        prepared = analysis.prepared(text)
        self.opaque += analysis.is_opaque(text, prepared)
        try:
            document.add_text(field, prepared)
        except UnicodeEncodeError:
            document.add_text(field, scrubbed(prepared))

    def finish(self, error: str | None) -> int:
        """Write the session's own document: its title, and how far it is indexed; gives its signature."""
        self._begin()
        store, session = self.store, self.session
        signature = 0 if error else self._indexed_as
        if error:
            facts = self._tally.facts()  # without a fingerprint, so that the next read begins anew
            about = facts["about"]
        else:
            facts = store.learned(session, self._tally)
            store.remember("facts", store.memory_key(session), self._signature, lambda _: facts)
            about = store.describe(session, facts)
        title = title_of(about.get("title"), facts["first_prompt"])
        counts = facts["counts"]
        start, end = (epoch(counts[key]) or session.updated for key in ("start_time", "end_time"))
        # A title that is only the first prompt is found as that.
        document = self._document(0, "title", about.get("title") or "")
        document.add_unsigned("about", self.number)
        document.add_integer("ts", UNTIMED)
        document.add_integer("start", round(start * 1000))
        document.add_integer("end", round(end * 1000))
        document.add_unsigned("signature", signature)
        document.add_unsigned("records", self.records)
        document.add_unsigned("documents", self.documents)
        document.add_unsigned("cut", self.cut)
        names = self._name(document)
        document.add_unsigned("opaque", self.opaque)
        stored = {
            "session_id": session.session_id,
            "title": title or "",
            "directory": about.get("directory"),
            "start_time": counts["start_time"],
            "documents": self.documents,
            "records": self.records,
            "cut": self.cut,
            "opaque": self.opaque,
            "keys": names,
            "error": error,
            "facts": facts,
        }
        document.add_bytes("stored", packed(stored))
        self._writer.add_document(document)
        return signature

    def _name(self, document: tantivy.Document) -> list[str]:
        """Add the names of arguments to the session's own document; gives what is to be kept of them.

        They are few, unless they are data: then not all of the session can be told by words.
        """
        names = sorted(self.keys)
        if len(names) > _MOST_KEYS:
            self.opaque += 1
            return []
        self._add(document, "keys", " ".join(encoded(name).decode() for name in names))
        return names


def signature_of(store: Store, session: Reference, known: tuple[Any, ...] | None = None) -> int:
    """What changes when a session or its title does, as a number other than 0; `known` is its store's signature."""
    signature = store.signature(session) if known is None else known
    return number_of(repr((*signature, *store.beside(session)))) or 1


def delete(writer: tantivy.IndexWriter, schema: tantivy.Schema, session_id: str, *, whole: bool) -> None:
    """Forget a session, or only what is known of it as a whole, to write that anew."""
    # By a query: deletion by term takes no unsigned number, and says nothing.
    query = tantivy.Query.term_query(schema, "session" if whole else "about", number_of(session_id))
    writer.delete_documents_by_query(query)


def row_of(harness: str, session_id: str, documents: int, added: int, seconds: float, status: str) -> Record:
    return {
        "harness": harness,
        "session_id": session_id,
        "docs": documents,
        "added": added,
        "seconds": round(seconds, 3),
        "status": status,
    }
