"""Reading a lake: questions in SQL, exports, charts, explanations."""
