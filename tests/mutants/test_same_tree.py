"""Ranks run the very thinwire that the test process has imported. Without this no mutant would be tested on ranks."""

import sys

import thinwire
from tests.conftest import PoolFactory, Ranks


def origins(rank: int, world: int) -> dict[str, str | None]:
    """Where every loaded module of thinwire comes from."""
    import thinwire.sync

    assert thinwire.sync is not None
    return {
        name: getattr(module, "__file__", None)
        for name, module in sys.modules.items()
        if name.split(".")[0] == "thinwire"
    }


def test_ranks_import_what_the_tests_import(ranks: Ranks, pool: PoolFactory) -> None:
    here = origins(0, 1)
    assert here["thinwire"] == thinwire.__file__
    for there in (*ranks(origins, 1), *pool(2).run(origins)):
        assert len(there) > 20
        assert {name: here[name] for name in there.keys() & here.keys()} == {
            n: there[n] for n in there.keys() & here.keys()
        }
