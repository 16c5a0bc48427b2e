"""`report` and `design --report` on channels for boxes."""

from __future__ import annotations

import json

from tests.cases.documents import rewrite
from tests.mechdesign.report.test_box_section import designed


def test_the_commands_write_the_same_page(folder, run):
    frame, _ = designed()
    frame.to_csv("people.csv", index=False)
    answer = run(
        *("design", "people.csv", "--sensitive", "secret", "--epsilon", "0.8"),
        *("--release", "a,b", "--confidence", "0.9", "--cells", "4"),
        *("--slice-seed", "3", "--output", "boxes.json", "--report", "one.json"),
    )
    assert "Internal report: one.json." in answer.out
    again = run("report", "boxes.json", "--report", "two.json", "--json")
    assert again.record["satisfied"] is True
    one, two = (
        json.loads((folder / name).read_text(encoding="utf-8"))
        for name in ("one.json", "two.json")
    )
    for part in ("promise", "population", "channel", "law", "holds_for"):
        assert one[part] == two[part]
    assert one["boxes"]["beliefs"] == two["boxes"]["beliefs"]
    # The design has proven its bound, the file states it.
    assert (one["kept"]["scope"], two["kept"]["scope"]) == ("proven", "stated")
    assert one["kept"]["upper_bound_nmi"] == two["kept"]["upper_bound_nmi"]
    proven = run("report", "boxes.json", "--report", "six.json", "--certificate")
    assert proven.code == 0
    six = json.loads((folder / "six.json").read_text(encoding="utf-8"))
    assert six["kept"]["scope"] == "proven"
    assert run("report", "boxes.json", "--public-report", "three.md").code == 0
    everybody = (folder / "three.md").read_text(encoding="utf-8")
    public = run(
        *("design", "people.csv", "--sensitive", "secret", "--epsilon", "0.8"),
        *("--release", "a,b", "--confidence", "0.9", "--cells", "4", "--public"),
        *("--slice-seed", "3", "--output", "public.json"),
    )
    assert public.code == 0
    # From the public file alone it is the same page, but for the verdict.
    assert run("report", "public.json", "--public-report", "five.md").code == 0
    assert (folder / "five.md").read_text(encoding="utf-8") != everybody
    refused = run("report", "public.json", "--report", "four.md")
    assert refused.code == 2
    assert "public channel without its table" in refused.err


def test_merged_symbols_of_one_column_have_a_report(folder, run):
    frame, _ = designed()
    frame.to_csv("people.csv", index=False)
    answer = run(
        *("design", "people.csv", "--sensitive", "secret", "--epsilon", "0.8"),
        *("--useful", "a", "--confidence", "0.9", "--merge-rare", "auto"),
        *("--slice-seed", "3"),
        *("--report", "merged.md"),
    )
    assert answer.code == 0
    text = (folder / "merged.md").read_text(encoding="utf-8")
    assert text.startswith("# Release of a in boxes, protecting secret")


def test_a_forged_bound_of_own_boxes_is_not_called_proven(folder, run):
    frame, _ = designed()
    frame.to_csv("people.csv", index=False)
    run(
        *("design", "people.csv", "--sensitive", "secret", "--epsilon", "0.4"),
        *("--release", "a,b", "--confidence", "0.9", "--cells", "4"),
        *("--slice-seed", "3", "--objective", "truth", "-o", "boxes.json"),
    )
    audit = run("audit", "boxes.json", "--certificate")
    assert audit.code == 0
    assert "Proven again from the certificate in the file: own_bound 0." in audit.out

    def better(document):
        document["claims"]["utility"]["own_bound"] -= 1e-4

    rewrite(folder / "boxes.json", better)
    assert run("audit", "boxes.json").code == 0
    audit = run("audit", "boxes.json", "--certificate")
    assert audit.code == 1
    assert "The bound own_bound" in " ".join(audit.out.split())
    stated = run("report", "boxes.json", "--report", "stated.md")
    assert stated.code == 0
    text = (folder / "stated.md").read_text(encoding="utf-8")
    assert "and their law (proven)" not in text
    refused = run("report", "boxes.json", "--report", "no.md", "--certificate")
    assert refused.code == 1
    assert "the bound own_bound" in refused.err
