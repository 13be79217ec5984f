"""The ways out for alarm events: journal, MQTT, terminal, webhooks, Alertmanager, Home Assistant."""
