"""No circle in the imports of kvdesk, within a folder or between folders; imports made for types alone count too."""

from graphlib import CycleError, TopologicalSorter
from itertools import pairwise

import grimp


def test_the_members_of_each_package_import_each_other_in_one_direction() -> None:
    """A member is a module, or a folder with all that is in it. With this true of every package the modules of kvdesk
    have no circle either: its members in the package that holds all of it would be one.
    """
    graph = grimp.build_graph("kvdesk", cache_dir=None)
    packages = [module for module in graph.modules if graph.find_children(module)]
    assert len(packages) > 50
    assert [line for package in packages for line in _circle(graph, package)] == []


def _circle(graph: grimp.ImportGraph, package: str) -> list[str]:
    """Imports between members of the package that make a circle."""
    members = graph.find_children(package)
    owner = {inner: member for member in members for inner in {member} | graph.find_descendants(member)}
    imported: dict[str, set[str]] = {member: set() for member in members}
    for module, member in owner.items():
        found = (owner.get(other, member) for other in graph.find_modules_directly_imported_by(module))
        imported[member] |= set(found) - {member}
    try:
        TopologicalSorter(imported).prepare()
    except CycleError as error:
        return [line for one, two in pairwise(error.args[1]) for line in _imports(graph, two, one)]
    return []


def _imports(graph: grimp.ImportGraph, importer: str, imported: str) -> list[str]:
    """Every import of a module in `imported` by one in `importer`, as "a -> b"."""
    inside = {imported} | graph.find_descendants(imported)
    modules = {importer} | graph.find_descendants(importer)
    found = {(a, b) for a in modules for b in graph.find_modules_directly_imported_by(a) & inside}
    return [f"{a} -> {b}" for a, b in sorted(found)]
