"""emergency: what a crew declares by transponder, and resolution advisories of TCAS."""
