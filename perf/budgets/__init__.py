"""Budgets of one request: counting, keeping, comparing."""
