"""`evaluate conflicts --risk`: how safe the traffic of many episodes was, and where alerts went wrong."""
