"""What the documents list is what there is: public names, parts, options, recipes."""

import dataclasses
import inspect
import re
from typing import Any

import pytest

import thinwire
from tests.docs.pages import ROOT, sections
from thinwire import recipes
from thinwire.agreements import AGREEMENTS
from thinwire.codecs import CODECS
from thinwire.exchanges import EXCHANGES
from thinwire.registry import Table
from thinwire.selectors import SELECTORS

TABLES: dict[str, Table[Any]] = {
    "Selectors": SELECTORS,
    "Agreements": AGREEMENTS,
    "Codecs": CODECS,
    "Exchanges": EXCHANGES,
}
PARTS = [part for table in TABLES.values() for part in table.values()]
PLANS = ROOT / "docs" / "plans.md"


def undocumented(names: list[str], page: str) -> list[str]:
    """The public names that the API page does not show."""
    shown = re.findall(r"^::: ([\w.]+)$", page, re.MULTILINE)
    missing = []
    for name in names:
        thing = getattr(thinwire, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            paths = {f"{thing.__module__}.{thing.__qualname__}", thing.__module__}
        else:
            paths = {getattr(thing, "__name__", "")}
        if not paths & set(shown):
            missing.append(name)
    return missing


def test_every_public_name_is_on_the_api_page() -> None:
    names = [name for name in thinwire.__all__ if name != "__version__"]
    page = (ROOT / "docs" / "api.md").read_text()
    assert undocumented(names, page) == []
    assert undocumented(names, page.replace("::: thinwire.plans.Plan\n", "")) == ["Plan"]


@pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
def test_every_part_has_a_section_that_names_its_options(part: type) -> None:
    text = sections(PLANS)[f"`{part.__name__}`"]
    for field in dataclasses.fields(part):
        assert f"`{field.name}`" in text or f"`{field.name}=" in text, f"{part.__name__}: no word about {field.name}"


def test_no_part_is_described_that_does_not_exist() -> None:
    described = {heading.strip("`") for heading in sections(PLANS) if heading.startswith("`")}
    assert described == {part.__name__ for part in PARTS}


def test_the_costs_name_every_part_that_has_some() -> None:
    text = sections(PLANS)["What it costs"]
    for part in [*AGREEMENTS.values(), *EXCHANGES.values()]:
        assert f"`{part.__name__}`" in text


def test_the_readme_lists_the_parts_that_exist() -> None:
    table = sections(ROOT / "README.md")["What there is"]
    listed = set(re.findall(r"`(\w+)`", table.split("| Plans with names")[0].split("|---|---|")[1]))
    assert listed == {part.__name__ for part in PARTS}
    named = next(line for line in table.splitlines() if line.startswith("| Plans with names"))
    assert set(re.findall(r"`(\w+)`", named)) == set(recipes.RECIPES)


def test_every_recipe_is_described_with_its_options() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", sections(PLANS)["Recipes"], re.MULTILINE))
    assert set(rows) == set(recipes.RECIPES)
    for name, recipe in recipes.RECIPES.items():
        plan = recipe()
        parts = (plan.selector, plan.agreement, plan.codec, plan.exchange) if isinstance(plan, thinwire.Plan) else ()
        for part in parts:
            assert f"`{type(part).__name__}`" in rows[name]
        for option in inspect.signature(recipe).parameters:
            assert f"`{option}`" in rows[name]


def test_every_error_is_in_the_table_of_errors() -> None:
    text = (ROOT / "docs" / "failures.md").read_text()
    family = [thing for thing in vars(thinwire).values() if inspect.isclass(thing) and issubclass(thing, Exception)]
    for error in family:
        if error is not thinwire.ThinwireError:
            assert f"`{error.__name__}`" in text.partition("## What is detected")[0]
