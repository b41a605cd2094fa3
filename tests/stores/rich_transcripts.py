"""One session of each harness in which every kind of record stands that its adapter knows."""

from tests.stores.transcripts import Session, moment

ID = "11111111-1111-4111-8111-111111111111"
PNG = "aGVsbG8gd29ybGQh"


def gemini(folder, name="session-2026-11-30T20-00-11111111.jsonl", head=None):
    session = Session("gemini", folder, f"p/chats/{name}")
    header = {
        "sessionId": ID,
        "projectHash": "0" * 64,
        "startTime": moment(0),
        "lastUpdated": moment(0),
        "kind": "main",
    }
    context = gemini_message("c" * 32, 0, "user", [{"text": "<session_context>\nhere"}])
    turn = gemini_message("t1", 2, "gemini", "I look.", model="gemini-x")
    turn["thoughts"] = [{"subject": "Look", "description": "at it", "timestamp": moment(2)}]
    turn["tokens"] = {"input": 100, "output": 10, "cached": 40, "thoughts": 5, "tool": 0, "total": 115}
    calls = [gemini_call("k1", "run_shell_command", {"command": "ls"}, "a file", 3)]
    more = [*calls, gemini_call("k2", "read_file", {"file_path": "/x"}, "not there", 4, status="error")]
    asked = gemini_call(
        "k3", "ask_user", {"questions": [{"question": "Tea?", "header": "Drink"}]}, '{"answers":{"0":"Yes"}}', 6
    )
    return session.add(
        header | (head or {}),
        {"$set": {"messages": [context], "lastUpdated": moment(0)}},
        gemini_message(
            "u1", 1, "user", [{"text": "Look, please"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}]
        ),
        turn,
        turn | {"toolCalls": calls},
        gemini_message("r1", 3, "user", [gemini_response("k1", "a file")]),
        turn | {"toolCalls": more},
        gemini_message("e1", 5, "error", "The quota is used up"),
        gemini_message("t2", 6, "gemini", "", tokens={"input": 7, "output": 1, "cached": 0, "total": 8}),
        gemini_message("t2", 6, "gemini", "", toolCalls=[asked]),
        {"$set": {"summary": "Looking", "directories": ["/added"], "lastUpdated": moment(7)}},
        gemini_message("u2", 8, "user", [{"text": "@a file"}, {"text": "its text"}], displayContent=[{"text": "@a"}]),
        gemini_message("t3", 9, "gemini", "Done."),
    )


def gemini_message(id, number, type, content, **more):
    return {"id": id, "timestamp": moment(number), "type": type, "content": content, **more}


def gemini_response(id, output):
    return {"functionResponse": {"id": id, "name": "x", "response": {"output": output}}}


def gemini_call(id, name, args, output, number, status="success"):
    result = [gemini_response(id, output)]
    return {"id": id, "name": name, "args": args, "result": result, "status": status, "timestamp": moment(number)}


class QwenChain(Session):
    """A session of Qwen Code; records are chained as they are added."""

    def __init__(self, folder, path=f"-home-p/chats/{ID}.jsonl"):
        super().__init__("qwen", folder, path)
        self.last = None

    def put(self, type, number, parts=None, parent=..., **more):
        record = {
            "uuid": f"{len(self.records):08}-0000-4000-8000-000000000000",
            "parentUuid": self.last if parent is ... else parent,
            "sessionId": ID,
            "timestamp": moment(number),
            "type": type,
            "cwd": "/home/p",
            "version": "0.15.10",
            "gitBranch": "main",
        }
        if parts is not None:
            record["message"] = {"role": "model" if type == "assistant" else "user", "parts": parts}
        self.add(record | more)
        self.last = self.records[-1]["uuid"]
        return self.last


def qwen(folder):
    session = QwenChain(folder)
    used = {"promptTokenCount": 100, "candidatesTokenCount": 10, "cachedContentTokenCount": 40, "totalTokenCount": 110}
    session.put("user", 1, [{"text": "Look, please"}, {"inlineData": {"mimeType": "image/png", "data": PNG}}])
    session.put("system", 1, subtype="ui_telemetry", systemPayload={"uiEvent": {}})
    call = {"functionCall": {"id": "k1", "name": "run_shell_command", "args": {"command": "ls"}}}
    parts = [{"text": "Look at it", "thought": True}, {"text": "I look."}, call]
    session.put("assistant", 2, parts, model="qwen-x", usageMetadata=used)
    answer = {"functionResponse": {"id": "k1", "name": "run_shell_command", "response": {"output": "a file"}}}
    session.put("tool_result", 3, [answer], toolCallResult={"callId": "k1", "status": "success"})
    session.put("assistant", 4, [{"functionCall": {"id": "k2", "name": "read_file", "args": {}}}], model="qwen-x")
    refused = {"functionResponse": {"id": "k2", "name": "read_file", "response": {"error": "not there"}}}
    session.put("tool_result", 5, [refused], toolCallResult={"callId": "k2", "status": "cancelled"})
    session.put("user", 6, [{"text": "A task ended"}], subtype="notification", provenance="system")
    session.put("user", 6, [{"text": "Wait"}], subtype="mid_turn_user_message", systemPayload={"displayText": "Wait!"})
    session.put("system", 7, subtype="slash_command", systemPayload={"phase": "invocation", "rawCommand": "/about"})
    shown = {"phase": "result", "rawCommand": "/about", "outputHistoryItems": [{"type": "about", "text": "0.15"}]}
    session.put("system", 7, subtype="slash_command", systemPayload=shown)
    history = [{"role": "user", "parts": [{"text": "What was done"}]}, {"role": "model", "parts": [{"text": "Thanks"}]}]
    packed = {"info": {"originalTokenCount": 900}, "compressedHistory": history}
    session.put("system", 8, subtype="chat_compression", systemPayload=packed)
    session.put("system", 8, subtype="custom_title", systemPayload={"customTitle": "Looking"})
    session.put("assistant", 9, [{"text": "Done."}], model="qwen-x")
    return session


def pi(folder, path=f"--home-p--/2026-11-30T20-00-00-000Z_{ID}.jsonl", **header):
    session = Session("pi", folder, path)
    used = {"input": 60, "output": 10, "cacheRead": 40, "cacheWrite": 2, "totalTokens": 112}
    thinking, text = {"type": "thinking", "thinking": "Look at it"}, {"type": "text", "text": "I look."}
    calls = [
        {"type": "toolCall", "id": id, "name": name, "arguments": {}} for id, name in (("k1", "bash"), ("k2", "read"))
    ]
    return session.add(
        {"type": "session", "version": 3, "id": ID, "timestamp": moment(0), "cwd": "/home/p"} | header,
        pi_entry("e0", None, 0, "model_change", provider="mock", modelId="mock-1"),
        pi_message(
            "e1",
            "e0",
            1,
            "user",
            [{"type": "text", "text": "Look, please"}, {"type": "image", "mimeType": "image/png", "data": PNG}],
        ),
        pi_message(
            "e2", "e1", 2, "assistant", [thinking, text, *calls], model="mock-2", usage=used, stopReason="toolUse"
        ),
        pi_message(
            "e3",
            "e2",
            3,
            "toolResult",
            [{"type": "text", "text": "a file"}],
            toolCallId="k1",
            toolName="bash",
            isError=False,
        ),
        pi_message("e4", "e3", 4, "toolResult", "not there", toolCallId="k2", toolName="read", isError=True),
        pi_message("e5", "e4", 5, "bashExecution", None, command="git status", output="clean", exitCode=0),
        pi_entry("e6", "e5", 6, "custom_message", customType="x", content="Mind the gap", display=True),
        pi_message("e7", "e6", 6, "user", '<skill name="s" location="/s">\nbody\n</skill>'),
        pi_message(
            "e8", "e7", 7, "assistant", [], model="mock-2", stopReason="error", errorMessage="The service is down"
        ),
        pi_entry("e9", "e8", 8, "compaction", summary="What was done", firstKeptEntryId="e7", tokensBefore=900),
        pi_entry("ea", "e9", 8, "session_info", name="Looking"),
        pi_entry("eb", "ea", 8, "label", targetId="e1", label="start"),
        pi_entry("ec", "eb", 8, "branch_summary", fromId="e2", summary="Another way"),
        pi_message("ed", "ec", 9, "assistant", [{"type": "text", "text": "Done."}], model="mock-2", stopReason="stop"),
    )


def pi_entry(id, parent, number, type, **more):
    return {"type": type, "id": id, "parentId": parent, "timestamp": moment(number), **more}


def pi_message(id, parent, number, role, content, **more):
    return pi_entry(id, parent, number, "message", message={"role": role, "content": content, **more})


def copilot(folder, path=f"{ID}/events.jsonl"):
    session = Session("copilot", folder, path)
    place = {"cwd": "/home/p", "branch": "main"}
    requests = [
        {"toolCallId": id, "name": name, "arguments": arguments}
        for id, name, arguments in (
            ("k1", "bash", {"command": "ls"}),
            ("k2", "view", '{"path": "/x"}'),
            ("k3", "update_todo", {"todos": "- [x] Look\n- [ ] Tell"}),
        )
    ]
    spoken = {
        "messageId": "m1",
        "model": "gpt-x",
        "content": "I look.",
        "reasoningText": "Look at it",
        "apiCallId": "a1",
    }
    used = {"apiCallId": "a1", "inputTokens": 100, "outputTokens": 10, "cacheReadTokens": 40, "cacheWriteTokens": 2}
    return session.add(
        event(0, "session.start", sessionId=ID, startTime=moment(0), selectedModel="gpt-x", context=place),
        event(
            1,
            "user.message",
            content="Look, please",
            transformedContent="<now/> Look, please",
            attachments=[{"type": "file", "path": "/x"}],
        ),
        event(1, "system.message", content="You are a program", role="system"),
        event(1, "assistant.turn_start", turnId="0"),
        event(2, "session.usage_record", usage=used),
        event(2, "assistant.message", toolRequests=requests, **spoken),
        event(2, "tool.execution_start", toolCallId="k1", toolName="bash", arguments={"command": "ls"}),
        event(3, "tool.execution_complete", toolCallId="k1", success=True, result={"content": "a file"}),
        event(4, "tool.execution_complete", toolCallId="k2", success=False, error={"message": "not there"}),
        event(4, "tool.execution_complete", toolCallId="k3", success=True, result={"content": "ok"}),
        event(5, "user.message", content="A skill speaks", source="skill-pdf"),
        event(5, "skill.invoked", name="pdf", content="How to read PDF"),
        event(5, "system.notification", content="A shell ended", kind={"type": "shell_completed"}),
        event(6, "tool.user_requested", toolCallId="k4", toolName="bash", arguments={"command": "git status"}),
        event(6, "tool.execution_complete", toolCallId="k4", success=True, result={"content": "clean"}),
        event(6, "subagent.started", toolCallId="k5", agentName="explore"),
        {**event(6, "user.message", content="Find it"), "agentId": "explore-1"},
        {**event(6, "assistant.message", content="Found.", messageId="m2"), "agentId": "explore-1"},
        event(7, "session.error", errorType="quota", message="The quota is used up"),
        event(
            8,
            "session.compaction_complete",
            success=True,
            summaryContent="What was done",
            preCompactionTokens=900,
            trigger="threshold",
        ),
        event(9, "assistant.message", content="Done.", messageId="m3", outputTokens=3),
        event(9, "session.shutdown", shutdownType="routine"),
    )


def event(number, type, **data):
    event.count = getattr(event, "count", 0) + 1
    id = f"{event.count:08x}-0000-4000-8000-000000000000"
    return {"type": type, "data": data, "id": id, "timestamp": moment(number), "parentId": None}


RICH = {"gemini": gemini, "qwen": qwen, "pi": pi, "copilot": copilot}
