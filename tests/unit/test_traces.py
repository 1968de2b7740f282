"""A trace holds what the ranks owed, and nobody mistakes anything else for one."""

import json

import pytest
import torch

from thinwire import kernels, recipes, traces
from thinwire.tasks.byte_lm import ByteLM, Corpus
from thinwire.tasks.simulated import Job, Simulation

SMALL = traces.Recording(steps=(2, 0), world=2, density=0.05, elements=5_000, batch=2)


@pytest.fixture(scope="module")
def corpus():
    return Corpus.standard_library(limit=1_000_000)


@pytest.fixture(scope="module")
def trace(corpus, tmp_path_factory):
    return traces.record(tmp_path_factory.mktemp("trace"), SMALL, corpus)


def test_a_trace_is_what_the_ranks_owed_before_they_selected(trace, corpus):
    again = traces.open(trace.path)
    assert again == trace
    assert (again.steps, again.world, again.task) == ((0, 2), 2, "byte_lm")
    run = Simulation(Job(steps=3, world=2, shape=traces.shape_for(5_000), batch=2), corpus)
    plan = recipes.topk_allgather(0.05)
    first = run.gradients()
    assert torch.equal(again.gradient(0, 1), first[1])
    run.step(plan, first)
    run.step(plan)
    fresh = run.gradients()
    owed = run.ledgers[1].page(run.layout, fresh[1]).owed
    assert torch.equal(again.gradient(2, 1), owed + fresh[1])
    assert kernels.energy(owed) > 0.0


def test_the_parameters_of_a_trace_are_those_of_the_model(trace):
    model = ByteLM(traces.shape_for(5_000))
    assert trace.parameters == tuple((name, tuple(p.shape)) for name, p in model.named_parameters())
    assert trace.numel == trace.layout.numel == sum(p.numel() for p in model.parameters())


@pytest.mark.parametrize("elements", [600_000, 5_000_000, 25_000_000])
def test_a_model_has_about_as_many_elements_as_were_asked_for(elements):
    with torch.device("meta"):
        model = ByteLM(traces.shape_for(elements))
    assert sum(p.numel() for p in model.parameters()) == pytest.approx(elements, rel=0.05)


def test_changes_to_a_gradient_reach_no_file(trace):
    trace.gradient(0, 0).zero_()
    assert trace.gradient(0, 0).any()


def test_what_is_no_trace_is_refused(trace, tmp_path):
    with pytest.raises(traces.TraceError, match=r"traces\.record"):
        traces.open(tmp_path)
    (tmp_path / "trace.json").write_text(json.dumps({**trace.describe(), "format": 2}))
    with pytest.raises(traces.TraceError, match="reads format 1"):
        traces.open(tmp_path)
    (tmp_path / "trace.json").write_text(json.dumps(trace.describe()))
    with pytest.raises(traces.TraceError, match=r"steps \[0, 2\] of 2 ranks"):
        traces.open(tmp_path).gradient(1, 0)
    (tmp_path / "step000000.rank0.npy").write_bytes((trace.path / "step000000.rank0.npy").read_bytes()[:-4])
    with pytest.raises(traces.TraceError, match="cannot be read"):
        traces.open(tmp_path).gradient(0, 0)
    with pytest.raises(traces.TraceError, match="name some"):
        traces.record(tmp_path, traces.Recording(steps=()))
