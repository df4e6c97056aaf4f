"""The workflow and .ci/run test what the README says, and name files that are here.

They cannot themselves be run as tests. .ci/run also checks the form of the workflow, with a linter.
"""

import os
import re
import subprocess

import pytest
from conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
WORKFLOW = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
CI_RUN = (ROOT / ".ci/run").read_text(encoding="utf-8")


@pytest.mark.skipif(os.name == "nt", reason="on Windows, `bash` may be that of another system")
@pytest.mark.parametrize("word, sources", [("pytest", [WORKFLOW, CI_RUN]), ("Turing", [WORKFLOW])])
def test_commands_are_found_in_the_readme(word, sources):
    """Each search in the shell scripts finds one line of the README: the right one, all of it."""
    [command] = re.findall(rf"^    (.*{word}.*)$", README, re.M)
    for source in sources:
        [search] = re.findall(rf"^ *(command=\$\(.*{word}.*\))$", source, re.M)
        script = f'set -eu; {search}; printf "%s" "$command"'
        found = subprocess.run(["bash", "-c", script], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        assert found.stdout.decode().strip() == command.strip()


def test_every_system_and_the_oldest_python_are_there():
    """The oldest Python is the one that gpt2.py asks for.

    YAML needs it as a string, since the number 3.10 is 3.1.
    """
    [systems] = re.findall(r"^ *os: \[(.*)\]$", WORKFLOW, re.M)
    assert {name.split("-")[0] for name in systems.split(", ")} == {"ubuntu", "windows", "macos"}
    [oldest] = re.findall('requires-python = ">=(.*)"', (ROOT / "gpt2.py").read_text("utf-8"))
    assert f'python: ["{oldest}", "3.x"]' in WORKFLOW


def test_every_file_that_is_named_is_here():
    """.ci/run would take a missing requirements file for packages that cannot be installed."""
    names = re.findall(r"[\w./-]+\.(?:py|txt)\b", WORKFLOW)
    names += [f"tests/live/{name}" for name in re.findall(r"requirements-\w+\.txt", CI_RUN)]
    assert {"utils.py", "tests/test_golden.py", "tests/live/requirements-torch.txt"} <= set(names)
    assert all((ROOT / name).exists() for name in names)


def test_actions_are_pinned_to_a_major_version_and_can_only_read():
    """So a fix of an action arrives by itself, but a new major version does not."""
    actions = re.findall(r"uses: (\S+)", WORKFLOW)
    assert actions and all(re.fullmatch(r"actions/[\w-]+@v\d+", action) for action in actions)
    assert re.search(r"^permissions:\n  contents: read$", WORKFLOW, re.M)
    jobs = WORKFLOW.split("\njobs:")[1]
    assert jobs.count("timeout-minutes:") == len(re.findall(r"^  [\w-]+:$", jobs, re.M)) == 3
