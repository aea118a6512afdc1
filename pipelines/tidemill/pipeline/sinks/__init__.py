"""What leaves for elsewhere: gold's changes and alerts, to Kafka topics and webhooks."""
