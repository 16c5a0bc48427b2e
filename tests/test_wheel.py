"""What is published installs: a complete sdist, a wheel made from it, a program that runs where nothing compiles."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LEFT_OUT = shutil.ignore_patterns(
    *(
        ".git",
        ".venv",
        "build",
        "dist",
        "*.so",
        "*.pyd",
        "__pycache__",
        "*.egg-info",
        ".hypothesis",
        ".*_cache",
    )
)
TABLE = ROOT / "examples" / "adult_relationship_by_occupation.csv"


def built(what: str, source: Path, target: Path) -> Path:
    """The sdist or wheel of a source tree, by the build backend that pyproject.toml names."""
    target.mkdir(exist_ok=True)
    code = f"from setuptools import build_meta as b; b.build_{what}({str(target)!r})"
    run = subprocess.run(
        [sys.executable, "-c", code],
        cwd=source,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    (file,) = target.iterdir()
    return file


@pytest.fixture(scope="module")
def distributions(tmp_path_factory) -> tuple[Path, Path]:
    """The sdist of this tree, and the wheel that is made from the sdist alone."""
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("dist")
    shutil.copytree(ROOT, folder / "tree", ignore=LEFT_OUT)
    sdist = built("sdist", folder / "tree", folder / "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (source,) = (folder / "unpacked").iterdir()
    return sdist, built("wheel", source, folder / "wheel")


def modules(folder: Path) -> set[str]:
    return {str(path.relative_to(ROOT)) for path in folder.rglob("*.py")}


@pytest.mark.slow
def test_the_sdist_is_complete(distributions):
    with tarfile.open(distributions[0]) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        str(p.relative_to(ROOT))
        for part in ("mechdesign", "solvers")
        for p in (ROOT / part).rglob("*.[ch]")
    }
    wanted |= (
        modules(ROOT / "mechdesign")
        | modules(ROOT / "solvers")
        | modules(ROOT / "tests")
    )
    wanted |= {
        "README.md",
        "LICENSE",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "CITATION.cff",
        "pyproject.toml",
    }
    wanted |= {
        "docs/explanation/guarantee.md",
        "examples/adult_relationship_by_occupation.csv",
        ".ci/run",
        ".mkdocs.yml",
    }
    assert wanted <= names, sorted(wanted - names)


@pytest.mark.slow
def test_the_wheel_runs_in_a_clean_environment_without_a_compiler(
    distributions, tmp_path
):
    """Installed from the wheel alone; only what the project depends on comes from this environment."""
    wheel = distributions[1]
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert modules(ROOT / "mechdesign") | modules(ROOT / "solvers") <= names
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for module in project["tool"]["setuptools"]["ext-modules"]:
        assert module["name"].replace(".", "/") + suffix in names
    home = tmp_path / "clean"
    venv.create(home)
    bin_folder = home / ("Scripts" if os.name == "nt" else "bin")
    python = bin_folder / ("python.exe" if os.name == "nt" else "python")
    install = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        wheel,
    ]
    environment = {
        "PATH": str(bin_folder),
        "CC": "/nowhere/cc",
        "HOME": str(tmp_path),
        "PIP_NO_INPUT": "1",
    }
    environment |= {"OPENBLAS_NUM_THREADS": "1"} | (
        {"SYSTEMROOT": os.environ["SYSTEMROOT"]} if os.name == "nt" else {}
    )
    done = subprocess.run(
        install, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where = "import sysconfig; print(sysconfig.get_path('purelib'))"
    site = Path(
        subprocess.run(
            [python, "-c", where], capture_output=True, text=True, check=True
        ).stdout.strip()
    )
    (site / "dependencies.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8"
    )
    program = bin_folder / ("mechdesign.exe" if os.name == "nt" else "mechdesign")
    line = [
        program,
        "design",
        TABLE,
        "--contingency",
        "--epsilon",
        "1",
        "--json",
        "--output",
        "channel.json",
    ]
    done = subprocess.run(
        line, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["nmi"] > 0.85
    code = "import mechdesign, solvers._kernel as k; print(mechdesign.__file__); print(k.__file__)"
    done = subprocess.run(
        [python, "-c", code],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert all(str(home) in file for file in done.stdout.splitlines())
