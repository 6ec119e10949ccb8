"""The guided tour and the self-test."""
