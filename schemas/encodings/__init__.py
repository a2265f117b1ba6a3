"""Binary encodings of messages, written again as JSON: each format has one reader, on its JSON form."""
