"""The exchange that every program logs."""

QUESTION = "When does the night train to Lisbon leave, and can I take a bicycle?"
# Id, text, score, metadata.
PASSAGES = [
    (
        "tt-204",
        "The night train to Lisbon leaves at 22:05 from track 3.",
        0.91,
        {"source": "times.md", "page": 2},
    ),
    ("rules-9", "Bicycles travel in the last carriage and need a ticket.", 0.55, {"source": "rules.md", "page": 9}),
]
ANSWER = "The night train leaves at 22:05. Bicycles need a ticket. Its founder Ilse Korman collected Brazilian stamps."
APP = "travel-desk"
TEMPLATE = "Use only this.\n\n{context}\n\nAsked: {input}"
