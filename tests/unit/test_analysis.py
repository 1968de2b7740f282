"""What the analysis says about vectors and runs that are known."""

import json

import pytest
import torch

from benchmarks import pages
from thinwire import kernels, recipes
from thinwire.analysis import tables
from thinwire.analysis.contraction import contractions, of_normal
from thinwire.analysis.distribution import distribution
from thinwire.analysis.looks import Counting
from thinwire.analysis.pictures import Sheet, curves, histogram
from thinwire.analysis.quality import Runner, train
from thinwire.analysis.thresholds import hits, rules
from thinwire.debt import Debt
from thinwire.tasks.byte_lm import Corpus, Shape
from thinwire.tasks.simulated import Job

NORMAL = torch.randn(200_000, generator=torch.Generator().manual_seed(0))


def test_the_contraction_of_normal_numbers_is_the_one_that_is_known():
    one, two = contractions(NORMAL, [0.01, 0.1])
    assert one.measured == pytest.approx(of_normal(0.01), rel=0.03)
    assert two.measured == pytest.approx(of_normal(0.1), rel=0.03)
    assert of_normal(0.001) == pytest.approx(1 - 0.9873, abs=1e-4)
    assert (two.random, two.bound) == (0.1, pytest.approx(0.19))
    assert one.measured > one.bound > one.random


def test_vectors_of_one_magnitude_break_the_bound_and_zeros_lose_nothing():
    (found,) = contractions(torch.ones(1000), [0.1])
    assert found.measured == pytest.approx(found.random)
    assert found.measured < found.bound
    assert contractions(torch.zeros(10), [0.5])[0].measured == 1.0
    assert contractions(torch.zeros(0), [0.5])[0].measured == 1.0


def test_a_distribution_counts_everything():
    found = distribution(100.0 + 3.0 * NORMAL)
    assert found.mean == pytest.approx(100.0, abs=0.1)
    assert found.deviation == pytest.approx(3.0, rel=0.01)
    assert found.kurtosis == pytest.approx(3.0, rel=0.05)
    assert sum(found.counts) == NORMAL.numel()
    assert distribution(torch.tensor([0.0, 0.0, 1e6])).counts[-1] == 0
    assert sum(distribution(torch.full((5,), 2.0)).counts) == 5


def test_looks_are_counted_and_the_kernels_are_put_back():
    before = kernels.count_at_least, kernels.at_least, kernels.top_k, kernels.corrected_threshold
    with Counting() as looks:
        kernels.at_least(NORMAL, 1.0)
        kernels.corrected_threshold(NORMAL, 5.0, 2000, 3)
        kernels.top_k(NORMAL, 3)
    assert (looks.passes, looks.selections) == (4, 1)
    assert before == (kernels.count_at_least, kernels.at_least, kernels.top_k, kernels.corrected_threshold)


def test_every_rule_is_tried_and_takes_nothing_out():
    debt = Debt(torch.zeros_like(NORMAL), NORMAL, torch.empty_like(NORMAL))
    found = {hit.rule: hit for hit in hits(debt, 0.01, 1)}
    assert found.keys() == rules(0.01).keys()
    assert found["corrected"].ratio == pytest.approx(1.0, abs=0.1)
    assert torch.equal(debt.total, NORMAL)


def test_a_run_of_every_kind_ends_with_its_figures():
    corpus = Corpus.standard_library(limit=1_000_000)
    job = Job(steps=3, world=2, shape=Shape(width=8, layers=1, context=16), batch=2)

    def sgd(model):
        return torch.optim.SGD(model.parameters(), lr=0.1)

    runs = []
    for name, plan in (("dense", recipes.dense()), ("iwp", recipes.iwp(0.01, momentum=0.9))):
        outcome = train(Runner(name=name, plan=lambda step, steps, plan=plan: plan, optimizer=sgd), job, corpus)
        assert 6.0 < outcome.bits < 12.0
        assert len(outcome.losses) == 3
        assert outcome.bytes_sent >= 3 * outcome.last_bytes * 0.9
        runs.append({"optimizer": "SGD", **outcome.plain()})
    assert runs[0]["sent"] == 1.0
    assert 0.005 < runs[1]["sent"] < 0.1
    text = tables.quality({"runs": json.loads(json.dumps(runs))})
    assert text.count("\n") == 4
    assert "| SGD | dense | " in text


def test_pictures_can_be_drawn(tmp_path):
    pytest.importorskip("matplotlib")
    sheet = Sheet(2)
    curves(sheet.axes[0], [0, 1], {"a": [1.0, 0.0], "b": [2.0, 3.0]}, ylabel="y")
    found = distribution(NORMAL)
    histogram(sheet.axes[1], found.edges, found.counts, title="t")
    sheet.save(tmp_path / "a.png")
    sheet.save(tmp_path / "b.png")
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize(
    "place",
    [place for place in pages.PLACES if place.must and place.run.exists()],
    ids=lambda place: f"{place.page.stem} {place.part}",
)
def test_the_pages_have_the_figures_of_the_runs(place):
    text = place.page.read_text()
    assert pages.renewed(text, place) == text
    with pytest.raises(ValueError, match="0 places"):
        pages.renewed("", place)
