"""A contract for import-linter: layers, one of which is "everything else". See [tool.importlinter] in pyproject.toml.

The entry `*` of `layers` stands for every child of the container that no other layer names; these must be
independent of each other. So a new detector is checked from the moment that its folder exists, and is listed nowhere.
"""

from __future__ import annotations

from typing import cast

import grimp
from importlinter.contracts.layers import Layer, LayersContract, ModuleTail
from importlinter.domain.contract import ContractCheck
from importlinter.domain.helpers import module_expressions_to_modules

OTHERS = ModuleTail("*")


class LayersWithOthers(LayersContract):
    """See the module's docstring. It takes the options of `layers`, and one container."""

    type_name = "layers_with_others"

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Put the children that no layer names in the place of `*`, then check as `layers` does."""
        layers = cast(list[Layer], self.layers)
        named = {tail.name for layer in layers for tail in layer.module_tails}
        (container,) = module_expressions_to_modules(graph, self.containers)  # type: ignore[arg-type]
        children = {child.removeprefix(f"{container.name}.") for child in graph.find_children(container.name)}
        others = Layer({ModuleTail(name) for name in children - named}, is_independent=True)
        whole = [others if OTHERS in layer.module_tails else layer for layer in layers]
        self.layers = whole  # type: ignore[assignment]  # a field's value takes the field's place
        return super().check(graph, verbose)
