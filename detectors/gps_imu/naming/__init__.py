"""What a contradiction looks like from its beginning on, and which kind of fault looks like that."""
