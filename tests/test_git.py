"""Commits, pushes and tags: only those that a shell call really made."""

import pytest
from recorded import called, ran, recorded
from total_recall import git
from total_recall.calls import answered


def events(messages):
    calls = answered(messages, lambda harness, name: True)
    return [tuple(event) for call in calls for event in git.events(call)]


def of(command, output="", is_error=False, harness="claude", name="Bash"):
    return events(ran(name, {"command": command}, output, is_error, harness))


@pytest.mark.parametrize(
    ("session", "expected"),
    [
        (
            "claude-git",
            [
                ("GitCommit", "feat: add inventory module, with add()"),
                ("GitTag", "v0.1.0"),
                ("GitCommit", "feat: add remove()"),
                ("GitTag", "v0.2.0"),
            ],
        ),
        (
            "codex-plan-and-git",
            [
                ("GitCommit", "feat: add c_to_f, with a docstring"),
                ("GitTag", "v1.0.0"),
                ("GitCommit", "feat: add f_to_c"),
                ("GitTag", "v1.1.0"),
            ],
        ),
        (
            "opencode-todos-and-git",
            [("GitCommit", "Add greeting CLI"), ("GitCommit", "Refuse empty names"), ("GitTag", "v0.1.0")],
        ),
        (
            "opencode-tags",
            [
                ("GitCommit", "Add changelog"),
                ("GitTag", "v0.2.0"),
                ("GitTag", "v0.2.1"),
                ("GitCommit", "Empty marker commit"),
            ],
        ),
        (
            "vibe-todos-and-git",
            [("GitCommit", "Add word counter"), ("GitCommit", "Split, then count"), ("GitTag", "v1.0")],
        ),
        ("vibe-unified-todos-and-git", [("GitCommit", "Add word counter"), ("GitCommit", "Split, then count")]),
        ("claude-tasks", []),
    ],
)
def test_real_sessions(session, expected):
    """In the last one git refused the tag, which it was asked for only because the commit had been made."""
    assert events(recorded(session)) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("git commit -m 'A subject' -m 'A body'", ("GitCommit", "A subject")),
        ("git commit -am 'A subject'", ("GitCommit", "A subject")),
        ("git commit -qsm'A subject'", ("GitCommit", "A subject")),
        ("git commit --message='A subject\n\nbody'", ("GitCommit", "A subject")),
        ("git commit --message 'A subject' -- file", ("GitCommit", "A subject")),
        ("git -C dir -c user.name=x --git-dir=.git commit -m 'A subject'", ("GitCommit", "A subject")),
        ("git commit --author 'A <a@b>' -S -u --amend -m 'A subject'", ("GitCommit", "A subject")),
        ("git commit -F - <<'EOF'\n\nA subject\n\nbody\nEOF", ("GitCommit", "A subject")),
        ("printf 'A subject\\n\\nbody' | git commit --file=-", ("GitCommit", "A subject")),
        ("git commit -m \"$(cat <<'EOF'\nA subject\n\nbody\nEOF\n)\"", ("GitCommit", "A subject")),
        ("git commit --fixup HEAD~1", ("GitCommit", "fixup! HEAD~1")),
        ("git commit --amend --no-edit", ("GitCommit", "git commit --amend --no-edit")),
        ("cd x && sudo -u me env A=1 git commit -m 'A subject' | cat", ("GitCommit", "A subject")),
        ("bash -lc \"git commit -m 'A subject'\"", ("GitCommit", "A subject")),
        (f"echo {'x' * 400}; git commit -m 'A subject'", ("GitCommit", "A subject")),
        ("git push", ("GitPush", "git push")),
        ("git push origin main", ("GitPush", "origin main")),
        ("git push -u --force-with-lease origin HEAD:main --tags", ("GitPush", "origin HEAD:main --tags")),
        ("git push -o ci.skip origin main", ("GitPush", "origin main")),
        ("git tag v1", ("GitTag", "v1")),
        ("git tag -a v1 -m 'First'", ("GitTag", "v1")),
        ("git tag -s -F notes v1 HEAD~2", ("GitTag", "v1")),
        ("git tag --force v1", ("GitTag", "v1")),
    ],
)
def test_what_git_is_told(command, expected):
    """Options, wrappers, several messages and messages by here-document, as people and agents write them."""
    assert of(command) == [expected]


@pytest.mark.parametrize(
    "command",
    [
        "grep 'git commit' notes",
        "echo git commit -m x",
        "git log --grep 'git commit'",
        "# git commit -m x",
        "cat <<EOF\ngit push\nEOF",
        "git commit --dry-run -m x",
        "git commit --short",
        "git commit --help",
        "git help commit",
        "git --version commit",
        "git push --dry-run origin main",
        "git push -n",
        "git tag",
        "git tag -l 'v*'",
        "git tag --list v1",
        "git tag -n5",
        "git tag -d v1",
        "git tag -v v1",
        "git tag --contains HEAD",
        "git tag --sort=-creatordate",
        "git stash push",
        "git merge --no-ff feature -m 'Merge'",
        "git commit-graph write",
        "mygit commit -m x",
    ],
)
def test_what_only_looks_tries_or_talks_is_no_event(command):
    assert of(command) == []


def test_several_in_one_command_come_in_its_order():
    command = "git commit -m one && git tag v1; git push origin v1\ngit commit -m two"

    assert [summary for _, summary in of(command)] == ["one", "v1", "origin v1", "two"]


def test_a_call_that_failed_or_was_never_answered_made_nothing():
    assert of("git commit -m x && git push", "fatal: not a git repository", is_error=True) == []
    assert events([called(1, "Bash", {"command": "git commit -m x"})]) == []


@pytest.mark.parametrize("is_error", [False, None])
def test_a_call_without_an_error_state_counts(is_error):
    assert of("git tag v1", is_error=is_error) == [("GitTag", "v1")]


def test_in_a_failed_call_only_what_git_reported_or_went_on_from_was_made():
    failed = "[main 1a2b3c4] one\n 1 file changed\nerror: failed to push some refs to 'origin'\n"

    assert of("git commit -m one; git push", failed, True) == [("GitCommit", "one")]
    assert of("git commit -qm one && git push", "error: failed to push some refs", True) == [("GitCommit", "one")]
    assert of("git commit -qm one; git push", "error: failed to push some refs", True) == []
    assert of("git commit -qm one && git tag v1", "fatal: tag 'v1' already exists", True) == [("GitCommit", "one")]


@pytest.mark.parametrize(
    ("command", "output"),
    [
        ("git commit -m x || true", "On branch main\nnothing to commit, working tree clean\n"),
        ("git push; echo done", "To github.com:a/b\n ! [rejected]        main -> main (fetch first)\ndone\n"),
        ("git tag v1; true", "fatal: tag 'v1' already exists\n"),
        ("git commit -m x; true", "fatal: not a git repository (or any of the parent directories): .git\n"),
    ],
)
def test_what_git_refused_is_no_event_though_the_call_succeeded(command, output):
    assert of(command, output) == []


def test_a_clean_tree_after_the_commit_is_no_refusal():
    assert of("git commit -qm x && git status", "On branch main\nnothing to commit, working tree clean\n") != []
    assert of("git commit -m x && git diff", "[main 1a2b3c4] x\nnothing to commit\n") != []


def test_where_the_command_does_not_say_it_gits_own_report_does():
    report = "[main (root-commit) 1a2b3c4] Typed in the editor\n 1 file changed\n"
    pushed = "To github.com:a/b.git\n   1a2b3c4..5d6e7f8  main -> main\n"

    assert of("git commit --amend --no-edit", report) == [("GitCommit", "Typed in the editor")]
    assert of('git commit -m "$MESSAGE"', report) == [("GitCommit", "Typed in the editor")]
    assert of('git commit -m "$MESSAGE"') == [("GitCommit", "$MESSAGE")]
    assert of("git push", pushed) == [("GitPush", "github.com:a/b.git main")]


@pytest.mark.parametrize(
    ("harness", "name", "arguments"),
    [
        ("claude", "Bash", {"command": "git tag v1"}),
        ("codex", "shell", {"command": ["bash", "-lc", "git tag v1"]}),
        ("codex", "shell", {"command": ["git", "tag", "v1"]}),
        ("codex", "exec_command", {"cmd": "git tag v1"}),
        ("opencode", "bash", {"command": "git tag v1"}),
        ("vibe", "bash", {"command": "git tag v1"}),
        ("vibe", "file_system.bash", {"command": "git tag v1"}),
    ],
)
def test_every_harness(harness, name, arguments):
    assert events(ran(name, arguments, harness=harness)) == [("GitTag", "v1")]


@pytest.mark.parametrize("arguments", [None, "git tag v1", {"command": 5}, {"command": ["git", 5]}, [], {}])
def test_broken_arguments_are_no_event(arguments):
    assert events(ran("Bash", arguments)) == []


def test_other_tools_are_not_looked_at():
    assert events(ran("Write", {"file_path": "x.sh", "content": "git tag v1", "command": "git tag v1"})) == []
