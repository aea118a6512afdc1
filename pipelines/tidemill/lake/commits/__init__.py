"""What tables say in their own commits: ledgers, appends, batches."""
