"""`make mutants`: one small change to the source at a time, and whether a test notices. docs: CONTRIBUTING.md."""
