"""Where the project is, and the models and small inputs beside it that tests also run over where they are."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SHARED_CASES = ROOT.parent / "shared" / "cases"
SHARED_MODELS = ROOT.parent / "shared" / "models"
