"""`kvdesk capabilities`: what can be done to the cache of a model with these settings, and why not."""

import json
from collections.abc import Sequence
from contextlib import closing

from kvdesk import values
from kvdesk.backends.local.llama.context import Context
from kvdesk.backends.local.llama.open_model import open_model
from kvdesk.cli import options
from kvdesk.cli.parser import Parser
from kvdesk.translation import tr


def main(argv: Sequence[str]) -> int:
    """Exit code 0. Raises KvdeskError."""
    parser = Parser("capabilities", tr("What can be done to the cache of a model with these settings, and why not."))
    parser.flag("--json", tr("one JSON object"))
    options.add_model(parser)
    options.add_context(parser)
    args = parser.parse_args(argv)
    path, settings = options.model_path(args), options.context_settings(args)
    with closing(open_model(path, settings).model) as model:
        context = Context(model, settings)
        rows = context.capabilities.values()
        context.close()
    if args.json:
        value = {
            "model": path.name,
            "architecture": model.facts.architecture,
            "memory": model.facts.kind,
            "capabilities": [values.asdict(row) for row in rows],
        }
        print(json.dumps(value, indent=2))
    else:
        for row in rows:
            print(f"{row.operation:25} {row.answer:10} {row.why}")
    return 0
