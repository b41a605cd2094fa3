#!/usr/bin/env python3
"""What a bare Python takes for the same work, without any of the project's code.

bare.py parse HOME               read and parse every stored record of four stores, and keep nothing
bare.py index INDEX < records    put the texts of message records into a tantivy index, in one commit
bare.py search INDEX WORDS       open it, and find the twenty best
"""

import os
import sqlite3
import sys

import orjson

BUFFER = 1 << 20


def parse(home):
    """Every line of JSON below a home directory, and every row of data of its OpenCode database."""
    loads, count = orjson.loads, 0
    for store in (".claude/projects", ".codex/sessions", ".vibe/logs/session"):
        for place, _, names in os.walk(os.path.join(home, store)):
            for name in names:
                with open(os.path.join(place, name), "rb", buffering=BUFFER) as file:
                    if name.endswith(".jsonl"):
                        for line in file:
                            loads(line)
                            count += 1
                    elif data := file.read():
                        loads(data)
    database = sqlite3.connect(f"file:{home}/.local/share/opencode/opencode.db?immutable=1", uri=True)
    for table in ("message", "part"):
        for (data,) in database.execute(f"SELECT CAST(data AS BLOB) FROM {table}"):
            loads(data)
            count += 1
    return count


def index(folder):
    """The texts of message records from standard input, one document a record."""
    import tantivy

    os.makedirs(folder, exist_ok=True)
    schema = tantivy.SchemaBuilder().add_text_field("text").build()
    writer = tantivy.Index(schema, path=folder).writer(heap_size=50_000_000, num_threads=2)
    count = 0
    for line in sys.stdin.buffer:
        record = orjson.loads(line)
        texts = [record["content"], record["thinking"] or ""]
        texts += [orjson.dumps(call["arguments"]).decode() for call in record["tool_calls"]]
        writer.add_document(tantivy.Document(text="\n".join(texts)))
        count += 1
    writer.commit()
    writer.wait_merging_threads()
    return count


def search(folder, words):
    """How many of the twenty best were found."""
    import tantivy

    index = tantivy.Index.open(folder)
    found = index.searcher().search(index.parse_query(words, ["text"]), 20)
    return len(found.hits)


if __name__ == "__main__":
    print({"parse": parse, "index": index, "search": search}[sys.argv[1]](*sys.argv[2:]))
