"""The first moment is kept in one place: by the optimizer, or by the ledger."""

import pytest
import torch

from thinwire import optimizers, recipes
from thinwire.errors import PlanError


def parameters() -> list[torch.nn.Parameter]:
    return [torch.nn.Parameter(torch.ones(3))]


def test_adam_gives_its_first_moment_away() -> None:
    adam = torch.optim.AdamW(parameters(), lr=1e-3, betas=(0.85, 0.95))
    plan = optimizers.arrange(adam, recipes.topk_allgather(density=0.1))
    assert plan.feedback.momentum == 0.85
    assert adam.param_groups[0]["betas"] == (0.0, 0.95)
    assert optimizers.first_moment(adam) == 0.0
    assert optimizers.advice(adam, plan) == ""


def test_sgd_gives_its_momentum_away() -> None:
    sgd = torch.optim.SGD(parameters(), lr=0.1, momentum=0.9, nesterov=True)
    plan = optimizers.arrange(sgd, recipes.ar_topk(density=0.1))
    assert plan.feedback.momentum == 0.9
    assert (sgd.param_groups[0]["momentum"], sgd.param_groups[0]["nesterov"]) == (0.0, False)


def test_a_plan_with_momentum_keeps_its_own() -> None:
    sgd = torch.optim.SGD(parameters(), lr=0.1, momentum=0.9)
    plan = optimizers.arrange(sgd, recipes.topk_allgather(density=0.1, momentum=0.5))
    assert plan.feedback.momentum == 0.5


@pytest.mark.parametrize("plan", [recipes.dense(), recipes.topk_allgather(density=0.1)], ids=["dense", "top-k"])
def test_what_has_nothing_to_give_is_left_alone(plan: object) -> None:
    assert not isinstance(plan, str)
    sgd = torch.optim.SGD(parameters(), lr=0.1)
    assert optimizers.arrange(sgd, plan) == plan  # type: ignore[arg-type]


def test_dense_leaves_the_optimizer_alone() -> None:
    adam = torch.optim.AdamW(parameters())
    assert optimizers.arrange(adam, recipes.dense()) == recipes.dense()
    assert optimizers.first_moment(adam) == 0.9
    assert optimizers.advice(adam, recipes.dense()) == ""


def test_it_is_arranged_before_the_first_step() -> None:
    (weight,) = parameters()
    adam = torch.optim.AdamW([weight])
    weight.grad = torch.ones(3)
    adam.step()
    with pytest.raises(PlanError, match="before the first step"):
        optimizers.arrange(adam, recipes.topk_allgather())
    assert optimizers.first_moment(adam) == 0.9


def test_a_controller_keeps_the_moment_whatever_it_chooses() -> None:
    adam = torch.optim.AdamW(parameters())
    controller = optimizers.arrange(adam, recipes.adaptive())
    assert controller.feedback.momentum == 0.9
    assert optimizers.first_moment(adam) == 0.0


@pytest.mark.parametrize(("momentum", "words"), [(0.0, "costs quality"), (0.9, "averaged twice")])
def test_advice_says_what_to_write(momentum: float, words: str) -> None:
    adam = torch.optim.AdamW(parameters())
    said = optimizers.advice(adam, recipes.topk_allgather(momentum=momentum))
    assert words in said
    assert "thinwire.optimizers.arrange(optimizer, plan)" in said
