"""One module per command, imported only when it is called: HELP, EXAMPLES, add_arguments(parser), main(args) -> int."""
