"""The public face of the package: names, version, speed of import, isolation of `solvers`."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

import mechdesign as md

ROOT = Path(__file__).parents[1]

PUBLIC = [
    "ALIP",
    "LDP",
    "LIP",
    "AlphaLift",
    "Applied",
    "Assessment",
    "Audit",
    "Certificate",
    "Channel",
    "Chi2Lift",
    "Comparison",
    "ComparisonRow",
    "Composition",
    "Design",
    "DesignRequest",
    "Export",
    "Frequencies",
    "InputError",
    "KL",
    "Joint",
    "Judgement",
    "Key",
    "L1Lift",
    "MaxLift",
    "MechdesignError",
    "MinLift",
    "NotPrivate",
    "Notion",
    "Policy",
    "Queries",
    "ReleaseTransformer",
    "SolverFailure",
    "__version__",
    "assess",
    "audit",
    "budget_for",
    "check",
    "compare",
    "compose",
    "create_key",
    "design",
    "engine_errors",
    "estimate",
    "estimate_frequencies",
    "export",
    "judge",
    "load",
    "read_key",
    "report",
    "sanitise",
    "sanitise_file",
]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def loaded_by(statement: str) -> set[str]:
    """Names of the modules in memory after `statement` ran in a fresh interpreter."""
    code = f"import sys\n{statement}\nprint(' '.join(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(run.stdout.split())


def test_public_names_are_pinned():
    assert sorted(md.__all__) == sorted(PUBLIC)


def test_every_public_name_is_in_the_reference():
    reference = (ROOT / "docs" / "reference" / "api.md").read_text(encoding="utf-8")
    absent = {*PUBLIC} - {*re.findall(r"\w+", reference)}
    assert absent == {"__version__"}


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_resolves_and_is_listed(name):
    assert getattr(md, name) is not None
    assert name in dir(md) or name == "__version__"


def test_public_names_are_the_objects_of_their_modules():
    assert md.design is import_module("mechdesign.mechanisms").design
    assert md.audit is import_module("mechdesign.auditing.either").audit
    assert md.Channel is import_module("mechdesign.channel.channel").Channel


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"mechdesign.*nothing"):
        md.nothing  # noqa: B018


def test_version_is_that_of_the_metadata():
    assert md.__version__ == project()["project"]["version"]


def test_the_citation_and_the_changelog_name_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.findall(r"^version: (.+)$", citation, re.MULTILINE) == [md.__version__]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first, *_ = re.findall(r"^## \[(.+?)\]", changelog, re.MULTILINE)
    assert first == md.__version__


def test_a_released_version_has_one_date():
    """Either nothing is dated yet, or CHANGELOG.md and CITATION.cff name the same day."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(r"^## \[.+?\] - (.+)$", changelog, re.MULTILINE)
    assert released
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    dates = re.findall(r"^date-released: (.+)$", citation, re.MULTILINE)
    expected = [] if released[1] == "unreleased" else [released[1]]
    assert dates == expected


def test_the_wheels_are_built_for_the_versions_that_are_tested():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8")
    (listed,) = re.findall(r"^ +python: \[(.+)\]$", workflow, re.MULTILINE)
    tested = [version.strip(' "') for version in listed.split(",")]
    built = project()["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{version.replace('.', '')}-*" for version in tested]


HEAVY = {
    "numpy",
    "scipy",
    "highspy",
    "cdd",
    "cvxpy",
    "pyarrow",
    "pandas",
    "polars",
    "flint",
}


def test_import_is_light():
    assert not (HEAVY | {"typer", "rich"}) & loaded_by("import mechdesign")


def test_releases_load_no_engine_before_it_is_used():
    engines = {
        "sklearn",
        "pyspark",
        "dask",
        "distributed",
        "pandas",
        "polars",
        "pyarrow",
    }
    assert not engines & loaded_by(
        "from mechdesign import sanitise, sanitise, sanitise"
    )


def test_the_command_line_loads_nothing_heavy_before_it_has_to():
    assert not (HEAVY | {"cryptography"}) & loaded_by(
        "from mechdesign.cli.application import application; application()"
    )
    others = {
        "mechdesign.cli.nonstochastic",
        "mechdesign.cli.compare",
        "mechdesign.cli.design",
    }
    assert not others & loaded_by(
        "from mechdesign.cli.application import application; application('apply')"
    )


DESIGN = """
from mechdesign.cli import main
assert 0 == main([
    "design", "examples/adult_relationship_by_occupation.csv", "--contingency",
    "--useful", "occupation", "--epsilon", "2", "--gap", "0.01", "--output", {channel!r},
])
"""

AUDIT = """
from mechdesign.cli import main
assert 0 == main(["audit", {channel!r}])
"""


def top_level(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_a_design_and_an_audit_load_only_what_they_use(tmp_path):
    """SciPy, the templates of texts, comparisons and other solvers cost more than they do."""
    channel = str(tmp_path / "channel.json")
    designing = loaded_by(DESIGN.format(channel=channel))
    assert not {"scipy", "jinja2", "pandas", "cvxpy"} & top_level(designing)
    assert "mechdesign.comparison.run" not in designing
    auditing = loaded_by(AUDIT.format(channel=channel))
    assert not {"scipy", "pandas", "highspy", "cdd"} & top_level(auditing)
    assert (
        not {
            "mechdesign.comparison.run",
            "mechdesign.mechanisms.designing",
            "mechdesign.mechanisms.optimal",
            "mechdesign.report.collect",
            "solvers.plans",
        }
        & auditing
    )


def test_solvers_loads_without_mechdesign():
    loaded = loaded_by("import solvers; solvers.Polytope")
    assert not {name for name in loaded if name.split(".")[0] == "mechdesign"}


def test_every_package_folder_is_shipped():
    folders = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for top in ("mechdesign", "solvers")
        for path in (ROOT / top).rglob("*.py")
    }
    assert folders == set(project()["tool"]["setuptools"]["packages"])


def test_every_package_is_marked_as_typed():
    assert (ROOT / "mechdesign" / "py.typed").is_file()
    assert (ROOT / "solvers" / "py.typed").is_file()
