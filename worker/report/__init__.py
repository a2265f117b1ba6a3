"""The report: one page that shows what the audit of an app found, and how far its flags can be trusted."""
